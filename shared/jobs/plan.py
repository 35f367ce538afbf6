"""What becomes of a due timer: which occurrence fires, which are missed and why, what comes next. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.jobs.model import Core, Counters, Pending, Status, Stretch
from shared.jobs.times import ceil_second, duration_text, floor_second, json_text
from shared.recurrence import Schedule

# A point less late than this counts as on time, whatever `maxLateness` says: it is what the ordinary path
# from a ticket to a fired occurrence may take, and what detection calls overdue.
ON_TIME = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a job's timer: `fires` is the scheduled time fired now (as run `core.counters.seq`),
    `missed` what went by, `core` and `pending` the job afterwards; no `pending`: the job is Completed."""

    fires: datetime | None
    missed: Stretch | None
    core: Core
    pending: Pending | None


def first_turn(core: Core, schedule: Schedule, now: datetime) -> Pending | None:
    """The first timer of a job that was created or reset at `now`; None: it has no occurrence at all (N3).

    After a reset only points later than the last dispatched one count (L5).
    """
    point = schedule.at_or_after(core.anchor)
    if point is not None and core.last_scheduled is not None and point <= core.last_scheduled:
        point = schedule.after(core.last_scheduled)
    return pending_at(schedule, point, now)


def pending_at(schedule: Schedule, point: datetime | None, now: datetime) -> Pending | None:
    """The timer of a point: keyed by the second it is due, and never by one before that of writing."""
    if point is None:
        return None
    due = max(ceil_second(schedule.due(point)), floor_second(now))
    return Pending(scheduled=point, due=due)


def plan_turn(
    core: Core, pending: Pending, schedule: Schedule, max_lateness: timedelta | None, now: datetime
) -> Turn:
    """The turn of a timer that is due at `now` (rules T3, T4, N2, N3).

    The newest point that has fallen due fires, late or not, if it is no later than `max_lateness` (None:
    without bound, as for Once); every point before it is missed, and so is it if it is too late.
    """
    first = pending.scheduled
    newest = max(first, schedule.last_until(now) or first)
    fires = max_lateness is None or now - schedule.due(newest) <= max(max_lateness, ON_TIME)
    counters = core.counters

    missed = None
    if not fires or newest > first:
        missed = _missed(schedule, first, newest, fires, counters.seq + 1, max_lateness or timedelta(0))
        counters = replace(counters, seq=missed.seq, missed=counters.missed + missed.count)
    if fires:
        counters = replace(counters, seq=counters.seq + 1, fired=counters.fired + 1)

    after = None if _count_reached(schedule, counters) else schedule.after(newest)
    return Turn(
        fires=newest if fires else None,
        missed=missed,
        core=replace(core, counters=counters, last_scheduled=newest if fires else core.last_scheduled),
        pending=pending_at(schedule, after, now),
    )


def _count_reached(schedule: Schedule, counters: Counters) -> bool:
    return schedule.count is not None and counters.fired - counters.base >= schedule.count


def _missed(
    schedule: Schedule,
    first: datetime,
    newest: datetime,
    newest_fires: bool,
    seq: int,
    max_lateness: timedelta,
) -> Stretch:
    count = schedule.count_between(first, newest)
    if newest_fires:
        last = schedule.last_until(newest - timedelta(microseconds=1)) or first
        return Stretch(
            seq=seq,
            status=Status.MISSED,
            first=first,
            last=max(first, last),
            count=max(count - 1, 1),
            reason=f"not fired before the next occurrence fell due at {json_text(newest)}",
        )
    return Stretch(
        seq=seq,
        status=Status.MISSED,
        first=first,
        last=newest,
        count=max(count, 1),
        reason=f"could not be fired within its maxLateness of {duration_text(max_lateness)}",
    )
