"""Runs that wait for a host of their service type, as rows: which types, which runs, taking one."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from shared.jobs.model import Idle, Run
from shared.jobs.times import from_row_text
from shared.storage.fair import Candidate, IsEnough, Turns, by_turns, whole
from shared.storage.formats import READABLE, is_newer
from shared.storage.places import read_idle
from shared.storage.rows import ALL_LOADS, load_key, load_range, run_key, type_of_text
from shared.storage.shots import wake
from shared.storage.table import Row, Table

log = logging.getLogger("timerjobs.store")

PAGE = 100


class Loads:
    """The load rows of a table. Those of a newer format are left to newer versions."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def types(self, partition: str) -> list[str]:
        """The service types of which runs wait in a partition: one request, and one more for each type."""
        low, high = ALL_LOADS
        found = []
        while rows := await self._table.scan(partition, low, high, limit=1, select=["RowKey"]):
            text = rows[0]["RowKey"].split(":")[1]
            found.append(type_of_text(text))
            _, low = load_range(found[-1])
        return found

    async def keys(self, partition: str, service_type: str) -> list[tuple[datetime, str, int]]:
        """When each of up to 100 waiting runs of a type was fired, its job and its number, oldest first."""
        rows = await self._table.scan(
            partition, *load_range(service_type), limit=PAGE, where=READABLE, select=["RowKey", "firedAt"]
        )
        return sorted((from_row_text(row["firedAt"]), *_name(row)) for row in rows)

    async def get(self, partition: str, service_type: str, job_id: str, seq: int) -> Idle | None:
        """The run, while it waits; also None where its row cannot be read, which is logged."""
        row = await self._table.get(partition, load_key(service_type, job_id, seq))
        return _read(row) if row and not is_newer(row) else None

    async def waiting(self, partition: str, service_type: str, after: str, is_enough: IsEnough) -> Turns:
        """The waiting runs of a type: by turns, their keys alone."""
        return await by_turns(self._table, partition, load_range(service_type), READABLE, after, is_enough)

    async def read(self, turns: Turns, chosen: Sequence[Candidate]) -> tuple[list[Idle], bool]:
        """Those of the chosen runs that still wait and can be read; False if some are left, beyond 4 MiB."""
        rows, all_read = await whole(self._table, turns, chosen)
        return [idle for idle in map(_read, rows) if idle], all_read

    async def activations(self, partition: str, service_type: str) -> Sequence[str]:
        """The activation parameters that up to 100 waiting runs of a type bear, each once."""
        rows = await self._table.scan(
            partition, *load_range(service_type), limit=PAGE, where=READABLE, select=["RowKey", "activation"]
        )
        return sorted({row["activation"] for row in rows} - {""})

    async def take(self, partition: str, waiting: Idle, run: Run) -> Run:
        """Makes a waiting run, or an idle one, an executing run, locked as `run` says; gives it with its etag.

        Raises Refused if it was taken, cancelled or removed.
        """
        shot = wake(waiting, run)
        etags = await self._table.commit(partition, shot.writes)
        versions = dict(zip((write.key for write in shot.writes), etags, strict=True))
        return replace(run, etag=versions[run_key(run.job_id, run.seq)])


def _name(row: Row) -> tuple[str, int]:
    _, _, job_id, seq = row["RowKey"].split(":")
    return job_id, int(seq)


def _read(row: Row) -> Idle | None:
    try:
        return read_idle(row)
    except (KeyError, ValueError, TypeError):
        log.exception("a waiting run cannot be read: %s", row["RowKey"], extra={"action": "read"})
        return None
