"""What callers' operations make of a job: created, replaced, suspended, resumed. Pure (rules L1 to L6)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from shared.errors import Conflict, InvalidInput
from shared.jobs.definition import load_definition, load_timing, pack_definition
from shared.jobs.gate import opened
from shared.jobs.identity import new_stamp
from shared.jobs.model import (
    Bound,
    Core,
    Counters,
    Gate,
    Job,
    OpenSkip,
    Pending,
    State,
    Status,
    Stretch,
    Waiting,
)
from shared.jobs.plan import TICK, Timing, dealt_with, first_turn, pending_at, refreshed, skipped_stretch
from shared.jobs.times import ceil_second, floor_second

# Timing is compiled here for its schedule; lateness is dispatch's affair.
_NO_LATENESS = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A job as an operation leaves it, with what goes into the same transaction: occurrences that waited and
    now become runs, and records of what is not fired."""

    job: Job
    released: tuple[Waiting, ...] = ()
    records: tuple[Stretch, ...] = ()


def timing_of(job: Job) -> Timing:
    """When the job's occurrences fall due."""
    return load_timing(job.core.definition, job.id, job.core.anchor, _NO_LATENESS)


def bound_of(job: Job) -> Bound | None:
    """How many runs of the job may be under way."""
    return load_definition(job.core.definition).bound


def created(job_id: str, definition: dict[str, Any], state: State, now: datetime) -> Job:
    """A new job with its first timer."""
    core = Core(
        stamp=new_stamp(now),
        generation=1,
        anchor=floor_second(now),
        definition=pack_definition(definition),
        counters=Counters(),
    )
    job = Job(id=job_id, core=core, state=state, pending=None, created_at=now, updated_at=now)
    return begun(job, now)


def begun(job: Job, now: datetime) -> Job:
    """The job with the first timer of its schedule; one that is Suspended sleeps until it is first enabled."""
    pending = first_turn(job.core, timing_of(job), now)
    job = replace(job, dormant=job.state is State.SUSPENDED)
    return with_pending(replace(job, state=kept(job.state)), pending, now)


def with_pending(job: Job, pending: Pending | None, now: datetime) -> Job:
    """The job with this timer; Completed without any (N3), to be removed after `deleteAfter`."""
    if pending is not None:
        return replace(job, pending=pending)
    until = removal_time(now, load_definition(job.core.definition).delete_after)
    return replace(
        job,
        state=State.COMPLETED,
        dormant=False,
        pending=Pending(scheduled=until, due=until) if until else None,
        gate=replace(job.gate, parked=False),
    )


def removal_time(now: datetime, keep: timedelta | None) -> datetime | None:
    """The second at which a job completed at `now` is to be removed; None: never."""
    return None if keep is None else ceil_second(now + keep)


def kept(state: State) -> State:
    """The state of a job that begins anew and for which none is asked: what an operator has suspended stays so."""
    return State.SUSPENDED if state is State.SUSPENDED else State.ENABLED


def reset(job: Job, packed: bytes, state: State, now: datetime, replay: bool) -> Change:
    """The job with another schedule, which begins anew at `now` (L5), Enabled or Suspended as `state` says.

    `replay` forgets what was dispatched.

    What the old schedule had come to and was not fired yet is Missed, or Skipped if the job was suspended.
    """
    old = readable_timing(job)
    record = _overtaken(job, old, now) if old else None
    counters = job.core.counters
    if record and record.status is Status.SKIPPED:
        counters = replace(counters, seq=record.seq, skipped=counters.skipped + record.count)
    elif record:
        counters = replace(counters, seq=record.seq, missed=counters.missed + record.count)
    # Once is an order to run; the points of a schedule are not to be fired twice.
    afresh = replay or load_definition(packed).trigger["type"] == "Once"
    core = replace(
        job.core,
        stamp=new_stamp(now),
        anchor=floor_second(now),
        definition=packed,
        floor=None if afresh else job.core.floor,
        counters=replace(counters, base=counters.fired),
        skipping=None,
    )
    gate = replace(job.gate, parked=False)
    return Change(
        job=begun(replace(job, core=core, state=state, gate=gate), now), records=(record,) if record else ()
    )


def readable_timing(job: Job) -> Timing | None:
    """The job's timing; None if it was stored by rules, or with zones, that this version does not know."""
    try:
        return timing_of(job)
    except InvalidInput:
        return None


def _overtaken(job: Job, timing: Timing, now: datetime) -> Stretch | None:
    """The occurrences of a job that have fallen due and that a new schedule leaves behind. Windows are not
    lost: the new ones begin where the dispatched ones end."""
    if job.state is State.COMPLETED or job.pending is None or timing.in_order:
        return None
    first = job.pending.scheduled
    if first > now:
        return None
    last = max(first, timing.schedule.last_until(now) or first)
    suspended = job.state is State.SUSPENDED
    return Stretch(
        seq=job.core.counters.seq + 1,
        status=Status.SKIPPED if suspended else Status.MISSED,
        first=first,
        last=last,
        count=max(timing.schedule.count_between(first, last), 1),
        reason="the job was suspended" if suspended else "the schedule was replaced before it was fired",
    )


def redefined(job: Job, packed: bytes, now: datetime) -> Job:
    """The job with another definition whose schedule means the same: its timer stays where it is due (L4)."""
    limits = (load_definition(job.core.definition).history_limit, load_definition(packed).history_limit)
    skipping = job.core.skipping if limits[0] == limits[1] else None  # its record moves with the limit
    job = replace(job, core=replace(job.core, definition=packed, skipping=skipping))
    if job.state is State.COMPLETED:
        return with_pending(job, None, now)
    if job.pending is None:
        return job
    pending = refreshed(job.pending, timing_of(job), now)
    if pending is None:
        return with_pending(job, None, now)
    return replace(job, pending=pending_at(timing_of(job), pending.scheduled, now))


def suspended(job: Job) -> Job:
    """The job suspended: nothing more is dispatched; what runs or waits for room goes on (L1)."""
    if job.state is State.COMPLETED:
        raise Conflict("the job is Completed, which is final")
    return replace(job, state=State.SUSPENDED, gate=replace(job.gate, parked=False))


def resumed(job: Job, now: datetime) -> Change:
    """The job enabled again (L2, L3).

    A recurrence goes on with its first point at or after `now`; what went by is one Skipped record. A sliding
    window goes on with the first window not dispatched, Once with its run. A job created suspended without
    startTime begins now; one whose `endTime` has passed by now is Completed.
    """
    if job.state is State.COMPLETED:
        raise Conflict("the job is Completed, which is final")
    if job.state is State.ENABLED:
        return Change(job=job)
    trigger = load_definition(job.core.definition).trigger
    job = replace(job, state=State.ENABLED)
    if job.dormant and trigger["type"] == "Recurrence" and "startTime" not in trigger["recurrence"]:
        anchored = replace(job, core=replace(job.core, anchor=floor_second(now)))
        if readable_timing(job) and not readable_timing(anchored):  # no rule begins so late
            return Change(job=with_pending(job, None, now))
        return Change(job=begun(anchored, now))
    job = replace(job, dormant=False)
    timing = timing_of(job)
    pending = refreshed(job.pending, timing, now) if job.pending else None
    if pending is None:
        return Change(job=with_pending(job, None, now))
    job = replace(job, pending=pending)
    if trigger["type"] != "Recurrence" or timing.due(pending.scheduled) >= now:
        return Change(job=replace(job, pending=pending_at(timing, pending.scheduled, now)))
    return _passed_over(job, pending.scheduled, timing, now)


def _passed_over(job: Job, first: datetime, timing: Timing, now: datetime) -> Change:
    point = timing.schedule.at_or_after(now)
    if point is not None and point == first:
        return Change(job=with_pending(job, pending_at(timing, point, now), now))
    count = timing.schedule.count_between(first, now - TICK)
    last = timing.schedule.last_until(now - TICK) or first
    counters = job.core.counters
    skip = OpenSkip(seq=counters.seq + 1, first=first, count=count)
    record = skipped_stretch(skip, max(first, last), "the job was suspended")
    counters = replace(counters, seq=skip.seq, skipped=counters.skipped + count)
    floor = dealt_with(timing.schedule, record.last)
    job = replace(job, core=replace(job.core, counters=counters, skipping=None, floor=floor))
    return Change(job=with_pending(job, pending_at(timing, point, now), now), records=(record,))


def at_new_bound(job: Job, under_way: int) -> Change:
    """The job with its gate as its (new) definition bounds it, `under_way` runs executing or idle."""
    gate: Gate = replace(job.gate, running=under_way)
    opening = opened(gate, bound_of(job), len(job.core.definition))
    return Change(job=replace(job, gate=opening.gate), released=opening.released)
