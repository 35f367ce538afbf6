"""Runs as rows: taking, leasing, checkpointing, completing them, and the history they leave."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from shared.jobs.identity import partition_of
from shared.jobs.model import TIMER_JOB, Idle, Run
from shared.jobs.times import row_text
from shared.storage.endings import Ending, Rest
from shared.storage.fair import Candidate, IsEnough, Turns, by_turns, whole
from shared.storage.formats import READABLE, check_format, count_newer, is_newer
from shared.storage.places import read_idle
from shared.storage.records import UNLOCKED, read_run, read_timer, run_lock, run_row
from shared.storage.rows import ALL_RUNS, idle_key, job_key, job_range, load_range, past_key, run_key
from shared.storage.table import MAX_ROWS, Row, Table, Verb, Write

# Clocks of two instances may differ by this much and no run has two holders: others count a lock as expired
# so much later than it says, its owner so much earlier.
SKEW = timedelta(seconds=5)

log = logging.getLogger("timerjobs.store")


class Runs:
    """The executing and idle runs of a table, and history."""

    def __init__(self, table: Table, partitions: int) -> None:
        self._table = table
        self._count = partitions

    def partition(self, job_id: str) -> str:
        """The PartitionKey of a job's rows."""
        return partition_of(job_id, self._count)

    async def get(self, job_id: str, seq: int) -> Run | None:
        """The run, while it is executing or should be. Raises NewerFormat."""
        row = await self._table.get(self.partition(job_id), run_key(job_id, seq))
        return read_run(row) if row else None

    async def find(self, job_id: str, seq: int) -> Run | None:
        """The run, executing or in nobody's memory; None once it has ended."""
        run = await self.get(job_id, seq)
        idle = None if run else await self.idle(job_id, seq)
        return idle.run if idle else run

    async def idle(self, job_id: str, seq: int) -> Idle | None:
        """The run, while it is idle or waits for a host. Raises NewerFormat."""
        partition = self.partition(job_id)
        pointer = await self._table.get(partition, idle_key(job_id, seq))
        if pointer:
            check_format(pointer)
        row = await self._table.get(partition, pointer["timer"]) if pointer else None
        if row:
            check_format(row)
        return _idle(row) if row else None

    async def free(
        self, partition: str, now: datetime, lock_duration: timedelta, after: str, is_enough: IsEnough
    ) -> Turns:
        """Runs that are unlocked, or whose lock ran out SKEW ago, or reaches further ahead than any lock does (a
        clock was wrong when it was written): by turns, their keys alone.

        Reads the partition's executing runs: work by what executes, not by how many jobs there are. Those of
        a newer format are left to newer versions.
        """
        where = f"{READABLE} and ({_is_free(now, lock_duration)})"
        return await by_turns(self._table, partition, ALL_RUNS, where, after, is_enough)

    async def read(self, turns: Turns, chosen: Sequence[Candidate]) -> tuple[list[Run], bool]:
        """Those of the chosen runs that are still free and can be read; False if some are left, beyond 4 MiB."""
        rows, all_read = await whole(self._table, turns, chosen)
        runs = [await self._read(turns.partition, row) for row in rows]
        return [run for run in runs if run], all_read

    async def waiting(self, job_id: str, service_type: str, limit: int) -> int:
        """How many of the job's runs wait for an executor, up to `limit`. One request."""
        own = service_type == TIMER_JOB
        keys = job_range("run", job_id) if own else load_range(service_type, job_id)
        where = f"lockedUntil eq '{UNLOCKED}'" if own else ""
        rows = await self._table.scan(self.partition(job_id), *keys, limit=limit, where=where, select=["RowKey"])
        return len(rows)

    async def _read(self, partition: str, row: Row) -> Run | None:
        """A free run; None if it cannot be read, or awaits a newer version."""
        try:
            run = read_run(row)
            return None if await self._awaits_newer(partition, run) else run
        except (KeyError, ValueError, TypeError):
            job_id = row["RowKey"].split(":")[1]
            log.exception("a run cannot be read: %s", row["RowKey"], extra={"action": "read", "job": job_id})
            return None

    async def _awaits_newer(self, partition: str, run: Run) -> bool:
        """Whether a run that was held before counts at the gate of a job of a newer format: it could be executed
        here again and again, and never be completed."""
        if not (run.gated and run.owner):
            return False
        return is_newer(await self._table.get(partition, job_key(run.job_id)) or {})

    async def any_free(self, partition: str, now: datetime, lock_duration: timedelta) -> tuple[bool, int]:
        """Whether there is a run as `free` gives them, or one of a newer format; and how many of these there
        are, if one is the first. One request, a second one then."""
        where, seen = _is_free(now, lock_duration), ["RowKey", "v"]
        rows = await self._table.scan(partition, *ALL_RUNS, limit=1, where=where, select=seen)
        if rows and is_newer(rows[0]):
            rows = await self._table.scan(partition, *ALL_RUNS, where=where, select=seen)
        return bool(rows), count_newer(rows)

    async def versions(self, partition: str, runs: Sequence[Run]) -> dict[tuple[str, int], str]:
        """The etags of those of these runs' rows that are still there, by job id and number; one query."""
        keys = [run_key(run.job_id, run.seq) for run in runs]
        rows = await self._table.scan(partition, min(keys), f"{max(keys)}!", select=["RowKey"])
        found = {row["RowKey"]: row["etag"] for row in rows}
        return {(run.job_id, run.seq): found[key] for run, key in zip(runs, keys, strict=True) if key in found}

    async def lock(self, partition: str, runs: Sequence[Run]) -> list[Run]:
        """Writes the lease that each run holds, and its start, at the version it was read; gives new etags.

        Raises Refused if any has changed, and then none is locked.
        """
        writes = [Write(Verb.MERGE, run_lock(run), run.etag) for run in runs]
        etags = await self._table.commit(partition, writes)
        return [replace(run, etag=etag) for run, etag in zip(runs, etags, strict=True)]

    async def checkpoint(self, run: Run) -> Run:
        """Replaces the run's row at its version; gives it with its new etag. Raises Refused."""
        write = Write(Verb.REPLACE, run_row(run), run.etag)
        (etag,) = await self._table.commit(self.partition(run.job_id), [write])
        return replace(run, etag=etag)

    async def leave(self, partition: str, units: Sequence[Ending | Rest]) -> list[str]:
        """Completes runs, or lets them rest, in one transaction; gives the etags of all writes in order.

        Raises Refused, and then nothing is written.
        """
        return await self._table.commit(partition, [w for unit in units for w in unit.writes])

    async def slot(self, job_id: str, seq: int, history_limit: int) -> Row:
        """The history row in this run's slot, or {}."""
        return await self._table.get(self.partition(job_id), past_key(job_id, seq, history_limit)) or {}

    async def is_recorded(self, job_id: str, seq: int, mark: str) -> bool:
        """Whether the run's record bears this mark, in whatever slot: the limit may have changed meanwhile."""
        rows = await self._table.scan(self.partition(job_id), *job_range("past", job_id), select=["seq", "mark"])
        return any((row["seq"], row["mark"]) == (seq, mark) for row in rows)

    async def of_job(self, job_id: str) -> list[Run]:
        """The job's executing runs, oldest first. Raises NewerFormat if one of them is newer."""
        rows = await self._table.scan(self.partition(job_id), *job_range("run", job_id))
        return [read_run(row) for row in rows]

    async def idle_of_job(self, job_id: str) -> list[Idle]:
        """The job's idle runs, oldest first; one that wakes meanwhile may be missing. Raises NewerFormat."""
        pointers = await self._table.scan(self.partition(job_id), *job_range("idle", job_id))
        found = [await self.idle(job_id, int(row["RowKey"].rsplit(":", 1)[1])) for row in pointers]
        return [idle for idle in found if idle]

    async def count(self, job_id: str) -> int:
        """How many runs of the job are executing or idle."""
        partition, total = self.partition(job_id), 0
        for kind in ("run", "idle"):
            total += len(await self._table.scan(partition, *job_range(kind, job_id), select=["RowKey"]))
        return total

    async def shorten_history(self, job_id: str, limit: int) -> None:
        """Puts the newest `limit` records of the job's history into the slots of that limit, and deletes the rest.

        Raises Refused if the job is gone, or a row that is to go is; NewerFormat if one is newer.
        """
        partition = self.partition(job_id)
        rows = await self._table.scan(partition, *job_range("past", job_id))
        check_format(*rows)
        rows = sorted(rows, key=lambda row: -int(row["seq"]))
        kept = {past_key(job_id, row["seq"], limit): row for row in reversed(rows[:limit])}
        writes = [Write(Verb.PUT, {**row, "RowKey": key}) for key, row in kept.items() if row["RowKey"] != key]
        writes += [Write(Verb.DELETE, {"RowKey": row["RowKey"]}) for row in rows if row["RowKey"] not in kept]
        for start in range(0, len(writes), MAX_ROWS - 1):
            chunk = writes[start : start + MAX_ROWS - 1]
            await self._table.commit(partition, [*chunk, Write(Verb.MERGE, {"RowKey": job_key(job_id)})])


def _idle(row: Row) -> Idle | None:
    if row["kind"] == "load":
        return read_idle(row)
    timer = read_timer(row)
    return timer if isinstance(timer, Idle) else None


def _is_free(now: datetime, lock_duration: timedelta) -> str:
    ran_out, impossible = row_text(now - SKEW), row_text(now + lock_duration + 2 * SKEW)
    return f"lockedUntil lt '{ran_out}' or lockedUntil gt '{impossible}'"
