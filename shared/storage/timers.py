"""Timers as rows: reading what is due by key range, and firing it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from shared.jobs.model import BadTimer, Baton, Idle, NewerTimer, Removal
from shared.jobs.times import SECOND, ceil_second, floor_second, from_key_text, row_text
from shared.storage.formats import count_newer, is_newer
from shared.storage.places import idle_place, idle_rows
from shared.storage.records import baton_row, read_timer
from shared.storage.rows import idle_key, job_key, timer_key, timer_range
from shared.storage.shots import Shot
from shared.storage.table import Refused, Table, Verb, Write

Timer = Baton | Removal | Idle | BadTimer | NewerTimer


class Timers:
    """The timer rows of a table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def due(self, partition: str, now: datetime, after: str, limit: int) -> tuple[list[Timer], str]:
        """Up to `limit` timers due at `now`, oldest first, behind the key `after` ('': from the first on),
        and the key to go on behind; '' when there are no more.

        (`!` sorts before every character of an id, so no key lies between.)
        """
        low, high = timer_range(floor_second(now) + SECOND)
        rows = await self._table.scan(partition, f"{after}!" if after else low, high, limit=limit)
        return [read_timer(row) for row in rows], rows[-1]["RowKey"] if len(rows) >= limit else ""

    async def versions(self, partition: str, keys: Sequence[str]) -> dict[str, str]:
        """The etags of those of these timers' rows that are still there, by key; one query."""
        low, high = min(keys), f"{max(keys)}!"
        rows = await self._table.scan(partition, low, high, select=["RowKey"])
        found = {row["RowKey"]: row["etag"] for row in rows}
        return {key: found[key] for key in keys if key in found}

    async def fire(self, partition: str, shots: Sequence[Shot]) -> list[str]:
        """Commits the shots in one transaction; gives the new etag of each shot's run ('' for none).

        Raises Refused, and then nothing has been written.
        """
        etags = await self._table.commit(partition, [w for shot in shots for w in shot.writes])
        runs = []
        for shot in shots:
            its, etags = etags[: len(shot.writes)], etags[len(shot.writes) :]
            runs.append(its[_run_index(shot)] if shot.run and not shot.run.awaits_host else "")
        return runs

    async def set_aside(
        self, partition: str, timer: Baton | Idle | BadTimer, until: datetime, why: str
    ) -> datetime:
        """Moves a timer to `until` and notes the fault on the job row, so that it stops nobody else.

        Gives the second it is keyed under now. Raises Refused if somebody else moved it, or its job does not
        exist.
        """
        due = ceil_second(until)
        job = {"RowKey": job_key(timer.job_id), "fault": why}
        writes = [Write(Verb.DELETE, {"RowKey": _key(timer)}, timer.etag)]
        if isinstance(timer, Baton):
            moved = replace(timer, pending=replace(timer.pending, due=due), set_asides=timer.set_asides + 1)
            writes.append(Write(Verb.INSERT, baton_row(moved)))
            job["nextDue"] = row_text(due)
        elif isinstance(timer, Idle):
            row, pointer = idle_rows(replace(timer, due=due))
            writes += [Write(Verb.INSERT, row), Write(Verb.REPLACE, pointer)]
        else:
            writes += _bad_moved(timer, due)
            if _seq(timer) is None:
                job["nextDue"] = row_text(due)
        await self._table.commit(partition, [*writes, Write(Verb.MERGE, job)])
        return due

    async def drop_orphan(self, partition: str, timer: Baton | Idle | BadTimer) -> bool:
        """Deletes a timer whose job does not exist; False if the job does, or the timer has changed."""
        if await self._table.get(partition, job_key(timer.job_id)) is not None:
            return False
        try:
            await self._table.commit(partition, [Write(Verb.DELETE, {"RowKey": _key(timer)}, timer.etag)])
        except Refused:
            return False
        return True

    async def oldest(self, partition: str, before: datetime) -> datetime | None:
        """When the partition's first timer due before `before` is due; None if there is none. One request."""
        rows = await self._table.scan(partition, *timer_range(before), limit=1, select=["RowKey"])
        return _due(rows[0]["RowKey"]) if rows else None

    async def overdue(self, partition: str, before: datetime) -> tuple[datetime | None, int]:
        """`oldest`, and how many timers are of a newer format, if the first is: one request, a second one then."""
        seen = ["RowKey", "v"]
        rows = await self._table.scan(partition, *timer_range(before), limit=1, select=seen)
        if rows and is_newer(rows[0]):
            rows = await self._table.scan(partition, *timer_range(before), select=seen)
        return (_due(rows[0]["RowKey"]) if rows else None), count_newer(rows)

    async def dues(self, partition: str, since: datetime, before: datetime) -> set[datetime]:
        """The seconds in [since, before) at which timers are due."""
        low, high = timer_range(ceil_second(before), floor_second(since))
        rows = await self._table.scan(partition, low, high, select=["RowKey"])
        return {_due(row["RowKey"]) for row in rows}


def _key(timer: Baton | Idle | BadTimer) -> str:
    if isinstance(timer, Baton):
        return timer_key(timer.pending.due, timer.job_id)
    if isinstance(timer, Idle):
        return idle_place(timer)
    key: str = timer.row["RowKey"]
    return key


def _seq(timer: BadTimer) -> int | None:
    parts = _key(timer).split(":")
    return int(parts[3]) if len(parts) == 4 and parts[3].isdigit() else None


def _bad_moved(timer: BadTimer, due: datetime) -> list[Write]:
    """A row that cannot be read, as it is under another key; with its pointer if it is an idle run's."""
    seq = _seq(timer)
    key = timer_key(due, timer.job_id, seq)
    writes = [Write(Verb.INSERT, {**timer.row, "RowKey": key})]
    if seq is not None:
        writes.append(Write(Verb.MERGE, {"RowKey": idle_key(timer.job_id, seq), "timer": key}))
    return writes


def _run_index(shot: Shot) -> int:
    return next(i for i, write in enumerate(shot.writes) if write.key.startswith("run:"))


def _due(key: str) -> datetime:
    return from_key_text(key.split(":", 2)[1])
