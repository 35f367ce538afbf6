"""Reading rows of many jobs so that each gets its turn, and no reading grows with what the rows weigh.

Keys are `…:{id}:{seq}`: the rows of one job lie side by side, however many. First keys alone are read, passing
over the rest of a job that fills a page; then, of those chosen, the whole rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from shared.storage.table import Row, Table

PAGE = 100
PAGES = 10  # of keys, of one reading
FIRST = 16  # whole rows that are read before it is known what they weigh
MAX_BYTES = 4 * 1024 * 1024
NEAR = 32  # rows not chosen that are read along, rather than by another request around them


@dataclass(frozen=True, slots=True)
class Turns:
    """Rows to be taken by turns: `keys` in the order in which to, the pages of keys that were seen, and whether
    there are further ones."""

    keys: Sequence[str]
    pages: Sequence[Sequence[str]]
    more: bool


async def by_turns(
    table: Table, partition: str, keys: tuple[str, str], where: str, after: str, limit: int
) -> Turns:
    """The keys of up to `limit` rows of a range: the first one of each job, then the second of each. It begins
    with the job behind the key `after` ('': with the first job), and comes round to those before it."""
    low, high = keys
    begin = behind(after) if low <= after < high else low
    pages: list[list[str]] = []
    more = False
    for start, end in ((begin, high), (low, begin)):
        while start < end and not more:
            rows = await table.scan(partition, start, end, limit=PAGE, where=where, select=["RowKey"])
            pages.append([row["RowKey"] for row in rows])
            if len(rows) < PAGE:
                break
            start = behind(pages[-1][-1])
            more = len(pages) >= PAGES or len({job_of(key) for page in pages for key in page}) >= limit
    by_job: dict[str, list[str]] = {}
    for key in chain.from_iterable(pages):
        by_job.setdefault(job_of(key), []).append(key)
    turns = [key for turn in zip_longest(*by_job.values()) for key in turn if key]
    more = more or len(turns) > limit or any(len(page) == PAGE for page in pages)
    return Turns(keys=turns[:limit], pages=pages, more=more)


async def whole(table: Table, partition: str, turns: Turns, where: str) -> tuple[dict[str, Row], bool]:
    """Those rows whole, by key; and whether that is all of them: at some 4 MiB it ends, as it does where rows
    go."""
    found: dict[str, Row] = {}
    wanted, size = set(turns.keys), 0
    for first, last, rows in _spans(turns, wanted):
        start, left = first, rows
        while left > 0:
            most = FIRST if not found else max(1, min(left, (MAX_BYTES - size) * len(found) // max(size, 1)))
            page = await table.scan(partition, start, f"{last}!", limit=min(most, left), where=where)
            found |= {row["RowKey"]: row for row in page}
            size += sum(map(_weight, page))
            if size >= MAX_BYTES:
                return _only(found, wanted), False
            if len(page) < min(most, left):
                break
            start, left = f"{page[-1]['RowKey']}!", left - len(page)
    return _only(found, wanted), True


def job_of(key: str) -> str:
    """What the keys of one job's rows begin with."""
    return key.rpartition(":")[0]


def behind(key: str) -> str:
    """Where the keys of later jobs begin."""
    return f"{job_of(key)};"


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


def _only(found: dict[str, Row], wanted: set[str]) -> dict[str, Row]:
    return {key: row for key, row in found.items() if key in wanted}
