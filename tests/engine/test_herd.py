"""Herds and backlogs: cheap at any size (promise P3), no partition starves, chains of passes do not grow."""

import asyncio
import heapq
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.storage.tickets import Ticket
from tests.harness import NOON, Bench, RealClock, Receiver, bench, http_job, until
from tests.herd import announce, listening, new_jobs, write_jobs

HERD = 1000


async def test_a_thousand_jobs_at_one_second_cost_at_most_0_2_requests_each(
    storage: str, target: Receiver, tell: Callable[[str, int], None]
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    async with bench(storage, RealClock(), PARTITIONS="4") as at:
        jobs = new_jobs((http_job(target.url, every=86400, start=now, id=f"j{n}") for n in range(HERD)), now)
        await write_jobs(at.app.store, jobs)
        at.requests.clear()
        await announce(at.app, now)
        async with listening(at.app) as queue:
            await until(lambda: len(target.hits) >= HERD, 300)
            requests = len(at.requests)
            await queue.quiet(at.app.store)
        assert (requests + 2 * len(queue.received)) / HERD <= 0.2  # a ticket is received and deleted
        assert Counter(hit.job for hit in target.hits) == dict.fromkeys((job.id for job in jobs), 1)
        assert {hit.scheduled for hit in target.hits} == {now}
        past = await at.rows("past")
        assert len(past) == HERD
        assert {row["seq"] for row in past} == {1}
        done = shares_when_the_first_is_done([at.app.store.jobs.partition(hit.job) for hit in target.hits])
        assert min(done.values()) >= 0.25, f"partitions do not take turns: {done}"
        tell(f"storage requests of a herd of {HERD}", requests + 2 * len(queue.received))


def shares_when_the_first_is_done(order: list[str]) -> dict[str, float]:
    """How much of each partition had been called when the first one was through; `order`: that of the calls."""
    whole, so_far = Counter(order), Counter[str]()
    for partition in order:
        so_far[partition] += 1
        if so_far[partition] == whole[partition]:
            break
    return {partition: so_far[partition] / whole[partition] for partition in sorted(whole)}


@dataclass
class Chains:
    """An app of one partition whose clock goes on by `step` with each request to storage, and whose tickets are
    carried out as soon as that clock says they are visible, all of them side by side."""

    at: Bench
    step: timedelta
    waiting: list[tuple[datetime, int, Ticket]] = field(default_factory=list)
    sent: int = 0
    received: int = 0
    alive: list[int] = field(default_factory=list)

    async def request(self, line: str) -> None:
        self.at.clock.now += self.step

    def put(self, ticket: Ticket, delay: timedelta = timedelta(0)) -> None:
        self.sent += 1
        heapq.heappush(self.waiting, (self.at.clock() + max(delay, timedelta(0)), self.sent, ticket))

    def visible(self) -> Iterator[Ticket]:
        while self.waiting and self.waiting[0][0] <= self.at.clock():
            self.received += 1
            yield heapq.heappop(self.waiting)[2]

    async def go_on(self, end: datetime) -> None:
        """Carries out tickets until there are none before `end`; notes how many are alive, waiting or in work."""
        under_way: set[asyncio.Task[None]] = set()
        while under_way or (self.waiting and self.waiting[0][0] < end):
            if not under_way:
                self.at.clock.now = max(self.at.clock.now, self.waiting[0][0])
            if self.at.clock() < end:
                carry_out = self.at.app.dispatcher.carry_out
                under_way |= {asyncio.create_task(carry_out(ticket)) for ticket in self.visible()}
            self.alive.append(len(under_way) + len(self.waiting))
            done, under_way = await asyncio.wait(under_way, timeout=0.02, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()


@asynccontextmanager
async def backlog(storage: str, step: float, bodies: list[dict[str, Any]], passes: int) -> AsyncIterator[Chains]:
    """These jobs an hour later, with so many tickets for their partition."""
    async with bench(storage, PARTITIONS="1") as at:
        for body in bodies:
            await at.create(**body)
        at.clock.advance(hours=1)
        chains = Chains(at, timedelta(seconds=step))
        send = at.app.store.tickets.send

        async def note(ticket: Ticket, delay: timedelta = timedelta(0)) -> None:
            await send(ticket, delay)
            chains.put(ticket, delay)

        at.app.store.tickets.send = note  # type: ignore[method-assign]
        at.wire.hold = chains.request
        for _ in range(passes):
            chains.put(Ticket("00", at.clock()))
        yield chains


async def test_chains_of_passes_do_not_grow_while_an_hour_of_windows_is_caught_up(
    storage: str, target: Receiver
) -> None:
    recurrence = {"frequency": "Minute", "interval": 1, "startTime": "2026-09-08T12:00:00Z"}
    trigger = {"type": "SlidingWindow", "recurrence": recurrence | {"endTime": "2026-09-08T13:00:00Z"}}
    bodies = [http_job(target.url, id=f"w{n}") | {"trigger": trigger} for n in range(2)]
    async with backlog(storage, 0.5, bodies, passes=2) as chains:
        await chains.go_on(NOON + timedelta(hours=2))
        print(f"{chains.sent} tickets, at most {max(chains.alive)} alive; done at {chains.at.clock()}")
        assert max(chains.alive) <= 2 + 1  # one for what the end of a run has put back
        assert chains.alive[-1] <= 2
        assert chains.received == chains.sent >= 10
        assert not await chains.at.rows("timer")
    fired = Counter((hit.job, hit.scheduled) for hit in target.hits)
    assert len(fired) == 2 * 60
    assert set(fired.values()) == {1}


async def test_chains_of_passes_do_not_grow_while_jobs_fall_due_faster_than_they_are_fired(
    storage: str, target: Receiver
) -> None:
    bodies = [http_job(target.url, every=5, start=NOON, id=f"j{n}") for n in range(6)]
    async with backlog(storage, 1, bodies, passes=4) as chains:
        await chains.go_on(chains.at.clock() + timedelta(seconds=240))
        print(f"{chains.sent} tickets, at most {max(chains.alive)} alive, {chains.alive[-1]} at last")
        assert max(chains.alive) <= 4 + 1  # one for the next second
        assert max(chains.alive[len(chains.alive) // 2 :]) <= 2 + 1  # one is kept for runs under way
        assert chains.received >= 20
    assert len({hit.key for hit in target.hits}) == len(target.hits)
