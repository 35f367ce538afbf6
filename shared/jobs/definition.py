"""A job's definition as it is stored: canonical JSON, packed, and what is read out of it."""

import json
import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cached_property
from hashlib import blake2b
from typing import Any

from cachetools import LRUCache, cached

from shared.errors import TooLarge
from shared.jobs.model import TIMER_JOB, Bound
from shared.jobs.plan import Timing, jitter_share
from shared.recurrence import Schedule, compile_trigger, parse_duration

MAX_PACKED = 360 * 1024
"""Bytes: 256 KiB of JSON take less, however badly they can be compressed (260,000 of drawn letters)."""
# What a process keeps of the definitions it has read: bytes of JSON, and some for each, so that it is about 3,600
# small ones, or 60 of the largest.
MAX_REMEMBERED = 16 * 1024 * 1024
LEAST_REMEMBERED = 4 * 1024
DEFAULT_TIMEOUT = timedelta(seconds=30)
DEFAULT_HISTORY_LIMIT = 100
DEFAULT_WINDOWS = 25
MAX_WAITING = 100


def pack(value: Any) -> bytes:
    """JSON, compressed: the form in which definitions and history records lie in a row."""
    return zlib.compress(_compact(value))


def pack_within(value: Any, most: int, most_unpacked: int) -> bytes | None:
    """The packed form; None where it has more bytes than that, or its JSON has."""
    text = _compact(value)
    packed = zlib.compress(text) if len(text) <= most_unpacked else None
    return packed if packed and len(packed) <= most else None


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def unpack(data: bytes) -> Any:
    """What `pack` was given. Raises ValueError or zlib.error for other bytes."""
    return json.loads(zlib.decompress(data))


def pack_definition(raw: Mapping[str, Any]) -> bytes:
    """The packed form of a valid definition. Raises TooLarge over 360 KiB."""
    packed = pack(raw)
    if len(packed) > MAX_PACKED:
        raise TooLarge(f"the definition takes {len(packed)} bytes compressed; the limit is {MAX_PACKED}")
    return packed


class Definition:
    """Reads a stored definition. `raw` is the canonical JSON object (spec.py made it); do not change it. `size` is
    that of its JSON in bytes."""

    def __init__(self, raw: Mapping[str, Any], size: int = 0) -> None:
        self.raw = raw
        self.size = size

    @property
    def trigger(self) -> Mapping[str, Any]:
        """The trigger object."""
        trigger: Mapping[str, Any] = self.raw["trigger"]
        return trigger

    @property
    def actions(self) -> Mapping[str, Mapping[str, Any]]:
        """Each action by its name; none, if the service type is another than TimerJob."""
        actions: Mapping[str, Mapping[str, Any]] = self.raw.get("actions") or {}
        return actions

    @property
    def service_type(self) -> str:
        """Whose work its runs are: TimerJob's actions, or a host's of this name."""
        return str(self.raw.get("serviceType", TIMER_JOB))

    @property
    def activation(self) -> str:
        """Where a host for its runs is activated, as a run holds it; '' for nowhere."""
        given = self.raw.get("activation")
        return json.dumps(given) if given else ""

    @property
    def history_limit(self) -> int:
        """How many records the history ring holds."""
        return int(self.raw["historyLimit"])

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The values that expressions may name."""
        parameters: Mapping[str, Any] = self.raw.get("parameters") or {}
        return parameters

    @cached_property
    def bound(self) -> Bound | None:
        """How many runs may be under way and wait (W6). None: any number."""
        trigger = self.trigger
        if "SingleInstance" in trigger.get("operationOptions", ""):
            return Bound(runs=1, waiting=0)
        concurrency = trigger.get("runtimeConfiguration", {}).get("concurrency", {})
        runs = concurrency.get("runs", DEFAULT_WINDOWS if trigger["type"] == "SlidingWindow" else None)
        if runs is None:
            return None
        return Bound(runs=runs, waiting=concurrency.get("maximumWaitingRuns", min(10 + runs, MAX_WAITING)))

    @cached_property
    def delete_after(self) -> timedelta | None:
        """How long a Completed job is kept; None: for ever."""
        text = self.raw.get("deleteAfter")
        return None if text is None else parse_duration(text)

    def max_lateness(self, default: timedelta) -> timedelta | None:
        """How late an occurrence may start (T3): `default` where a Recurrence names nothing; None: however
        late."""
        if self.trigger["type"] != "Recurrence":
            return None
        text = self.trigger.get("maxLateness")
        return default if text is None else parse_duration(text)

    def jitter(self, job_id: str) -> timedelta:
        """How much later than scheduled this job's occurrences are to start."""
        text = self.trigger.get("jitter")
        return jitter_share(job_id, parse_duration(text)) if text else timedelta(0)

    def timing(self, job_id: str, anchor: datetime, default_max_lateness: timedelta) -> Timing:
        """When this job's occurrences fall due, created or reset at `anchor`.

        `default_max_lateness` is for a Recurrence that names none (T3).
        """
        return Timing(
            schedule=self.schedule(anchor),
            max_lateness=self.max_lateness(default_max_lateness),
            jitter=self.jitter(job_id),
            bound=self.bound,
            in_order=self.trigger["type"] == "SlidingWindow",
        )

    def schedule(self, anchor: datetime) -> Schedule:
        """The trigger's schedule for a job created or reset at `anchor`."""
        return compile_trigger(self.trigger, anchor, self.parameters)


def action_timeout(action: Mapping[str, Any]) -> timedelta:
    """How long one attempt at an action may take."""
    text = action.get("limit", {}).get("timeout")
    return DEFAULT_TIMEOUT if text is None else parse_duration(text)


def _digest(packed: bytes, *others: Any) -> tuple[Any, ...]:
    """What a definition is remembered by: itself would be held as long."""
    return (blake2b(packed, digest_size=16).digest(), *others)


@cached(LRUCache(MAX_REMEMBERED, getsizeof=lambda definition: definition.size + LEAST_REMEMBERED), key=_digest)
def load_definition(packed: bytes) -> Definition:
    """The definition in a row."""
    text = zlib.decompress(packed)
    return Definition(json.loads(text), size=len(text))


@cached(LRUCache(4096), key=_digest)
def load_timing(packed: bytes, job_id: str, anchor: datetime, default_max_lateness: timedelta) -> Timing:
    """The timing of a job by its packed definition, compiled once a process."""
    return load_definition(packed).timing(job_id, anchor, default_max_lateness)


def history_limit_of(packed: bytes) -> int:
    """How many records a job's history holds, by its packed definition; by an unreadable one, the default."""
    try:
        return load_definition(packed).history_limit
    except (ValueError, KeyError, zlib.error):
        return DEFAULT_HISTORY_LIMIT
