"""What the end of a run lets through its job's gate, and the runs that occurrences with a number become."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from shared.jobs.definition import load_definition
from shared.jobs.gate import left
from shared.jobs.model import Baton, Bound, Job, Run, State, Waiting
from shared.jobs.times import floor_second
from shared.storage.endings import GateChange


def gate_change(
    job: Job, bound: Bound | None, now: datetime, mark: str, lock: Callable[[Run], Run] = lambda run: run
) -> GateChange:
    """What the end of one of the job's runs changes at its gate. `lock` is given each run that a waiting
    occurrence becomes, in order, and gives it locked if it is to start here."""
    opening = left(job.gate, bound, len(job.core.definition))
    runs = [lock(run_of(job, place, now, gated=True, mark=mark)) for place in opening.released]
    baton = None
    if opening.unparked and job.pending and job.state is State.ENABLED:
        due = max(job.pending.due, floor_second(now))
        baton = Baton(job_id=job.id, core=job.core, pending=replace(job.pending, due=due))
    return GateChange(job=job, gate=opening.gate, runs=runs, baton=baton)


def run_of(job: Job, place: Waiting, now: datetime, gated: bool, mark: str = "") -> Run:
    """The run of an occurrence that was given its number, unlocked."""
    definition = load_definition(job.core.definition)
    return Run(
        job_id=job.id,
        seq=place.seq,
        stamp=place.stamp,
        definition=job.core.definition,
        scheduled=place.scheduled,
        fired_at=now,
        window=place.window,
        by_hand=place.by_hand,
        gated=gated,
        service_type=definition.service_type,
        activation=definition.activation,
        mark=mark,
    )
