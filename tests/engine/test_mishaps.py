"""Mishaps that once lost something, repeated something or grew without end: each held off for good."""

import asyncio
from contextlib import suppress

from aiohttp import web
from azure.storage.queue.aio import QueueClient

from shared.storage.table import StoreFailed
from tests.harness import NOON, Bench, Hit, Receiver, bench, http_job, until


async def test_no_more_runs_than_a_process_may_execute_are_started_by_passes_side_by_side(
    storage: str, target: Receiver
) -> None:
    under_way, most = 0, 0

    async def slowly(hit: Hit) -> web.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.2)
        under_way -= 1
        return web.Response()

    target.answer = slowly
    async with bench(storage, PARTITIONS="8", MAX_EXECUTING="5") as at:
        for number in range(40):
            await at.create(id=f"j{number}", **http_job(target.url, every=3600, start=NOON))
        await asyncio.gather(*(at.app.dispatcher.fire_due(partition) for partition in at.partitions))
        assert most <= 5
        while await at.rows("run"):
            await asyncio.gather(*(at.app.dispatcher.take_runs(partition) for partition in at.partitions))
        assert most <= 5
        assert len({hit.key for hit in target.hits}) == len(target.hits) == 40


async def test_a_create_whose_ticket_cannot_be_sent_is_a_create(at: Bench, storage: str, target: Receiver) -> None:
    async with QueueClient.from_connection_string(storage, at.app.settings.queue_name) as queue:
        await queue.delete_queue()
    assert (await at.call("create", body=http_job(target.url, id="a"))).status == 201
    await at.dispatch()
    assert len(target.hits) == 1


async def test_what_an_earlier_batch_committed_is_started_where_a_later_one_fails(
    storage: str, target: Receiver
) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for number in range(40):
            await at.create(id=f"j{number:02d}", **http_job(target.url, every=600, start=NOON))
        batches = 0

        async def fail(line: str) -> None:
            nonlocal batches
            batches += "$batch" in line and not target.hits
            if batches == 2:
                batches = 99
                raise StoreFailed("storage stumbles")

        at.wire.hold = fail
        with suppress(StoreFailed):
            await at.dispatch()
        at.wire.hold = None
        assert len(target.hits) == 25
        await at.dispatch()
        assert len({hit.key for hit in target.hits}) == len(target.hits) == 40


async def test_a_job_deleted_while_a_later_batch_is_under_way_is_not_called_afterwards(
    storage: str, target: Receiver
) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for number in range(40):
            await at.create(id=f"j{number:02d}", **http_job(target.url, every=600, start=NOON))
        batches, deleted_at = 0, -1

        async def delete(line: str) -> None:
            nonlocal batches, deleted_at
            batches += "$batch" in line
            if batches == 2 and deleted_at < 0:
                deleted_at = 0
                await at.call("delete", id="j00")
                deleted_at = len([hit for hit in target.hits if hit.job == "j00"])

        at.wire.hold = delete
        await at.dispatch()
        assert len([hit for hit in target.hits if hit.job == "j00"]) == deleted_at


async def test_tickets_for_runs_do_not_multiply_while_a_process_is_full(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="1") as at:
        await at.create(id="a", **http_job(target.url, every=36000))
        with at.full():
            await at.dispatch()
            at.requests.clear()
            passes = [asyncio.create_task(at.app.dispatcher.take_runs("00")) for _ in range(20)]
            await until(lambda: sum(each.done() for each in passes) == 19)
            assert len([line for line in at.requests if "/messages" in line]) == 1
            assert not target.hits
        await asyncio.gather(*passes)
        assert len(target.hits) == 1
        assert len([line for line in at.requests if "/messages" in line]) == 1


async def test_who_waits_for_slots_gets_them_when_runs_end(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="2", MAX_EXECUTING="4") as at:
        for number in range(12):
            await at.create(id=f"j{number}", **http_job(target.url, every=3600, start=NOON))
        assert {at.app.store.jobs.partition(f"j{number}") for number in range(12)} == set(at.partitions)
        slots = at.app.workshop.slots
        slots.patience = 100_000
        with at.full():
            passes = asyncio.gather(*(at.app.dispatcher.fire_due(partition) for partition in at.partitions))
            await until(slots._line.locked)
            assert not await at.rows("run")
        await passes
        assert len({hit.key for hit in target.hits}) == len(target.hits) == 12


async def test_a_run_locked_by_a_clock_that_was_ahead_does_not_stand_still(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=36000))
    at.clock.advance(hours=10)
    await at.fire_only("a")
    at.clock.advance(hours=-10)
    at.clock.advance(minutes=2)
    await at.take_runs()
    assert len(target.hits) == 1


async def test_a_lost_answer_is_recognised_where_everything_was_missed(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for number in range(5):
            body = http_job(target.url, every=60, start=NOON)
            body["trigger"]["maxLateness"] = "PT0S"
            await at.create(id=f"j{number}", **body)
        at.clock.advance(seconds=30)
        lost = iter([True])
        at.wire.lose_answer = lambda line: "$batch" in line and next(lost, False)
        at.requests.clear()
        await at.dispatch()
        assert len([line for line in at.requests if "visibilitytimeout=30" in line]) == 1
        assert not target.hits


async def test_a_lock_that_has_run_out_before_its_run_begins_is_renewed_or_left(
    storage: str, target: Receiver
) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        clock = at.clock
        names = {"TABLE_NAME": at.app.settings.table_name, "QUEUE_NAME": at.app.settings.queue_name}
        async with bench(storage, clock, PARTITIONS="1", **names) as other:
            await at.create(id="a", **http_job(target.url, every=3600))
            await at.fire_only("a")
            (stale,) = await at.app.store.runs.of_job("a")
            clock.advance(seconds=66)
            await other.take_runs()
            assert len(target.hits) == 1
            crew_type = __import__("shared.engine.crew", fromlist=["Crew"]).Crew
            async with crew_type("00", at.app.workshop, clock()) as crew:
                at.app.workshop.slots.add("a")
                crew.start(stale)
            assert len(target.hits) == 1
