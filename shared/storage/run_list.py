"""The runs of one job as they are listed: first where each of them lies, then as many as are wanted whole."""

from collections.abc import Collection, Iterator, Mapping

from shared.giving_way import give_way
from shared.jobs.identity import partition_of
from shared.jobs.model import Ended, Idle, Run, Stretch
from shared.storage.formats import check_format
from shared.storage.history import read_past
from shared.storage.records import read_run
from shared.storage.rows import job_range, past_key
from shared.storage.runs import Runs
from shared.storage.table import Row, Table

Listed = Run | Idle | Ended | Stretch

NEAR = 3
"""Keys whose numbers differ by no more are read by one range, with whatever lies between them."""


class RunList:
    """What a table holds of a job's runs."""

    def __init__(self, table: Table, partitions: int, runs: Runs) -> None:
        self._table = table
        self._count = partitions
        self._runs = runs

    async def keys(self, job_id: str, history_limit: int) -> dict[int, str]:
        """The keys of the job's runs by number: of idle and executing ones, and the newest `history_limit` of the
        past. One that changes its state meanwhile is where it is later. Rows are not read whole."""
        partition = partition_of(job_id, self._count)
        found: dict[int, str] = {}
        for kind in ("idle", "run", "idle"):  # a run may wake meanwhile, or be put to rest
            rows = await self._table.scan(partition, *job_range(kind, job_id), select=["RowKey"])
            found |= {_number(row["RowKey"]): row["RowKey"] for row in rows}
        return found | await self._past_keys(job_id, history_limit)

    async def read(self, job_id: str, keys: Mapping[int, str]) -> dict[int, Listed]:
        """The runs at these keys by number; those that have left meanwhile are missing. Raises NewerFormat."""
        partition = partition_of(job_id, self._count)
        numbers = {key: seq for seq, key in keys.items()}
        found: dict[int, Listed] = {}
        for low, high in _ranges(numbers):
            for row in await self._table.scan(partition, low, f"{high}!"):
                await give_way()
                key = row["RowKey"]
                seq = numbers.get(key)
                if seq is None:
                    continue
                if key.startswith("idle:"):
                    if idle := await self._runs.idle(job_id, seq):
                        found[seq] = idle
                elif key.startswith("run:"):
                    found[seq] = read_run(row)
                elif _is_record(row, seq):
                    found[seq] = read_past(row)
        return found

    async def one(self, job_id: str, seq: int, history_limit: int) -> Listed | None:
        """The run of this number in whatever state, or None. Reads it alone. Raises NewerFormat."""
        partition = partition_of(job_id, self._count)
        row = await self._table.get(partition, past_key(job_id, seq, history_limit))
        if row and _is_record(row, seq):
            return read_past(row)
        return await self._present(job_id, seq) or await self._displaced(job_id, seq, history_limit)

    async def _present(self, job_id: str, seq: int) -> Run | Idle | None:
        """The run while it has not ended; one that goes to and fro between rows is met in one of them."""
        runs = self._runs
        return await runs.get(job_id, seq) or await runs.idle(job_id, seq) or await runs.get(job_id, seq)

    async def _displaced(self, job_id: str, seq: int, history_limit: int) -> Ended | Stretch | None:
        """The record of a run that has just ended, or that lies in a slot of another limit."""
        key = (await self._past_keys(job_id, history_limit)).get(seq)
        row = await self._table.get(partition_of(job_id, self._count), key) if key else None
        return read_past(row) if row and _is_record(row, seq) else None

    async def _past_keys(self, job_id: str, history_limit: int) -> dict[int, str]:
        partition, columns = partition_of(job_id, self._count), ["RowKey", "seq", "kind"]
        rows = await self._table.scan(partition, *job_range("past", job_id), select=columns)
        keys = {row["seq"]: row["RowKey"] for row in rows if row["kind"] != "mark"}
        return {seq: keys[seq] for seq in sorted(keys, reverse=True)[:history_limit]}


def _is_record(row: Row, seq: int) -> bool:
    check_format(row)
    return bool(row["seq"] == seq and row["kind"] != "mark")


def _number(key: str) -> int:
    return int(key.rsplit(":", 1)[1])


def _ranges(keys: Collection[str]) -> Iterator[tuple[str, str]]:
    """The lowest and the highest key of each group of near ones of a kind."""
    low = high = ""
    for key in sorted(keys):
        if high and (key.rsplit(":", 1)[0] != high.rsplit(":", 1)[0] or _number(key) - _number(high) > NEAR):
            yield low, high
            low = ""
        low, high = low or key, key
    if high:
        yield low, high
