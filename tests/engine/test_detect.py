"""Detection: what no ticket led to is found by key ranges, at a cost that does not grow with the jobs."""

import asyncio
from datetime import timedelta

import pytest

from shared.jobs.model import State
from shared.jobs.spec import parse_job
from shared.jobs.transitions import created
from shared.storage.jobs import timer_row
from shared.storage.records import job_row
from shared.storage.table import Verb, Write
from tests.harness import NOON, Bench, Receiver, bench, http_job


def tickets(at: Bench) -> list[str]:
    return [line for line in at.requests if "/messages" in line]


async def test_an_overdue_timer_gets_a_ticket(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1", DETECTION_PERIOD="PT1S") as at:
        await at.app.detector.tick()
        await at.create(id="a", **http_job(target.url, every=3600, start=NOON))
        at.clock.advance(seconds=4)
        at.requests.clear()
        assert await at.app.detector.tick()
        assert not tickets(at)  # not yet overdue by 5 seconds: its own ticket is expected
        at.clock.advance(seconds=61)
        at.requests.clear()
        assert await at.app.detector.tick()
        assert len(tickets(at)) == 1


async def test_an_unlocked_run_gets_a_ticket(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        await at.create(id="a", **http_job(target.url, every=7200))
        with at.full():
            await at.fire_only("a")
        at.requests.clear()
        await at.app.detector.tick()
        assert len(tickets(at)) == 1


async def test_a_run_whose_lock_ran_out_gets_a_ticket(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        await at.create(id="a", **http_job(target.url, every=7200))
        await at.fire_only("a")
        at.requests.clear()
        await at.app.detector.tick()
        assert not tickets(at)
        at.clock.advance(seconds=66)
        at.requests.clear()
        await at.app.detector.tick()
        assert len(tickets(at)) == 1


async def test_timers_between_reach_and_the_horizon_are_announced_once(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:  # the horizon is 15 minutes
        await at.app.detector.tick()
        for name in ("a", "b"):
            await at.create(id=name, **http_job(target.url, every=7200, start=NOON + timedelta(minutes=30)))
        at.requests.clear()
        at.clock.advance(minutes=14)
        await at.app.detector.tick()
        assert not tickets(at)
        at.clock.advance(minutes=2)
        at.requests.clear()
        await at.app.detector.tick()
        (ticket,) = tickets(at)  # one for all timers of a partition and second
        assert "visibilitytimeout=840" in ticket
        at.clock.advance(minutes=2)
        at.requests.clear()
        await at.app.detector.tick()
        assert not tickets(at)


async def test_every_timer_is_announced_by_its_writer_or_by_detection(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        starts, announced = set(), set()
        for minute in range(80):
            at.requests.clear()
            await at.app.detector.tick()
            if minute < 25:  # near and far, on both sides of the horizon of 15 minutes and of its margin of 10
                start = at.clock() + timedelta(minutes=1 + minute * 7 % 45)
                starts.add(start)
                await at.create(**http_job(target.url, every=72000, start=start))
            for ticket in tickets(at):
                seconds = int(ticket.split("visibilitytimeout=")[1].split("&")[0])
                announced.add(at.clock() + timedelta(seconds=seconds))
            at.clock.advance(minutes=1)
        assert len(starts) > 15
        assert starts <= announced


async def test_the_period_counts_from_the_end_of_the_last_cycle(storage: str) -> None:
    async with bench(storage, DETECTION_PERIOD="PT30S") as at:
        assert await at.app.detector.tick()
        at.clock.advance(seconds=29.9)
        at.requests.clear()
        assert not await at.app.detector.tick()
        assert len(at.requests) == 1
        at.clock.advance(seconds=0.1)
        assert await at.app.detector.tick()


async def test_a_clock_set_back_does_not_stop_detection(at: Bench) -> None:
    assert await at.app.detector.tick()
    at.clock.advance(hours=-5)
    assert await at.app.detector.tick()


async def test_a_clock_set_forward_and_back_leaves_no_timer_unannounced(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        at.clock.advance(hours=5)
        await at.app.detector.tick()
        at.clock.advance(hours=-5)
        await at.app.detector.tick()
        await at.create(id="a", **http_job(target.url, every=72000, start=NOON + timedelta(minutes=40)))
        at.clock.advance(minutes=26)
        at.requests.clear()
        await at.app.detector.tick()
        assert len(tickets(at)) == 1


async def test_two_cycles_side_by_side_both_end(at: Bench) -> None:
    assert all(await asyncio.gather(at.app.detector.tick(), at.app.detector.tick()))
    progress = await at.app.store.ledger.progress()
    assert progress is not None
    assert progress.reach == NOON + timedelta(minutes=15)


@pytest.mark.parametrize("partitions", [1, 4])
async def test_detection_with_nothing_due_costs_the_same_at_any_number_of_jobs(
    storage: str, target: Receiver, partitions: int
) -> None:
    async with bench(storage, PARTITIONS=str(partitions)) as at:
        counts = {}
        made = 0
        for jobs in (10, 500, 2000) if partitions > 1 else (10, 500):
            await stock(at, made, jobs, target.url)
            made = jobs
            at.clock.advance(minutes=2)
            at.requests.clear()
            assert await at.app.detector.tick()
            counts[jobs] = len(at.requests)
            assert not any("Timestamp" in line or "state eq" in line for line in at.requests)
        assert len(set(counts.values())) == 1, counts
        assert counts[10] <= 3 * partitions + 4
        timer_reads = [line for line in at.requests if "timer:" in line]
        # Timers are read by key range alone.
        assert timer_reads
        assert all(line.count(" and ") == 2 and "RowKey" in line for line in timer_reads)


async def stock(at: Bench, first: int, last: int, url: str) -> None:
    """Stores jobs that are due in a year, by transactions of many (a job and its baton each)."""
    body = http_job(url, every=72000, start=NOON + timedelta(days=365))
    definition = parse_job(body, at.clock()).definition
    writes: dict[str, list[Write]] = {}
    for number in range(first, last):
        job = created(f"stock-{number}", definition, State.ENABLED, at.clock())
        baton = timer_row(job)
        assert baton
        writes.setdefault(at.app.store.jobs.partition(job.id), []).extend(
            [Write(Verb.INSERT, job_row(job, "m")), Write(Verb.INSERT, baton)]
        )
    for partition, rows in writes.items():
        for start in range(0, len(rows), 100):
            await at.app.store.table.commit(partition, rows[start : start + 100])
