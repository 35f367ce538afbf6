"""The audit: what must hold of a table between any two transactions, whatever happened to it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shared.jobs.identity import partition_of
from shared.jobs.model import BadTimer, Baton, Job, Removal, State
from shared.storage.rows import read_job, read_timer
from shared.wiring import Store

Timer = Baton | Removal | BadTimer


async def audit(store: Store) -> list[str]:
    """What is wrong with the rows of a store; nothing, if all is well.

    One timer for each job that is Enabled (its baton, which says what the job's row says) or Deleting, none
    for others; every run and history row with its job; every job in the partition its id belongs to.
    """
    faults: list[str] = []
    for partition in store.jobs.partitions:
        rows = await store.table.scan(partition, " ", "\x7f")
        faults += [f"{partition}: {fault}" for fault in _faults(partition, rows, len(store.jobs.partitions))]
    return faults


def _faults(partition: str, rows: Sequence[Any], partitions: int) -> Iterator[str]:
    kinds = {row["RowKey"]: row["RowKey"].split(":")[0] for row in rows}
    for key, kind in kinds.items():
        if kind not in ("job", "timer", "run", "past"):
            yield f"row of an unknown kind: {key}"
    jobs = {job.id: job for job in (read_job(row) for row in rows if kinds[row["RowKey"]] == "job")}
    timers = [read_timer(row) for row in rows if kinds[row["RowKey"]] == "timer"]
    count = Counter(timer.job_id for timer in timers)
    for job in jobs.values():
        if partition_of(job.id, partitions) != partition:
            yield f"job {job.id} lies in the wrong partition"
        yield from _job_faults(job, count[job.id])
    for timer in timers:
        yield from _timer_faults(timer, jobs.get(timer.job_id))
    for key, kind in kinds.items():
        if kind in ("run", "past"):
            yield from _record_faults(key, jobs)


def _job_faults(job: Job, timers: int) -> Iterator[str]:
    wanted = 0 if job.state is State.COMPLETED else 1
    if timers != wanted:
        yield f"job {job.id} is {job.state} and has {timers} timers"
    if (job.pending is None) != (wanted == 0):
        yield f"job {job.id} is {job.state} and says that {job.pending} is next"


def _timer_faults(timer: Timer, job: Job | None) -> Iterator[str]:
    if job is None:
        yield f"timer of no job: {timer.job_id}"
    elif isinstance(timer, Removal):
        if job.state is not State.DELETING:
            yield f"job {job.id} is {job.state} and has a removal timer"
    elif isinstance(timer, Baton):
        if job.state is not State.ENABLED:
            yield f"job {job.id} is {job.state} and has a baton"
        if timer.pending != job.pending:
            yield f"job {job.id} says {job.pending} is next, its baton {timer.pending}"
        if timer.core != job.core:
            yield f"job {job.id} and its baton differ: {job.core} {timer.core}"


def _record_faults(key: str, jobs: Mapping[str, Job]) -> Iterator[str]:
    kind, job_id, number = key.split(":")
    job = jobs.get(job_id)
    if job is None:
        yield f"row of no job: {key}"
    elif kind == "run" and int(number) > job.core.counters.seq:
        yield f"a run that its job does not know: {key}"
