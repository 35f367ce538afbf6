"""The audit: what must hold of a table between any two transactions, whatever happened to it."""

from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import Any

from shared.jobs.identity import partition_of
from shared.jobs.model import Baton, Removal, State
from shared.storage.rows import read_job, read_timer
from shared.wiring import Store


async def audit(store: Store) -> list[str]:
    """What is wrong with the rows of a store; nothing, if all is well."""
    faults: list[str] = []
    for partition in store.jobs.partitions:
        rows = await store.table.scan(partition, " ", "\x7f")
        faults += [f"{partition}: {fault}" for fault in _partition(partition, rows, len(store.jobs.partitions))]
    return faults


def _partition(partition: str, rows: list[Any], partitions: int) -> list[str]:
    faults = []
    by_kind: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        by_kind[row["RowKey"].split(":")[0]].append(row)
    if unknown := by_kind.keys() - {"job", "timer", "run", "past"}:
        faults.append(f"rows of unknown kinds {unknown}")
    jobs = {job.id: job for job in map(read_job, by_kind["job"])}
    faults += [f"job {i} lies in the wrong partition" for i in jobs if partition_of(i, partitions) != partition]

    timers = [read_timer(row) for row in by_kind["timer"]]
    count = Counter(timer.job_id for timer in timers)
    for job in jobs.values():
        wanted = 0 if job.state is State.COMPLETED else 1
        if count[job.id] != wanted:
            faults.append(f"job {job.id} is {job.state} and has {count[job.id]} timers")
        if wanted and job.pending is None:
            faults.append(f"job {job.id} is {job.state} and names no next occurrence")
    for timer in timers:
        found = jobs.get(timer.job_id)
        if found is None:
            faults.append(f"timer of no job: {timer.job_id}")
        elif isinstance(timer, Baton):
            if found.state is not State.ENABLED:
                faults.append(f"job {found.id} is {found.state} and has a baton")
            if timer.pending != found.pending:
                faults.append(f"job {found.id} says {found.pending}, its baton {timer.pending}")
            if timer.core != found.core:
                faults.append(f"job {found.id} and its baton differ: {found.core} {timer.core}")
        elif isinstance(timer, Removal) and found.state is not State.DELETING:
            faults.append(f"job {found.id} is {found.state} and has a removal timer")
    for row in by_kind["run"] + by_kind["past"]:
        _, job_id, number = row["RowKey"].split(":")
        owner = jobs.get(job_id)
        if owner is None:
            faults.append(f"row of no job: {row['RowKey']}")
        elif int(row["RowKey"].startswith("run:") and number) > owner.core.counters.seq:
            faults.append(f"run that its job does not know: {row['RowKey']}")
    return faults


