"""Every two of dispatch, execution, detection and operations on one job, interleaved at their storage requests."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import combinations_with_replacement
from typing import Any

import pytest

from shared.jobs.model import Ended, State, Status, Stretch
from shared.jobs.times import json_text, key_text
from shared.storage.history import read_past
from shared.storage.records import read_job
from shared.storage.table import Verb, Write
from tests.audit import audit, faults
from tests.harness import NOON, Bench, Clock, Receiver, http_job, process, receiving, settings_for
from tests.reliability.post import Post, recover
from tests.reliability.turns import interleave

Work = Callable[[Bench], Awaitable[Any]]
Tell = Callable[[str, int], None]
FIGURE = "interleavings of two works"


def asking(operation: str, body: Callable[[Clock, str], Any] | None = None) -> Callable[[str], Work]:
    """An operation of the API on the job. It may lose (404, 409, 412), but never fail."""
    of = "runs" if operation in ("run_now", "cancel", "resubmit") else "jobs"

    def on(url: str) -> Work:
        async def ask(at: Bench) -> int:
            seq = "1" if operation == "resubmit" else "2"
            answer = await at.call(operation, of, id="a", seq=seq, body=body(at.clock, url) if body else None)
            assert answer.status in (200, 201, 202, 204, 404, 409), answer.body
            return answer.status

        return ask

    return on


def working(work: Work) -> Callable[[str], Work]:
    return lambda url: work


def job(clock: Clock, url: str, every: int = 3600, **more: Any) -> dict[str, Any]:
    """Due now and each hour; any number of its runs may be under way."""
    return http_job(url, every=every, start=clock(), **more)


WORKS: dict[str, Callable[[str], Work]] = {
    "dispatch": working(lambda at: at.dispatch()),
    "execute": working(lambda at: at.take_runs()),
    "detect": working(lambda at: at.app.detector.tick()),
    "put": asking("put", lambda clock, url: job(clock, url, description="new")),
    "put another trigger": asking("put", lambda clock, url: job(clock, url, every=1800)),
    "suspend": asking("suspend"),
    "resume": asking("resume"),
    "run now": asking("run_now"),
    "cancel": asking("cancel"),
    "resubmit": asking("resubmit"),
    "delete": asking("delete"),
}
PAIRS = list(combinations_with_replacement(WORKS, 2))
# Each so many-th interleaving is played; all of them by `make soak`.
EACH = 53


Rows = dict[str, list[Any]]


@dataclass
class Arena:
    """Three processes on one table: two that race, and one that prepares, recovers and looks."""

    one: Bench
    other: Bench
    at: Bench
    post: Post
    target: Receiver
    gated: bool
    prepared: dict[bool, Rows] = field(default_factory=dict)
    lengths: dict[tuple[bool, str], int] = field(default_factory=dict)

    async def prepare(self, suspended: bool) -> None:
        """At noon, a job `a` that is due, with run 1 done and run 2 unlocked; made once, then put back."""
        self.at.clock.now = NOON
        if suspended not in self.prepared:
            await self._make(suspended)
            self.prepared[suspended] = await self.rows()
        else:
            await self._put_back(self.prepared[suspended])
        for each in (self.one, self.other, self.at):
            each.app.store.tickets._announced.clear()  # so that it sends what it has sent in another life
        self.target.hits.clear()
        self.post.under_way.clear()

    async def _make(self, suspended: bool) -> None:
        body = job(self.at.clock, self.target.url)
        if self.gated:
            body["trigger"]["runtimeConfiguration"] = {"concurrency": {"runs": 2, "maximumWaitingRuns": 1}}
        if (await self.at.call("get", id="a")).status == 200:
            await self.at.call("delete", id="a")
        self.at.clock.now = NOON - timedelta(days=1)
        await self.at.app.detector.tick()
        self.at.clock.now = NOON
        await self.at.create(id="a", **body, state="Suspended" if suspended else "Enabled")
        for _ in range(2):
            await self.at.take_runs()
            assert (await self.at.call("run_now", "runs", id="a")).status == 202

    async def _put_back(self, prepared: Rows) -> None:
        for partition, there in (await self.rows()).items():
            kept = {row["RowKey"] for row in prepared[partition]}
            writes = [Write(Verb.PUT, row) for row in prepared[partition]]
            gone = [row["RowKey"] for row in there if row["RowKey"] not in kept]
            writes += [Write(Verb.DELETE, {"RowKey": key}) for key in gone]
            await self.at.app.store.table.commit(partition, writes)

    async def rows(self) -> Rows:
        """All rows, by partition."""
        return {p: await self.at.app.store.table.scan(p, " ", "\x7f") for p in [*self.at.partitions, "app"]}


@pytest.fixture(params=[False, True], ids=["free", "gated"])
async def arena(storage: str, request: pytest.FixtureRequest) -> Any:
    clock = Clock()
    settings = settings_for(storage, PARTITIONS="1")
    async with AsyncExitStack() as opened:
        target = await opened.enter_async_context(receiving())
        one, other, at = [await opened.enter_async_context(process(settings, clock)) for _ in range(3)]
        post = Post(clock)
        for each in (one, other, at):
            each.wire.mail = post.collect
        yield Arena(one, other, at, post, target, request.param)


async def test_two_at_one_job(arena: Arena, tell: Tell) -> None:
    for name in WORKS:
        tell(FIGURE, await play_each(arena, name, EACH))


@pytest.mark.soak
@pytest.mark.parametrize("name", WORKS)
async def test_two_at_one_job_in_every_way(arena: Arena, name: str, tell: Tell) -> None:
    tell(FIGURE, await play_each(arena, name, 1))


async def play_each(arena: Arena, name: str, each: int) -> int:
    """Plays each so many-th interleaving of a work with itself and those behind it in the list."""
    played = 0
    for pair in [pair for pair in PAIRS if pair[0] == name]:
        for number, (first, second, swapped) in enumerate(await interleavings(arena, pair)):
            if number % each == PAIRS.index(pair) % each:
                await play(arena, pair[::-1] if swapped else pair, first, second)
                played += 1
    return played


async def interleavings(arena: Arena, pair: tuple[str, str]) -> list[tuple[int, int, bool]]:
    """All ways to let one begin with some requests, and the other go on with some of its own or all."""
    lengths = [await length(arena, begins_suspended(pair), name) for name in pair]

    def ways() -> Iterator[tuple[int, int, bool]]:
        for swapped in (False, True) if pair[0] != pair[1] else (False,):
            one, other = lengths[::-1] if swapped else lengths
            for first in range(1, one + 1):
                for second in range(1, other + 1):
                    yield first, second, swapped

    return list(ways())


def begins_suspended(pair: tuple[str, str]) -> bool:
    return "resume" in pair and "suspend" not in pair


async def length(arena: Arena, suspended: bool, name: str) -> int:
    """How many requests a work makes alone."""
    if (suspended, name) not in arena.lengths:
        await arena.prepare(suspended)
        arena.one.requests.clear()
        await WORKS[name](arena.target.url)(arena.one)
        arena.lengths[suspended, name] = len(arena.one.requests)
    return arena.lengths[suspended, name]


async def play(arena: Arena, pair: tuple[str, str], first: int, second: int) -> None:
    """One interleaving, then recovery; whatever came first, all is as one after the other would have left it."""
    await arena.prepare(begins_suspended(pair))
    one, other = (WORKS[name](arena.target.url) for name in pair)
    try:
        await asyncio.wait_for(
            interleave(
                [(arena.one, lambda: one(arena.one)), (arena.other, lambda: other(arena.other))], first, second
            ),
            60,
        )
        assert await audit(arena.at.app.store) == []
        await recover(arena.at, arena.post, cycles=1)
        await check(arena, pair)
    except Exception as error:
        raise AssertionError(f"{pair[0]} sends {first} requests, then {pair[1]} {second}") from error


async def check(arena: Arena, pair: tuple[str, str]) -> None:
    """Each occurrence was called once, and is recorded with the start its call named; nothing is under way."""
    keys = [hit.key for hit in arena.target.hits]
    scheduled = [key.split(":")[2] for key in keys]
    assert len(keys) == len(set(keys)), keys
    assert len(scheduled) == len(set(scheduled)), "one occurrence was called under two keys"
    rows = (await arena.rows())[arena.at.partitions[0]]
    assert list(faults(arena.at.partitions[0], rows, 1)) == []
    jobs = [read_job(row) for row in rows if row["RowKey"].startswith("job:")]
    if not jobs:
        assert "delete" in pair
        return
    assert not [row for row in rows if row["RowKey"].startswith(("run:", "idle:"))]
    before = {
        row["mark"] for row in arena.prepared[begins_suspended(pair)][arena.at.partitions[0]] if "mark" in row
    }
    past = [read_past(row) for row in rows if row["RowKey"].startswith("past:") and row["mark"] not in before]
    starts = {record.seq: json_text(record.started) for record in past if isinstance(record, Ended)}
    assert all(hit.start == starts.get(hit.run, hit.start) for hit in arena.target.hits), (past, arena.target.hits)
    if any(record.status is Status.CANCELLED for record in past):  # its action may have been in flight
        keys = [key for key in keys if ":run-2:" not in key]
    assert len([record for record in past if record.status is Status.SUCCEEDED]) == len(keys), (past, keys)
    if jobs[0].state is State.ENABLED:
        stretches = [record for record in past if isinstance(record, Stretch)]
        recorded = any(record.first <= NOON <= record.last for record in stretches)
        assert recorded or key_text(NOON) in scheduled, (past, keys)


class TooLate(Arena):
    """As an arena, but run 2 fell due at noon, waits for an executor, and is too late by now."""

    async def prepare(self, suspended: bool) -> None:
        await super().prepare(suspended)
        self.at.clock.now = NOON + timedelta(seconds=31)

    async def _make(self, suspended: bool) -> None:
        self.at.clock.now = NOON - timedelta(hours=1)
        await self.at.create(id="a", **http_job(self.target.url, every=3600, start=NOON))
        assert (await self.at.call("run_now", "runs", id="a")).status == 202
        await self.at.take_runs()
        self.at.clock.now = NOON
        with self.at.full():
            await self.at.dispatch()


@pytest.mark.parametrize("other", ["execute", "cancel", "suspend", "delete"])
async def test_two_at_a_run_that_is_too_late(storage: str, other: str, tell: Tell) -> None:
    clock, settings = Clock(), settings_for(storage, PARTITIONS="1", DEFAULT_MAX_LATENESS="PT30S")
    async with AsyncExitStack() as opened:
        target = await opened.enter_async_context(receiving())
        one, two, at = [await opened.enter_async_context(process(settings, clock)) for _ in range(3)]
        arena = TooLate(one, two, at, Post(clock), target, gated=False)
        for each in (one, two, at):
            each.wire.mail = arena.post.collect
        pair = ("execute", other)
        ways = (await interleavings(arena, pair))[::3]
        for first, second, swapped in ways:
            await play_too_late(arena, pair[::-1] if swapped else pair, first, second)
        tell(FIGURE, len(ways))


async def play_too_late(arena: TooLate, pair: tuple[str, str], first: int, second: int) -> None:
    """One interleaving: whatever came first, the run is called by nobody, and recorded once."""
    await arena.prepare(False)
    one, other = (WORKS[name](arena.target.url) for name in pair)
    works = [(arena.one, lambda: one(arena.one)), (arena.other, lambda: other(arena.other))]
    await asyncio.wait_for(interleave(works, first, second), 60)
    assert await audit(arena.at.app.store) == []
    await recover(arena.at, arena.post, cycles=1)
    assert not arena.target.hits
    assert not await arena.at.rows("run")
    ends = {read_past(row).status for row in await arena.at.rows("past")} - {Status.SUCCEEDED}
    assert len(await arena.at.rows("past")) == (0 if "delete" in pair else 2)
    assert ends <= ({Status.MISSED, Status.CANCELLED} if "cancel" in pair else {Status.MISSED})
