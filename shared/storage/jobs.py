"""Jobs as rows: reading, creating, replacing, removing. Every write is conditional on the job row's version."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.jobs.identity import all_partitions, partition_of
from shared.jobs.model import Baton, Job, Removal, State
from shared.storage.rows import (
    baton_row,
    job_key,
    job_range,
    job_row,
    prefix_range,
    read_job,
    removal_row,
    timer_key,
)
from shared.storage.table import MAX_ROWS, Table, Verb, Write


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs in key order and the key to go on from; '' when the partition is at its end."""

    jobs: list[Job]
    next_key: str


class Jobs:
    """The job rows of a table, and what goes with them in one transaction."""

    def __init__(self, table: Table, partitions: int) -> None:
        self._table = table
        self._count = partitions

    @property
    def partitions(self) -> list[str]:
        """Every PartitionKey."""
        return all_partitions(self._count)

    def partition(self, job_id: str) -> str:
        """The PartitionKey of a job's rows."""
        return partition_of(job_id, self._count)

    async def get(self, job_id: str) -> Job | None:
        """The job in whatever state, or None."""
        row = await self._table.get(self.partition(job_id), job_key(job_id))
        return read_job(row) if row else None

    async def wrote(self, job_id: str, mark: str) -> bool:
        """Whether the job row's last whole write bears `mark`: one's own commit whose answer was lost."""
        row = await self._table.get(self.partition(job_id), job_key(job_id))
        return row is not None and row["mark"] == mark

    async def create(self, job: Job, mark: str) -> None:
        """Inserts the job and its baton. Raises Refused where the id exists."""
        writes = [Write(Verb.INSERT, job_row(job, mark))]
        if job.pending:
            writes.append(Write(Verb.INSERT, baton_row(_baton(job))))
        await self._table.commit(self.partition(job.id), writes)

    async def replace(self, old: Job, new: Job, mark: str) -> None:
        """Writes `new` over `old` and moves the baton along. Raises Refused unless `old` is current."""
        writes = [Write(Verb.MERGE, job_row(new, mark), old.etag)]
        old_key = timer_key(old.pending.due, old.id) if old.pending else None
        row = baton_row(_baton(new)) if new.pending else None
        if row and row["RowKey"] == old_key:
            writes.append(Write(Verb.REPLACE, row))
        else:
            writes += [Write(Verb.DELETE, {"RowKey": old_key})] if old_key else []
            writes += [Write(Verb.INSERT, row)] if row else []
        await self._table.commit(self.partition(new.id), writes)

    async def begin_removal(self, old: Job, new: Job, mark: str) -> None:
        """Makes the job Deleting, with a timer of its removal at `new.pending.due` in place of its baton.

        Raises Refused unless `old` is current.
        """
        assert new.state is State.DELETING
        assert new.pending
        row = removal_row(Removal(job_id=new.id, due=new.pending.due))
        writes = [Write(Verb.MERGE, job_row(new, mark), old.etag)]
        old_key = timer_key(old.pending.due, old.id) if old.pending else None
        if row["RowKey"] == old_key:
            writes.append(Write(Verb.REPLACE, row))
        else:
            writes += [Write(Verb.DELETE, {"RowKey": old_key})] if old_key else []
            writes.append(Write(Verb.INSERT, row))
        await self._table.commit(self.partition(new.id), writes)

    async def keys_of(self, job_id: str, kinds: Sequence[str], since: int | None = None) -> list[str]:
        """The keys of the job's rows of these kinds; with `since`, history slots from that number on."""
        keys: list[str] = []
        for kind in kinds:
            low, high = job_range(kind, job_id)
            low = low if since is None else f"{low}{since:05d}"
            rows = await self._table.scan(self.partition(job_id), low, high, select=["RowKey"])
            keys += [row["RowKey"] for row in rows]
        return keys

    async def delete_rows(self, job_id: str, keys: Sequence[str]) -> None:
        """Deletes up to 99 of a job's rows. Raises Refused if one of them, or the job, is gone."""
        assert len(keys) < MAX_ROWS
        writes = [Write(Verb.DELETE, {"RowKey": key}) for key in keys]
        writes.append(Write(Verb.MERGE, {"RowKey": job_key(job_id)}))
        await self._table.commit(self.partition(job_id), writes)

    async def finish_removal(self, job: Job) -> None:
        """Deletes the job row and the removal timer. Raises Refused unless `job` is current."""
        assert job.pending
        writes = [
            Write(Verb.DELETE, {"RowKey": job_key(job.id)}, job.etag),
            Write(Verb.DELETE, {"RowKey": timer_key(job.pending.due, job.id)}),
        ]
        await self._table.commit(self.partition(job.id), writes)

    async def page(self, partition: str, prefix: str, from_key: str, limit: int) -> JobPage:
        """Up to `limit` jobs of a partition whose id starts with `prefix`, from `from_key` on ('': the first).

        One range read, one row more than asked for, which tells where the next page starts.
        """
        low, high = prefix_range(prefix)
        rows = await self._table.scan(partition, max(low, from_key), high, limit=limit + 1)
        next_key = rows[limit]["RowKey"] if len(rows) > limit else ""
        return JobPage([read_job(row) for row in rows[:limit]], next_key)


def _baton(job: Job) -> Baton:
    assert job.pending
    return Baton(job_id=job.id, core=job.core, pending=job.pending)
