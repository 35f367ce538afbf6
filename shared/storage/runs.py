"""Runs as rows: taking, leasing, completing them, and the history they leave."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from shared.jobs.identity import partition_of
from shared.jobs.model import Ended, Run, Stretch
from shared.jobs.times import row_text
from shared.storage.rows import (
    ALL_RUNS,
    job_key,
    job_range,
    last_run_text,
    past_key,
    past_row,
    read_past,
    read_run,
    run_key,
    run_lock,
)
from shared.storage.table import Row, Table, Verb, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """A run that is to be completed, and what is recorded of it.

    `slot` is the history slot's row as it was read, {} where it was empty, None where it was not read since
    no later run can have reached it. `summary` becomes the job's `lastRun`.
    """

    run: Run
    ended: Ended
    summary: dict[str, Any]
    history_limit: int
    mark: str
    slot: Row | None = None

    @property
    def writes(self) -> list[Write]:
        """[run away, history, job merged]. A later run's record in the slot stays (history is a ring)."""
        run = self.run
        writes = [
            Write(Verb.DELETE, {"RowKey": run_key(run.job_id, run.seq)}, run.etag),
            Write(Verb.MERGE, {"RowKey": job_key(run.job_id), "lastRun": last_run_text(self.summary)}),
        ]
        record = past_row(run.job_id, self.ended, self.history_limit, self.mark)
        if self.slot is None:
            writes.append(Write(Verb.PUT, record))
        elif not self.slot:
            writes.append(Write(Verb.INSERT, record))
        elif self.slot["seq"] < run.seq:
            writes.append(Write(Verb.REPLACE, record, self.slot["etag"]))
        return writes


class Runs:
    """The executing runs of a table, and history."""

    def __init__(self, table: Table, partitions: int) -> None:
        self._table = table
        self._count = partitions

    def partition(self, job_id: str) -> str:
        """The PartitionKey of a job's rows."""
        return partition_of(job_id, self._count)

    async def get(self, job_id: str, seq: int) -> Run | None:
        """The run, while it is executing or should be."""
        row = await self._table.get(self.partition(job_id), run_key(job_id, seq))
        return read_run(row) if row else None

    async def free(self, partition: str, expired_before: datetime, limit: int) -> list[Run]:
        """Up to `limit` runs that are unlocked, or whose lock ran out before `expired_before`.

        Reads the partition's executing runs: work by what executes, not by how many jobs there are.
        """
        where = f"lockedUntil lt '{row_text(expired_before)}'"
        return [read_run(row) for row in await self._table.scan(partition, *ALL_RUNS, limit=limit, where=where)]

    async def lock(self, partition: str, runs: Sequence[Run]) -> list[Run]:
        """Writes the lease that each run holds, at the version it was read; gives them with new etags.

        Raises Refused if any has changed, and then none is locked.
        """
        writes = [Write(Verb.MERGE, run_lock(run), run.etag) for run in runs]
        etags = await self._table.commit(partition, writes)
        return [replace(run, etag=etag) for run, etag in zip(runs, etags, strict=True)]

    async def complete(self, partition: str, endings: Sequence[Ending]) -> None:
        """Completes runs of different jobs in one transaction. Raises Refused, and then nothing is written."""
        await self._table.commit(partition, [w for ending in endings for w in ending.writes])

    async def slot(self, job_id: str, seq: int, history_limit: int) -> Row:
        """The history row in this run's slot, or {}."""
        return await self._table.get(self.partition(job_id), past_key(job_id, seq, history_limit)) or {}

    async def of_job(self, job_id: str) -> list[Run]:
        """The job's executing runs, oldest first."""
        rows = await self._table.scan(self.partition(job_id), *job_range("run", job_id))
        return [read_run(row) for row in rows]

    async def history(self, job_id: str) -> list[Ended | Stretch]:
        """What is recorded of the job's past, newest first."""
        rows = await self._table.scan(self.partition(job_id), *job_range("past", job_id))
        return sorted((read_past(row) for row in rows), key=lambda record: -record.seq)
