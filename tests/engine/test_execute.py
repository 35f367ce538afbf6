"""Executing runs: leases, take-overs, completion in bulk, and answers that get lost."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from shared.engine.crew import Crew
from shared.engine.lease import Lease, LeaseLost
from shared.storage.table import Verb, Write
from tests.harness import NOON, Abandoned, Bench, Hit, Receiver, bench, http_job, until

FIRED_BY = "x-timerjobs-attempt"


async def test_a_run_whose_process_died_is_taken_over_when_its_lock_has_run_out(
    at: Bench, target: Receiver
) -> None:
    await at.create(id="a", **http_job(target.url, every=3600))
    await at.fire_only("a")
    at.clock.advance(seconds=64.9)  # a lock of 60 s, which others count as expired 5 s later
    await at.take_runs()
    assert not target.hits
    at.clock.advance(seconds=0.2)
    await at.take_runs()
    (hit,) = target.hits
    assert hit.headers[FIRED_BY] == "2"
    assert hit.headers["x-timerjobs-fencing-token"] == "1001"
    (run,) = await at.runs("a")
    assert (run["status"], run["attempts"]) == ("Succeeded", 2)


async def test_an_action_repeated_after_a_crash_has_the_same_key(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600))
    # The process dies after the call and before the completion.
    at.wire.hold = _dying_at_batch(2)
    with pytest.raises(asyncio.CancelledError):
        await at.dispatch("a")
    at.wire.hold = None
    assert len(target.hits) == 1
    at.clock.advance(seconds=66)
    await at.take_runs()
    first, second = target.hits
    assert first.key == second.key
    assert [hit.headers[FIRED_BY] for hit in target.hits] == ["1", "2"]


def _dying_at_batch(number: int) -> Any:
    seen = 0

    async def hold(line: str) -> None:
        nonlocal seen
        seen += "$batch" in line
        if seen >= number:
            raise asyncio.CancelledError

    return hold


async def test_five_take_overs_without_getting_further_end_the_run_failed(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600))
    await at.fire_only("a")
    for _ in range(5):
        at.clock.advance(seconds=66)
        for partition in at.partitions:
            taker = at.app.dispatcher._line.taker
            await taker.take(partition, Abandoned(partition, at.app.workshop, at.clock()))
    at.clock.advance(seconds=66)
    await at.take_runs()
    assert not target.hits
    (run,) = await at.runs("a")
    assert run["status"] == "Failed"
    assert "5 times" in run["reason"]


async def test_the_lease_is_renewed_while_a_run_is_executed(storage: str, target: Receiver) -> None:
    async with bench(storage) as at:
        await at.create(id="a", **http_job(target.url, every=3600))
        await at.fire_only("a")
        (run,) = await at.app.store.runs.of_job("a")
        lease = Lease(run, at.app.store.runs, timedelta(seconds=0.2), at.clock)
        keeping = asyncio.create_task(lease.keep())
        await until(lambda: lease.run.etag != run.etag)
        lease.release()
        await keeping
        (stored,) = await at.app.store.runs.of_job("a")
        assert stored == lease.run
        assert stored.locked_until == NOON + timedelta(seconds=0.2)


async def test_a_renewal_whose_answer_was_lost_is_recognised(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600))
    await at.fire_only("a")
    (run,) = await at.app.store.runs.of_job("a")
    lease = Lease(run, at.app.store.runs, timedelta(minutes=1), at.clock)
    at.wire.lose_answer = _once("$batch")
    at.clock.advance(seconds=30)
    await lease.renew()
    assert lease.run == (await at.app.store.runs.of_job("a"))[0]
    assert lease.run.locked_until == NOON + timedelta(seconds=90)


async def test_a_lease_taken_by_another_is_lost(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600))
    await at.fire_only("a")
    (run,) = await at.app.store.runs.of_job("a")
    lease = Lease(run, at.app.store.runs, timedelta(minutes=1), at.clock)
    at.clock.advance(seconds=66)
    await at.take_runs()
    with pytest.raises(LeaseLost):
        await lease.renew()


async def test_an_owner_that_lost_its_lease_stops_and_writes_nothing(storage: str, target: Receiver) -> None:
    release = asyncio.Event()

    async def answer(hit: Hit) -> web.Response:
        if hit.headers[FIRED_BY] == "1":
            await release.wait()
        return web.Response()

    target.answer = answer
    async with bench(storage, LOCK_DURATION="PT15S") as at:
        await at.create(id="a", **http_job(target.url, every=3600))
        slow = asyncio.create_task(at.dispatch("a"))
        await until(lambda: target.hits)
        at.clock.advance(seconds=21)  # by the clock of another process the lock has run out
        await at.take_runs()
        assert [hit.headers[FIRED_BY] for hit in target.hits] == ["1", "2"]
        release.set()
        await slow
        (run,) = await at.runs("a")
        assert run["attempts"] == 2


def _once(part: str) -> Any:
    left = [1]

    def lose(line: str) -> bool:
        if part in line and left:
            left.clear()
            return True
        return False

    return lose


async def test_a_fire_whose_answer_was_lost_is_recognised_and_executed(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600))
    at.wire.lose_answer = _once("$batch")
    await at.dispatch("a")
    assert len(target.hits) == 1
    (run,) = await at.runs("a")
    assert run["status"] == "Succeeded"
    assert not await at.rows("run")


async def test_a_bulk_fire_whose_answer_was_lost_is_recognised(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for number in range(10):
            await at.create(id=f"j{number}", **http_job(target.url, every=60, start=NOON))
        at.wire.lose_answer = _once("$batch")
        at.requests.clear()
        await at.dispatch()
        assert len({hit.key for hit in target.hits}) == len(target.hits) == 10
        assert any("visibilitytimeout=60" in line for line in at.requests)


async def test_a_completion_whose_answer_was_lost_is_not_repeated(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600))
    await at.fire_only("a")
    at.clock.advance(seconds=66)
    lost = iter([False, True])
    at.wire.lose_answer = lambda line: "$batch" in line and next(lost, False)
    await at.take_runs()
    (run,) = await at.runs("a")
    assert run["status"] == "Succeeded"
    assert len(target.hits) == 1


async def test_a_take_over_whose_answer_was_lost_is_recognised(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600))
    await at.fire_only("a")
    at.clock.advance(seconds=66)
    at.wire.lose_answer = _once("$batch")
    await at.take_runs()
    assert len(target.hits) == 1
    assert not await at.rows("run")


async def test_a_late_completion_does_not_overwrite_a_later_one(at: Bench, target: Receiver) -> None:
    job = http_job(target.url, every=1, historyLimit=2)
    await at.create(id="a", **job)
    await at.fire_only("a")  # seq 1 is left to its lease
    for _ in range(4):
        at.clock.advance(seconds=1)
        await at.dispatch("a")
    assert [run["seq"] for run in await at.runs("a")] == [5, 4, 1]
    at.clock.advance(seconds=66)
    await at.take_runs()
    assert [run["seq"] for run in await at.runs("a")] == [5, 4]
    assert len(target.hits) == 5
    job = (await at.call("get", id="a")).body
    assert job["fired"] == 5


async def test_history_is_a_ring(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=1, historyLimit=3))
    for _ in range(7):
        await at.dispatch("a")
        at.clock.advance(seconds=1)
    assert [run["seq"] for run in await at.runs("a")] == [7, 6, 5]
    assert len(await at.rows("past")) == 3


async def test_completions_are_gathered(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for number in range(30):
            await at.create(id=f"j{number}", **http_job(target.url, every=3600, start=NOON))
        for number in range(30):
            await at.fire_only(f"j{number}")
        at.clock.advance(seconds=66)
        at.requests.clear()
        await at.take_runs()
        assert len(target.hits) == 30
        assert len([line for line in at.requests if "$batch" in line]) < 10


async def test_runs_of_one_job_are_completed_in_transactions_of_their_own(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=1))
    for _ in range(3):
        await at.fire_only("a")
        at.clock.advance(seconds=1)
    at.clock.advance(seconds=66)
    await at.take_runs()
    runs = await at.runs("a")
    assert [run["seq"] for run in runs if run["status"] == "Succeeded"] == [3, 2, 1]


async def test_two_executors_share_the_runs(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for number in range(20):
            job = http_job(target.url, every=3600, start=NOON)
            job["action"]["limit"] = {"timeout": "PT1M"}
            await at.create(id=f"j{number}", **job)
        await at.dispatch()
        await asyncio.gather(*(at.app.dispatcher.take_runs("00") for _ in range(3)))
        assert len(target.hits) == len({hit.key for hit in target.hits}) == 20
        assert not await at.rows("run")


async def test_a_run_whose_definition_is_broken_ends_failed(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600))
    await at.fire_only("a")
    (row,) = await at.rows("run")
    partition = at.app.store.jobs.partition("a")
    await at.app.store.table.commit(
        partition, [Write(Verb.MERGE, {"RowKey": row["RowKey"], "definition": b"broken"})]
    )
    at.clock.advance(seconds=66)
    await at.take_runs()
    (run,) = await at.runs("a")
    assert run["status"] == "Failed"


async def test_a_cancelled_pass_leaves_its_runs_to_their_leases(at: Bench, target: Receiver) -> None:
    async def stall(hit: Hit) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    target.answer = stall
    await at.create(id="a", **http_job(target.url, every=3600))
    dispatching = asyncio.create_task(at.dispatch("a"))
    await until(lambda: target.hits)
    dispatching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dispatching
    assert at.app.workshop.slots.taken == 0
    (run,) = await at.runs("a")
    assert run["status"] == "Running"
    target.answer = None
    at.clock.advance(seconds=66)
    await at.take_runs()
    (run,) = await at.runs("a")
    assert run["status"] == "Succeeded"


async def test_a_crew_awaits_what_it_started(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600))
    partition = at.app.store.jobs.partition("a")
    async with Crew(partition, at.app.workshop, at.clock()) as crew:
        await at.app.dispatcher.round(partition, at.clock(), crew)
        assert at.app.workshop.slots.taken == 1
    assert at.app.workshop.slots.taken == 0
    assert not await at.rows("run")
