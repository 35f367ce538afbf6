"""A job's definition as it is stored: canonical JSON, packed, and what is read out of it."""

import json
import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any

from shared.errors import TooLarge
from shared.recurrence import Schedule, compile_trigger, parse_duration

MAX_PACKED = 60 * 1024
INLINE_TIMEOUT = timedelta(seconds=30)
DEFAULT_TIMEOUT = timedelta(seconds=30)
DEFAULT_HISTORY_LIMIT = 100


def pack(value: Any) -> bytes:
    """JSON, compressed: the form in which definitions and history records lie in a row."""
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode())


def unpack(data: bytes) -> Any:
    """What `pack` was given. Raises ValueError or zlib.error for other bytes."""
    return json.loads(zlib.decompress(data))


def pack_definition(raw: Mapping[str, Any]) -> bytes:
    """The packed form of a valid definition. Raises TooLarge over 60 KiB."""
    packed = pack(raw)
    if len(packed) > MAX_PACKED:
        raise TooLarge(f"the definition takes {len(packed)} bytes compressed; the limit is {MAX_PACKED}")
    return packed


class Definition:
    """Reads a stored definition. `raw` is the canonical JSON object (spec.py made it); do not change it."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    @property
    def trigger(self) -> Mapping[str, Any]:
        """The trigger object."""
        trigger: Mapping[str, Any] = self.raw["trigger"]
        return trigger

    @property
    def actions(self) -> Mapping[str, Mapping[str, Any]]:
        """Each action by its name."""
        actions: Mapping[str, Mapping[str, Any]] = self.raw["actions"]
        return actions

    @property
    def history_limit(self) -> int:
        """How many records the history ring holds."""
        return int(self.raw["historyLimit"])

    @cached_property
    def is_short(self) -> bool:
        """Whether all of a run fits into a dispatch pass: no action may take longer than 30 seconds."""
        return all(action_timeout(action) <= INLINE_TIMEOUT for action in self.actions.values())

    def max_lateness(self, default: timedelta) -> timedelta | None:
        """How late an occurrence may still fire (T3). None: without bound, as Once has it."""
        if self.trigger["type"] == "Once":
            return None
        text = self.trigger.get("maxLateness")
        return default if text is None else parse_duration(text)

    def schedule(self, anchor: datetime) -> Schedule:
        """The trigger's schedule for a job created or reset at `anchor`."""
        return compile_trigger(self.trigger, anchor, self.raw.get("parameters"))


def action_timeout(action: Mapping[str, Any]) -> timedelta:
    """How long one attempt at an action may take."""
    text = action.get("limit", {}).get("timeout")
    return DEFAULT_TIMEOUT if text is None else parse_duration(text)


@lru_cache(maxsize=4096)
def load_definition(packed: bytes) -> Definition:
    """The definition in a row."""
    return Definition(unpack(packed))


@lru_cache(maxsize=4096)
def load_schedule(packed: bytes, anchor: datetime) -> Schedule:
    """The schedule of a job: by its packed definition and its anchor, compiled once a process."""
    return load_definition(packed).schedule(anchor)
