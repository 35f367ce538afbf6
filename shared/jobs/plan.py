"""What becomes of a due timer: which occurrence fires, which do not and why, what comes next. Pure."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.jobs.gate import is_full
from shared.jobs.model import (
    Bound,
    Core,
    Counters,
    Gate,
    OpenSkip,
    Pending,
    Status,
    Stretch,
    Waiting,
    Window,
)
from shared.jobs.times import ceil_second, duration_text, floor_second, json_text
from shared.recurrence import TZDATA_VERSION, Schedule

# A point less late than this counts as on time, whatever `maxLateness` says: it is what the ordinary path
# from a ticket to a fired occurrence may take, and what detection calls overdue.
ON_TIME = timedelta(seconds=5)
TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What says when a job's occurrences fall due and how they may overlap.

    `max_lateness` None: without bound (Once, SlidingWindow). `jitter` is this job's own share (0 for most);
    `bound` None: any number of runs at once. `in_order`: every point is fired, oldest first (W5).
    """

    schedule: Schedule
    max_lateness: timedelta | None = None
    jitter: timedelta = timedelta(0)
    bound: Bound | None = None
    in_order: bool = False

    def due(self, point: datetime) -> datetime:
        """When a point is to start: its due time and the job's jitter, short of the next point."""
        due = self.schedule.due(point)
        if not self.jitter:
            return due
        following = self.schedule.after(point)
        latest = following - timedelta(seconds=1) if following else due + self.jitter
        return max(due, min(due + self.jitter, latest))

    def newest_due(self, first: datetime, now: datetime) -> datetime:
        """The last point from `first` on that has fallen due at `now`; `first` itself at the least."""
        newest = self.schedule.last_until(now)
        while newest is not None and newest > first and self.due(newest) > now:
            newest = self.schedule.last_until(newest - TICK)
        return first if newest is None else max(first, newest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a job's timer.

    `fires` is the scheduled time of a run that starts, as number `core.counters.seq`; `records` are
    stretches that do not fire. `core`, `pending` and `gate` are the job's afterwards (`gate` None: it has no
    bound); without `pending` the job is Completed; parked, `pending` stays and the baton goes.
    """

    fires: datetime | None
    records: tuple[Stretch, ...]
    core: Core
    pending: Pending | None
    gate: Gate | None = None


def jitter_share(job_id: str, jitter: timedelta) -> timedelta:
    """A job's fixed share of its jitter: whole seconds from a hash of its id, 0 to `jitter`."""
    seconds = int(jitter.total_seconds())
    digest = hashlib.sha256(b"jitter:" + job_id.encode()).digest()
    return timedelta(seconds=int.from_bytes(digest[:8]) % (seconds + 1))


def first_turn(core: Core, timing: Timing, now: datetime) -> Pending | None:
    """The first timer of a job of what has not been dealt with yet; None: nothing is left (N3).

    That is all of it after creation, and after a reset what was not dispatched before (L5).
    """
    begin = core.floor or datetime.min.replace(tzinfo=core.anchor.tzinfo)
    return pending_at(timing, timing.schedule.at_or_after(begin), now)


def pending_at(timing: Timing, point: datetime | None, now: datetime) -> Pending | None:
    """The timer of a point: keyed by the second it is due, and never by one before that of writing."""
    if point is None:
        return None
    due = max(ceil_second(timing.due(point)), floor_second(now))
    return Pending(scheduled=point, due=due, offset=timing.schedule.offset(point))


def refreshed(pending: Pending, timing: Timing, now: datetime) -> Pending | None:
    """The timer, computed anew if it was computed with other time zone data (L8).

    It is the same occurrence by the same reading of the clocks, so what was dispatched before never runs again.
    """
    if pending.tzdata == TZDATA_VERSION:
        return pending
    return pending_at(timing, timing.schedule.again(pending.scheduled, pending.offset), now)


def window_of(core: Core, timing: Timing, point: datetime) -> Window | None:
    """The window of a point that is next (W1). It begins where the last one of this schedule ended, which other
    time zone data may have put elsewhere: no instant is left out, and none is in two."""
    window = timing.schedule.window(point)
    began = core.counters.fired > core.counters.base
    if window and began and core.floor and core.floor < window[1]:
        return core.floor, window[1]
    return window


def plan_turn(
    core: Core,
    pending: Pending,
    timing: Timing,
    gate: Gate | None,
    now: datetime,
    crowded: str = "",
    not_before: datetime | None = None,
) -> Turn:
    """The turn of a timer that is due at `now` (rules T3, T4, N2, N3, W5, W6).

    The newest point that has fallen due fires, late or not, unless it is too late; every point before it is
    missed. A sliding window's points fire one by one, oldest first. Where the gate is full, a window is
    parked, and a point waits or is skipped. `crowded` says why no further run of a job without a gate may wait
    for an executor; its point is skipped. The pending point could not be fired before `not_before`, if that is
    given: its lateness begins there.
    """
    if timing.in_order:
        return _in_order(core, pending, timing, gate or Gate(), now)
    first = pending.scheduled
    newest = timing.newest_due(first, now)
    due = max(timing.due(newest), not_before or first) if newest == first else timing.due(newest)
    in_time = timing.max_lateness is None or now - due <= max(timing.max_lateness, ON_TIME)
    records: list[Stretch] = []
    if not in_time or newest > first:
        record = _missed(timing, first, newest, in_time, core.counters.seq + 1)
        records.append(record)
        core = _counted(core, record.seq, missed=record.count)
    fires = None
    if in_time:
        core, gate, fires, skipped = _admit(core, timing, gate, newest, now, crowded)
        records += [skipped] if skipped else []
    return _next(
        Turn(fires=fires, records=tuple(records), core=core, pending=None, gate=gate), newest, timing, now
    )


def _in_order(core: Core, pending: Pending, timing: Timing, gate: Gate, now: datetime) -> Turn:
    if is_full(gate, timing.bound):
        return Turn(fires=None, records=(), core=core, pending=pending, gate=replace(gate, parked=True))
    point = pending.scheduled
    core = _fired(core, point)
    gate = replace(gate, running=gate.running + 1)
    return _next(Turn(fires=point, records=(), core=core, pending=None, gate=gate), point, timing, now)


def _admit(
    core: Core, timing: Timing, gate: Gate | None, point: datetime, now: datetime, crowded: str
) -> tuple[Core, Gate | None, datetime | None, Stretch | None]:
    """A point in time: fires, waits for room, or is skipped."""
    if gate is None or timing.bound is None:
        if crowded:
            core, record = _skipped(core, point, crowded)
            return core, gate, None, record
        return _fired(core, point), gate, point, None
    if not is_full(gate, timing.bound):
        return _fired(core, point), replace(gate, running=gate.running + 1), point, None
    if len(gate.waiting) < timing.bound.waiting:
        core = _fired(core, point)
        place = Waiting(seq=core.counters.seq, stamp=core.stamp, scheduled=point, accepted=now)
        return core, replace(gate, waiting=(*gate.waiting, place)), None, None
    full = f"under way: {timing.bound.runs}, waiting: {timing.bound.waiting}; no more runs may be"
    core, record = _skipped(core, point, full)
    return core, gate, None, record


def _skipped(core: Core, point: datetime, reason: str) -> tuple[Core, Stretch]:
    """A point that is not fired, in one record with those skipped just before it."""
    going_on = core.skipping or OpenSkip(seq=core.counters.seq + 1, first=point, count=0)
    skip = replace(going_on, count=going_on.count + 1)
    core = replace(_counted(core, max(core.counters.seq, skip.seq), skipped=1), skipping=skip)
    return core, skipped_stretch(skip, point, reason)


def skipped_stretch(skip: OpenSkip, last: datetime, reason: str) -> Stretch:
    """The record of skipped occurrences up to `last`."""
    return Stretch(
        seq=skip.seq, status=Status.SKIPPED, first=skip.first, last=last, count=skip.count, reason=reason
    )


def _next(turn: Turn, done: datetime, timing: Timing, now: datetime) -> Turn:
    """The turn, with the timer of the point after `done`, if there is one and `count` leaves it."""
    after = None if _count_reached(timing.schedule, turn.core.counters) else timing.schedule.after(done)
    core = replace(turn.core, floor=dealt_with(timing.schedule, done))
    return replace(turn, core=core, pending=pending_at(timing, after, now))


def dealt_with(schedule: Schedule, point: datetime) -> datetime:
    """The instant before which everything is dealt with, when `point` is: a window counts to its end."""
    window = schedule.window(point)
    return window[1] if window else point + timedelta(seconds=1)


def _fired(core: Core, point: datetime) -> Core:
    core = _counted(core, core.counters.seq + 1, fired=1)
    return replace(core, last_scheduled=point, skipping=None)


def _counted(core: Core, seq: int, *, fired: int = 0, missed: int = 0, skipped: int = 0) -> Core:
    old = core.counters
    counters = replace(
        old, seq=seq, fired=old.fired + fired, missed=old.missed + missed, skipped=old.skipped + skipped
    )
    return replace(core, counters=counters, skipping=core.skipping if skipped else None)


def _count_reached(schedule: Schedule, counters: Counters) -> bool:
    return schedule.count is not None and counters.fired - counters.base >= schedule.count


def _missed(timing: Timing, first: datetime, newest: datetime, newest_fires: bool, seq: int) -> Stretch:
    schedule = timing.schedule
    count = schedule.count_between(first, newest)
    last = newest
    if newest_fires:
        count -= 1
        last = max(first, schedule.last_until(newest - TICK) or first)
        reason = f"not fired before the next occurrence fell due at {json_text(newest)}"
    else:
        reason = (
            f"could not be fired within its maxLateness of {duration_text(timing.max_lateness or timedelta(0))}"
        )
    return Stretch(seq=seq, status=Status.MISSED, first=first, last=last, count=max(count, 1), reason=reason)
