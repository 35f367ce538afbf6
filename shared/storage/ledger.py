"""The app's own rows: how many partitions the table was laid out in, and how far detection has come."""

from dataclasses import dataclass
from datetime import datetime

from shared.errors import Fault, Misconfigured
from shared.jobs.times import from_row_text, row_text
from shared.storage.table import Refused, Table, Verb, Write

PARTITION = "app"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far detection has come: timers due before `reach` have been announced; the last cycle ended then.

    `newer` counts the rows of a newer format that it saw overdue or free.
    """

    reach: datetime
    cycle_ended: datetime
    newer: int = 0
    etag: str = ""


class Ledger:
    """The app's own rows of a table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def agree_on_partitions(self, partitions: int) -> None:
        """Records the number at first start; raises Misconfigured on PARTITIONS where another is recorded,
        since a job's rows would then be looked for in the wrong place."""
        row = await self._table.get(PARTITION, "partitions")
        if row is None:
            try:
                record = {"RowKey": "partitions", "count": partitions}
                await self._table.commit(PARTITION, [Write(Verb.INSERT, record)])
                return
            except Refused:
                row = await self._table.get(PARTITION, "partitions")
        recorded = row["count"] if row else None
        if recorded != partitions:
            reason = f"is {partitions}, but this table was laid out with {recorded}, which cannot change"
            raise Misconfigured([Fault("PARTITIONS", reason)])

    async def progress(self) -> Progress | None:
        """How far detection has come, or None before its first cycle."""
        row = await self._table.get(PARTITION, "reach")
        if row is None:
            return None
        return Progress(
            reach=from_row_text(row["reach"]),
            cycle_ended=from_row_text(row["cycleEnded"]),
            newer=row.get("newer", 0),
            etag=row["etag"],
        )

    async def advance(self, progress: Progress) -> bool:
        """Writes `progress` over the version it bears (none: as the first); False if another cycle did."""
        row = {
            "RowKey": "reach",
            "reach": row_text(progress.reach),
            "cycleEnded": row_text(progress.cycle_ended),
            "newer": progress.newer,
        }
        verb = Verb.REPLACE if progress.etag else Verb.INSERT
        try:
            await self._table.commit(PARTITION, [Write(verb, row, progress.etag)])
        except Refused:
            return False
        return True
