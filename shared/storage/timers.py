"""Timers as rows: reading what is due by key range, and firing it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.jobs.model import BadTimer, Baton, Pending, Removal, Run, State
from shared.jobs.plan import Turn
from shared.jobs.times import SECOND, ceil_second, floor_second, from_key_text, row_text
from shared.storage.rows import (
    baton_row,
    job_key,
    job_progress,
    past_row,
    read_timer,
    run_row,
    timer_key,
    timer_range,
)
from shared.storage.table import Refused, Table, Verb, Write

Timer = Baton | Removal | BadTimer


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One turn of one job's timer, ready to be committed: the baton it takes, the run it starts if any.

    `writes`: [baton moved on or gone, run inserted, stretch recorded, job merged], each row once.
    """

    baton: Baton
    turn: Turn
    run: Run | None
    writes: Sequence[Write]


def aim(baton: Baton, turn: Turn, run: Run | None, history_limit: int) -> Shot:
    """The shot that carries out a planned turn."""
    job_id = baton.job_id
    writes = _moved(baton, turn)
    if run:
        writes.append(Write(Verb.INSERT, run_row(run)))
    if turn.missed:
        writes.append(Write(Verb.PUT, past_row(job_id, turn.missed, history_limit)))
    state = State.ENABLED if turn.pending else State.COMPLETED
    writes.append(Write(Verb.MERGE, job_progress(job_id, turn.core, turn.pending, state)))
    return Shot(baton=baton, turn=turn, run=run, writes=writes)


def _moved(baton: Baton, turn: Turn) -> list[Write]:
    key = timer_key(baton.pending.due, baton.job_id)
    if turn.pending is None:
        return [Write(Verb.DELETE, {"RowKey": key}, baton.etag)]
    row = baton_row(Baton(job_id=baton.job_id, core=turn.core, pending=turn.pending))
    if row["RowKey"] == key:
        return [Write(Verb.REPLACE, row, baton.etag)]
    return [Write(Verb.DELETE, {"RowKey": key}, baton.etag), Write(Verb.INSERT, row)]


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

    async def versions(self, partition: str, batons: Sequence[Baton]) -> dict[str, str]:
        """The etag that each of these batons' rows has now, by job id; one query, those gone left out."""
        dues = [baton.pending.due for baton in batons]
        low, high = timer_range(max(dues) + SECOND, min(dues))
        rows = await self._table.scan(partition, low, high, select=["RowKey"])
        now = {row["RowKey"]: row["etag"] for row in rows}
        keys = {baton.job_id: timer_key(baton.pending.due, baton.job_id) for baton in batons}
        return {job_id: now[key] for job_id, key in keys.items() if key in now}

    async def fire(self, partition: str, shots: Sequence[Shot]) -> list[str]:
        """Commits the shots in one transaction; gives the new etag of each shot's run ('' for none).

        Raises Refused, and then nothing has been written.
        """
        etags = await self._table.commit(partition, [w for shot in shots for w in shot.writes])
        runs = []
        for shot in shots:
            its, etags = etags[: len(shot.writes)], etags[len(shot.writes) :]
            runs.append(its[_run_index(shot)] if shot.run else "")
        return runs

    async def set_aside(self, partition: str, timer: Baton | BadTimer, until: datetime, why: str) -> datetime:
        """Moves a timer to `until` and notes the fault on the job row, so that it stops nobody else.

        Gives the second it is keyed under now.

        Raises Refused if somebody else moved it, or its job does not exist.
        """
        due = ceil_second(until)
        if isinstance(timer, Baton):
            row = baton_row(
                Baton(
                    job_id=timer.job_id,
                    core=timer.core,
                    pending=Pending(scheduled=timer.pending.scheduled, due=due),
                    set_asides=timer.set_asides + 1,
                )
            )
        else:
            row = {**timer.row, "RowKey": timer_key(due, timer.job_id)}
        await self._table.commit(
            partition,
            [
                Write(Verb.DELETE, {"RowKey": _key(timer)}, timer.etag),
                Write(Verb.INSERT, row),
                Write(Verb.MERGE, {"RowKey": job_key(timer.job_id), "fault": why, "nextDue": row_text(due)}),
            ],
        )
        return due

    async def drop_orphan(self, partition: str, timer: Baton | BadTimer) -> bool:
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

    async def dues(self, partition: str, since: datetime, before: datetime) -> set[datetime]:
        """The seconds in [since, before) at which timers are due."""
        low, high = timer_range(ceil_second(before), floor_second(since))
        rows = await self._table.scan(partition, low, high, select=["RowKey"])
        return {_due(row["RowKey"]) for row in rows}


def _key(timer: Baton | BadTimer) -> str:
    if isinstance(timer, Baton):
        return timer_key(timer.pending.due, timer.job_id)
    key: str = timer.row["RowKey"]
    return key


def _run_index(shot: Shot) -> int:
    return next(i for i, write in enumerate(shot.writes) if write.key.startswith("run:"))


def _due(key: str) -> datetime:
    return from_key_text(key.split(":", 2)[1])
