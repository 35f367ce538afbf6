"""Reading rows of many jobs so that each gets its turn, and no reading grows with what the rows weigh.

Keys are `…:{id}:{seq}`: the rows of one job lie side by side, however many. First keys alone are read, passing
over the rest of a job that fills a page; then, of those the reader chooses, the whole rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from shared.jobs.model import TIMER_JOB
from shared.storage.table import Row, Table

PAGE = 100
PAGES = 10  # of keys, of one reading
FIRST = 16  # whole rows that are read before it is known what they weigh
MAX_BYTES = 4 * 1024 * 1024
NEAR = 32  # rows not chosen that are read along, rather than by another request around them

SEEN = ["RowKey", "serviceType"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that may be taken, as its key tells; whoever looks reads no more of it."""

    key: str
    service_type: str

    @property
    def job_id(self) -> str:
        """The job that it is of."""
        return _job(self.key).rpartition(":")[2]


IsEnough = Callable[[Sequence[Candidate]], bool]
"""Whether the rows seen so far are as many as their reader can choose."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Rows to be taken by turns: the first one of each job, then the second of each, as far as `pages` of keys
    were seen. `is_cut`: it ended before it had come round, so there may be further jobs; `more`: there may be
    further rows."""

    partition: str
    where: str
    rows: Sequence[Candidate]
    pages: Sequence[Sequence[str]]
    is_cut: bool
    more: bool

    @property
    def last(self) -> str:
        """The last key that was seen; '' if none was."""
        return self.pages[-1][-1] if self.pages and self.pages[-1] else ""


async def by_turns(
    table: Table,
    partition: str,
    keys: tuple[str, str],
    where: str,
    after: str,
    is_enough: IsEnough,
) -> Turns:
    """The rows of a range that meet a condition, by their keys. It begins with the job behind the key `after`
    ('': with the first job), comes round to those before it, and ends early once `is_enough` says so."""
    low, high = keys
    begin = _behind(after) if low <= after < high else low
    pages: list[list[Candidate]] = []
    is_cut = False
    for start, end in ((begin, high), (low, begin)):
        while start < end and not is_cut:
            rows = await table.scan(partition, start, end, limit=PAGE, where=where, select=SEEN)
            pages.append([Candidate(row["RowKey"], row.get("serviceType") or TIMER_JOB) for row in rows])
            if len(rows) < PAGE:
                break
            start = _behind(pages[-1][-1].key)
            is_cut = len(pages) >= PAGES or is_enough([row for page in pages for row in page])
    by_job: dict[str, list[Candidate]] = {}
    for row in chain.from_iterable(pages):
        by_job.setdefault(row.job_id, []).append(row)
    return Turns(
        partition=partition,
        where=where,
        rows=[row for turn in zip_longest(*by_job.values()) for row in turn if row],
        pages=[[row.key for row in page] for page in pages],
        is_cut=is_cut,
        more=is_cut or any(len(page) == PAGE for page in pages),
    )


async def whole(table: Table, turns: Turns, chosen: Sequence[Candidate]) -> tuple[list[Row], bool]:
    """Those of the chosen rows that are still there, in the order chosen; and whether that is all: at some 4 MiB
    it ends."""
    found: dict[str, Row] = {}
    wanted, size = {row.key for row in chosen}, 0
    for first, last, rows in _spans(turns, wanted):
        start, left = first, rows
        while left > 0:
            if size >= MAX_BYTES:
                return _in_order(found, chosen), False
            most = FIRST if not found else max(1, min(left, (MAX_BYTES - size) * len(found) // max(size, 1)))
            page = await table.scan(turns.partition, start, f"{last}!", limit=min(most, left), where=turns.where)
            found |= {row["RowKey"]: row for row in page}
            size += sum(map(_weight, page))
            if len(page) < min(most, left):
                break
            start, left = f"{page[-1]['RowKey']}!", left - len(page)
    return _in_order(found, chosen), True


def _job(key: str) -> str:
    """What the keys of one job's rows begin with."""
    return key.rpartition(":")[0]


def _behind(key: str) -> str:
    """Where the keys of later jobs begin."""
    return f"{_job(key)};"


def _spans(turns: Turns, wanted: set[str]) -> Iterator[tuple[str, str, int]]:
    """First key, last key and number of rows of each stretch to be read at once. No page is left: behind it there
    may be any number of rows."""
    for page in turns.pages:
        places = [place for place, key in enumerate(page) if key in wanted]
        begin = 0
        for n, place in enumerate(places):
            if n + 1 == len(places) or places[n + 1] - place > NEAR:
                first = places[begin]
                yield page[first], page[place], place - first + 1
                begin = n + 1


def _weight(row: Row) -> int:
    return sum(len(value) if isinstance(value, bytes | str) else 8 for value in row.values())


def _in_order(found: Mapping[str, Row], chosen: Sequence[Candidate]) -> list[Row]:
    return [found[row.key] for row in chosen if row.key in found]
