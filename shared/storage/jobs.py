"""Jobs as rows: reading, creating, replacing, removing. Every write is conditional on the job row's version."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.jobs.identity import all_partitions, partition_of
from shared.jobs.model import Baton, Ended, Idle, Job, Removal, Run, State, Stretch
from shared.storage.chunks import emptied
from shared.storage.formats import check_format, count_newer, is_newer
from shared.storage.history import past_row
from shared.storage.places import placed, whole_key
from shared.storage.records import baton_row, job_row, read_job, removal_row
from shared.storage.rows import job_key, job_range, prefix_range
from shared.storage.table import MAX_ROWS, Table, Verb, Write, moved

log = logging.getLogger("timerjobs.store")


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs in key order and the key to go on from; '' when the partition is at its end. `seen` counts the rows
    that were read: those of a newer format are left out."""

    jobs: list[Job]
    next_key: str
    seen: int


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
        """The job in whatever state, or None. Raises NewerFormat."""
        row = await self._table.get(self.partition(job_id), job_key(job_id))
        return read_job(row) if row else None

    async def wrote(self, job_id: str, mark: str) -> bool:
        """Whether the job row's last whole write bears `mark`: one's own commit whose answer was lost."""
        row = await self._table.get(self.partition(job_id), job_key(job_id))
        return row is not None and row["mark"] == mark

    async def create(self, job: Job, mark: str) -> None:
        """Inserts the job and its timer. Raises Refused where the id exists."""
        await self._table.commit(self.partition(job.id), creation(job, mark))

    async def create_all(self, partition: str, creations: Sequence[Write]) -> None:
        """Inserts jobs of a partition, all or none. Raises Refused where one of their ids exists."""
        await self._table.commit(partition, creations)

    async def replace(
        self,
        old: Job,
        new: Job,
        mark: str,
        *,
        runs: Sequence[Run] = (),
        gated: Sequence[Run | Idle] = (),
        records: Sequence[Ended | Stretch] = (),
        history_limit: int = 1,
    ) -> None:
        """Writes `new` over `old`, moves its timer along, inserts `runs` that it starts and history `records`.

        `gated` are executing and idle runs that count at its gate from now on. Raises Refused unless `old` and
        they are current.
        """
        row = job_row(new, mark) | emptied(old.core.definition, new.core.definition)
        writes = [Write(Verb.MERGE, row, old.etag)]
        old_row = timer_row(old)
        writes += moved(old_row["RowKey"] if old_row else "", timer_row(new))
        writes += [write for run in runs for write in placed(run)]
        writes += [Write(Verb.MERGE, {"RowKey": whole_key(run), "gated": True}, run.etag) for run in gated]
        writes += [Write(Verb.PUT, past_row(new.id, record, history_limit, mark)) for record in records]
        await self._table.commit(self.partition(new.id), writes)

    async def keys_of(self, job_id: str, kinds: Sequence[str]) -> list[str]:
        """The keys of the job's rows of these kinds, and of idle runs' timers with the rows that point to them.

        Raises NewerFormat if one of them is newer, since they are asked for to be deleted.
        """
        keys: list[str] = []
        for kind in kinds:
            rows = await self._table.scan(
                self.partition(job_id), *job_range(kind, job_id), select=["RowKey", "timer", "v"]
            )
            check_format(*rows)
            for row in rows:
                timer = await self._table.get(self.partition(job_id), row["timer"]) if row.get("timer") else None
                if timer:
                    check_format(timer)
                    keys.append(row["timer"])
                keys.append(row["RowKey"])
        return keys

    async def delete_rows(self, job_id: str, keys: Sequence[str]) -> None:
        """Deletes up to 99 of a job's rows. Raises Refused if one of them, or the job, is gone."""
        assert len(keys) < MAX_ROWS
        writes = [Write(Verb.DELETE, {"RowKey": key}) for key in keys]
        writes.append(Write(Verb.MERGE, {"RowKey": job_key(job_id)}))
        await self._table.commit(self.partition(job_id), writes)

    async def finish_removal(self, job: Job) -> None:
        """Deletes the job row and the removal timer. Raises Refused unless `job` is current."""
        row = timer_row(job)
        assert row
        writes = [
            Write(Verb.DELETE, {"RowKey": job_key(job.id)}, job.etag),
            Write(Verb.DELETE, {"RowKey": row["RowKey"]}),
        ]
        await self._table.commit(self.partition(job.id), writes)

    async def page(self, partition: str, prefix: str, from_key: str, limit: int) -> JobPage:
        """Up to `limit` jobs of a partition whose id starts with `prefix`, from `from_key` on ('': the first).

        One range read, one row more than asked for, which tells where the next page starts.
        """
        low, high = prefix_range(prefix)
        rows = await self._table.scan(partition, max(low, from_key), high, limit=limit + 1)
        next_key = rows[limit]["RowKey"] if len(rows) > limit else ""
        found, newer = rows[:limit], count_newer(rows[:limit])
        if newer:
            message = "%d jobs of a newer format version are not listed"
            log.warning(message, newer, extra={"action": "leave", "partition": partition, "count": newer})
        return JobPage([read_job(row) for row in found if not is_newer(row)], next_key, len(found))


def creation(job: Job, mark: str) -> list[Write]:
    """What inserts a job and its timer."""
    row = timer_row(job)
    return [Write(Verb.INSERT, job_row(job, mark)), *([Write(Verb.INSERT, row)] if row else [])]


def timer_row(job: Job) -> dict[str, Any] | None:
    """The one timer row that a job in this state has: its baton, the timer of its removal, or none."""
    if job.pending is None or job.state is State.SUSPENDED or job.gate.parked:
        return None
    if job.baton_due:
        return baton_row(Baton(job_id=job.id, core=job.core, pending=job.pending))
    return removal_row(Removal(job_id=job.id, due=job.pending.due))
