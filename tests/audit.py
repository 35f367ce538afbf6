"""The audit: what must hold of a table between any two transactions, whatever happened to it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shared.jobs.definition import load_definition
from shared.jobs.identity import partition_of
from shared.jobs.model import BadTimer, Baton, Idle, Job, NewerTimer, Removal, Run, State
from shared.storage.formats import is_newer
from shared.storage.jobs import timer_row
from shared.storage.places import read_idle
from shared.storage.records import read_job, read_run, read_timer
from shared.storage.rows import load_key
from shared.wiring import Store

Timer = Baton | Removal | Idle | BadTimer


async def audit(store: Store) -> list[str]:
    """What is wrong with the rows of a store; nothing, if all is well.

    - One timer for each job that is Enabled (its baton, which says what the job's row says), is Deleting or is
      to be removed; none for those suspended, parked or completed.
    - A run waits for a host in the row of its service type, unlocked; a run lies in one place.
    - A run that is locked, or idle until some time, has started, and its row says when.
    - Every run, idle run, its pointer, and history row with its job; every job in the partition of its id.
    - A gate counts just the runs that are under way; nothing waits or is parked where there is room.

    Jobs of which a newer version has written a row are left out.
    """
    found: list[str] = []
    for partition in store.jobs.partitions:
        rows = await store.table.scan(partition, " ", "\x7f")
        rows = _of_this_version(rows)
        found += [f"{partition}: {fault}" for fault in faults(partition, rows, len(store.jobs.partitions))]
    return found


def _of_this_version(rows: Sequence[Any]) -> list[Any]:
    left = {_job_of(row["RowKey"]) for row in rows if is_newer(row)}
    return [row for row in rows if _job_of(row["RowKey"]) not in left]


def _job_of(key: str) -> str:
    parts = key.split(":")
    return parts[2] if parts[0] in ("timer", "load") else parts[1]


def faults(partition: str, rows: Sequence[Any], partitions: int) -> Iterator[str]:
    """What is wrong with the rows of one of so many partitions."""
    kinds = ("job", "timer", "run", "idle", "load", "past")
    by_kind: dict[str, list[Any]] = {kind: [] for kind in kinds}
    for row in rows:
        kind = row["RowKey"].split(":")[0]
        if kind in by_kind:
            by_kind[kind].append(row)
        else:
            yield f"row of an unknown kind: {row['RowKey']}"
    jobs = {job.id: job for job in map(read_job, by_kind["job"])}
    timers = [timer for row in by_kind["timer"] if not isinstance(timer := read_timer(row), NewerTimer)]
    idle = [timer for timer in timers if isinstance(timer, Idle)]
    idle += [read_idle(row) for row in by_kind["load"]]
    yield from _idle_faults(idle, by_kind["timer"] + by_kind["load"], by_kind["idle"])
    batons = Counter(timer.job_id for timer in timers if not isinstance(timer, Idle))
    executing = [read_run(row) for row in by_kind["run"]]
    yield from _place_faults(executing, by_kind["load"])
    yield from _start_faults(by_kind["run"] + by_kind["timer"])
    runs = executing + [timer.run for timer in idle]
    numbers = Counter((run.job_id, run.seq) for run in runs)
    yield from (
        f"run {seq} of job {job} lies in {count} rows" for (job, seq), count in numbers.items() if count > 1
    )
    for job in jobs.values():
        if partition_of(job.id, partitions) != partition:
            yield f"job {job.id} lies in the wrong partition"
        yield from _job_faults(job, batons[job.id], [run for run in runs if run.job_id == job.id])
    for timer in timers:
        yield from _timer_faults(timer, jobs.get(timer.job_id))
    for row in by_kind["run"] + by_kind["idle"] + by_kind["past"]:
        yield from _record_faults(row["RowKey"], jobs)


def _place_faults(executing: Sequence[Run], loads: Sequence[Any]) -> Iterator[str]:
    for run in executing:
        if run.awaits_host:
            yield f"run {run.seq} of job {run.job_id} waits for a host, but not in a load row"
    for row in loads:
        waiting = read_idle(row).run
        if row["RowKey"] != load_key(waiting.service_type, waiting.job_id, waiting.seq):
            yield f"{row['RowKey']} holds a run of {waiting.service_type}"
        if waiting.owner:
            yield f"{row['RowKey']} is locked by {waiting.owner}"


def _start_faults(rows: Sequence[Any]) -> Iterator[str]:
    for row in rows:
        if (row.get("owner") or row.get("kind") == "resume") and not row.get("startedAt"):
            yield f"{row['RowKey']} does not say when its run started"


def _job_faults(job: Job, timers: int, runs: Sequence[Run]) -> Iterator[str]:
    wanted = 0 if timer_row(job) is None else 1
    if timers != wanted:
        yield f"job {job.id} is {job.state} and has {timers} timers, not {wanted}"
    if job.state is State.ENABLED and job.pending is None:
        yield f"job {job.id} is enabled and has nothing pending"
    bound = load_definition(job.core.definition).bound if job.state is not State.DELETING else None
    if bound is None:
        return
    gate = job.gate
    if not all(run.gated for run in runs) or gate.running != len(runs):
        yield f"job {job.id} counts {gate.running} runs at its gate, but there are {len(runs)}"
    if gate.running < bound.runs and (gate.waiting or gate.parked):
        yield f"job {job.id} has room, and yet something waits: {gate}"
    if len(runs) > bound.runs:
        yield f"job {job.id} may have {bound.runs} runs and has {len(runs)}"


def _idle_faults(idle: Sequence[Idle], timers: Sequence[Any], pointers: Sequence[Any]) -> Iterator[str]:
    keys = {row["RowKey"] for row in timers}
    if len(idle) != len(pointers):
        yield f"{len(idle)} idle runs and {len(pointers)} pointers to them"
    for pointer in pointers:
        if pointer["timer"] not in keys:
            yield f"{pointer['RowKey']} points to no timer"


def _timer_faults(timer: Timer, job: Job | None) -> Iterator[str]:
    if job is None:
        yield f"timer of no job: {timer.job_id}"
    elif isinstance(timer, Removal):
        if job.state not in (State.DELETING, State.COMPLETED):
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
    elif kind in ("run", "idle") and int(number) > job.core.counters.seq:
        yield f"a run that its job does not know: {key}"
