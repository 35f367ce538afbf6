"""How far a run's actions are: what is ready, what waits, what came of it all. Pure."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any

from shared.jobs.definition import pack, pack_within, unpack
from shared.jobs.model import Ended, Status
from shared.jobs.times import from_row_text, json_text, row_text

MAX_STATE = 256 * 1024
MAX_UNPACKED = 512 * 1024
"""Bytes of a record, or of a run's state, as JSON."""
ENDED = frozenset({Status.SUCCEEDED, Status.FAILED, Status.TIMED_OUT, Status.SKIPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One action of a run. `status` Waiting: to be gone on with at `due`, with the `memo` left for then."""

    status: Status
    started: datetime
    ended: datetime | None = None
    attempts: int = 0
    due: datetime | None = None
    memo: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    response: Mapping[str, Any] | None = None

    def view(self) -> dict[str, Any]:
        """As the API shows it."""
        view: dict[str, Any] = {
            "status": str(self.status),
            "attempts": self.attempts,
            "startTime": json_text(self.started),
            "endTime": json_text(self.ended) if self.ended else None,
        }
        view |= {"reason": self.reason} if self.reason else {}
        return view | ({"response": self.response} if self.response is not None else {})


Steps = Mapping[str, Step]
Parts = list[tuple[str, str]]
"""Bodies and headers of answers, each by its action's name."""


def ready(actions: Mapping[str, Mapping[str, Any]], steps: Steps, now: datetime) -> list[str]:
    """The actions to be attempted now: not begun and all they run after has ended as they ask, or due again."""
    return [
        name
        for name, action in actions.items()
        if (
            name not in steps
            and all(
                before in steps and steps[before].status in statuses for before, statuses in _after(action).items()
            )
        )
        or (name in steps and _is_due(steps[name], now))
    ]


def skipped(actions: Mapping[str, Mapping[str, Any]], steps: Steps, now: datetime) -> dict[str, Step]:
    """The steps with those added that can never run, since something before them ended otherwise than they ask."""
    known = dict(steps)
    while True:
        lost = [
            name
            for name, action in actions.items()
            if name not in known
            and any(
                before in known and known[before].status in ENDED and known[before].status not in statuses
                for before, statuses in _after(action).items()
            )
        ]
        if not lost:
            return known
        for name in lost:
            reason = "what it runs after ended otherwise"
            known[name] = Step(status=Status.SKIPPED, started=now, ended=now, reason=reason)


def next_due(steps: Steps) -> datetime | None:
    """When the first waiting step is to be gone on with; None if none waits."""
    return min((step.due for step in steps.values() if step.due is not None), default=None)


def attempts_of(takeovers: int, steps: Steps) -> int:
    """How often a run was begun: its take-overs, and the most attempts at one action."""
    return takeovers + max([1, *(step.attempts for step in steps.values())])


def cancelled_step(step: Step, now: datetime) -> Step:
    """A step of a run that is cancelled: if it has not ended, it ends so."""
    return step if step.ended else replace(step, status=Status.CANCELLED, ended=now, due=None, memo={}, reason="")


def outcome(actions: Mapping[str, Mapping[str, Any]], steps: Steps) -> tuple[Status, str]:
    """How a run ended, and why if it did not succeed: Succeeded if each leaf Succeeded or was Skipped."""
    inner = {before for action in actions.values() for before in _after(action)}
    for name in actions:
        step = steps[name]
        if name not in inner and step.status not in (Status.SUCCEEDED, Status.SKIPPED):
            told_already = step.reason.startswith(f"actions.{name}.")
            return step.status, step.reason if told_already else f"{name}: {step.reason}"
    return Status.SUCCEEDED, ""


def summary(ended: Ended) -> dict[str, object]:
    """The short account of a run that a job's `lastRun` gives."""
    return {
        "seq": ended.seq,
        "status": str(ended.status),
        "scheduledTime": json_text(ended.scheduled),
        "startTime": json_text(ended.started),
        "endTime": json_text(ended.ended),
    }


def pack_steps(steps: Steps) -> bytes:
    """The steps for a row, at most 256 KiB: where they are larger, what targets answered goes, the oldest first,
    bodies before headers."""
    oldest_first = sorted(steps, key=lambda name: steps[name].started)

    def plain(dropped: Parts) -> dict[str, Any]:
        return {name: _plain(step, _without(name, step.response, dropped)) for name, step in steps.items()}

    parts = _parts({name: steps[name].response for name in oldest_first})
    return _with_fewest_dropped(plain, parts, MAX_STATE) or pack(plain(parts))


def unpack_steps(packed: bytes) -> dict[str, Step]:
    """The steps in a row; none, if the run has not got that far."""
    if not packed:
        return {}
    return {name: _step(plain) for name, plain in unpack(packed).items()}


def pack_record(plain: dict[str, Any], most: int) -> bytes:
    """A record of history for a row, at most so many bytes: where it is larger, what targets answered goes, first
    the bodies."""
    actions: dict[str, dict[str, Any]] = plain.get("actions", {})

    def less(dropped: Parts) -> dict[str, Any]:
        kept = {
            name: {**action, "response": _without(name, action["response"], dropped)}
            for name, action in actions.items()
            if "response" in action
        }
        return plain | ({"actions": actions | kept} if kept else {})

    parts = _parts({name: action.get("response") for name, action in actions.items()})
    packed = _with_fewest_dropped(less, parts, most)
    return packed or pack(plain | {"actions": {}, "reason": plain["reason"][:1000]})


def _parts(responses: Mapping[str, Mapping[str, Any] | None]) -> Parts:
    """What can be dropped of these responses, in the order in which it goes."""
    return [
        (name, part) for part in ("body", "headers") for name, kept in responses.items() if part in (kept or {})
    ]


def _without(name: str, response: Mapping[str, Any] | None, dropped: Parts) -> Mapping[str, Any] | None:
    gone = {part for of, part in dropped if of == name}
    if not response or not gone:
        return response
    return {k: v for k, v in response.items() if k not in gone} | {"dropped": True}


def _with_fewest_dropped(plain: Callable[[Parts], dict[str, Any]], parts: Parts, most: int) -> bytes | None:
    """The packed form with as few of the parts dropped, from the first on, as make it small enough."""

    @cache
    def packed(count: int) -> bytes | None:
        return pack_within(plain(parts[:count]), most, MAX_UNPACKED)

    if packed(0):
        return packed(0)
    count = bisect_left(range(len(parts) + 1), True, key=lambda n: packed(n) is not None)
    return packed(count) if count <= len(parts) else None


def _plain(step: Step, response: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "status": str(step.status),
        "started": row_text(step.started),
        "ended": row_text(step.ended) if step.ended else None,
        "attempts": step.attempts,
        "due": row_text(step.due) if step.due else None,
        "memo": step.memo,
        "reason": step.reason,
        "response": response,
    }


def _step(plain: Mapping[str, Any]) -> Step:
    return Step(
        status=Status(plain["status"]),
        started=from_row_text(plain["started"]),
        ended=from_row_text(plain["ended"]) if plain["ended"] else None,
        attempts=plain["attempts"],
        due=from_row_text(plain["due"]) if plain["due"] else None,
        memo=plain["memo"],
        reason=plain["reason"],
        response=plain["response"],
    )


def _after(action: Mapping[str, Any]) -> Mapping[str, list[str]]:
    after: Mapping[str, list[str]] = action.get("runAfter") or {}
    return after


def _is_due(step: Step, now: datetime) -> bool:
    return step.status is Status.WAITING and step.due is not None and step.due <= now
