"""What is counted and measured, as an SDK that collects it sees it: each figure from a bench that did it."""

from datetime import timedelta

from aiohttp import web

from tests.engine.conftest import Collected
from tests.harness import NOON, Bench, Hit, Receiver, bench, http_job


async def broken(hit: Hit) -> web.Response:
    return web.Response(status=400)


async def test_what_fires_is_counted_with_its_outcome_and_lateness(
    at: Bench, target: Receiver, collected: Collected
) -> None:
    for number in range(3):
        await at.create(id=f"j{number}", **http_job(target.url, every=3600, start=NOON))
    at.clock.advance(seconds=2)
    await at.dispatch()
    found = collected()
    assert found["fired"] == found["succeeded.Succeeded"] == 3
    assert found["lateness"] == 6
    assert not {"missed", "skipped", "failed.Failed"} & found.keys()


async def test_failed_and_cancelled_runs_are_told_apart(at: Bench, target: Receiver, collected: Collected) -> None:
    target.answer = broken
    await at.create(id="a", **http_job(target.url, every=3600, start=NOON))
    await at.dispatch()
    assert collected()["failed.Failed"] == 1
    await at.fire_only("a")
    assert (await at.call("run_now", "runs", id="a")).status == 202
    assert (await at.call("cancel", "runs", id="a", seq="2")).status == 202
    found = collected()
    assert found["cancelled.Cancelled"] == 1
    assert "fired" not in found  # a run made by hand is none of the schedule's


async def test_missed_occurrences_are_counted_one_by_one(
    at: Bench, target: Receiver, collected: Collected
) -> None:
    await at.create(id="a", **http_job(target.url, every=60, start=NOON))
    at.clock.advance(minutes=5)
    await at.dispatch()
    found = collected()
    assert (found["missed"], found["fired"], found["lateness"]) == (5, 1, 0)


async def test_skipped_occurrences_are_counted_although_their_record_grows(
    storage: str, target: Receiver, collected: Collected
) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        job = http_job(target.url, every=60, start=NOON)
        job["trigger"]["operationOptions"] = "SingleInstance"
        await at.create(id="a", **job)
        await at.fire_only("a")
        for _ in range(3):
            at.clock.advance(seconds=60)
            await at.fire_only("a")
        found = collected()
        assert (found["fired"], found["skipped"]) == (1, 3)


async def test_what_a_suspension_passes_over_is_skipped(at: Bench, target: Receiver, collected: Collected) -> None:
    await at.create(id="a", **http_job(target.url, every=60, start=NOON))
    await at.call("suspend", id="a")
    at.clock.advance(seconds=150)
    await at.call("resume", id="a")
    assert collected()["skipped"] == 3


async def test_a_commit_whose_answer_was_lost_is_counted_once(
    storage: str, target: Receiver, collected: Collected
) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for number in range(4):
            await at.create(id=f"j{number}", **http_job(target.url, every=3600, start=NOON))
        gated = http_job(target.url, every=3600, start=NOON + timedelta(seconds=60))
        gated["trigger"]["operationOptions"] = "SingleInstance"
        await at.create(id="gated", **gated)
        for jobs in (4, 1):
            lost = iter([True, True])  # of what fires them, and of what completes them
            at.wire.lose_answer = lambda line, lost=lost: "$batch" in line and next(lost, False)  # type: ignore[misc]
            await at.dispatch()
            found = collected()
            assert found["fired"] == found["succeeded.Succeeded"] == jobs
            assert next(lost, None) is None
            at.clock.advance(seconds=60)


async def test_detection_tells_how_long_the_oldest_timer_is_overdue(
    at: Bench, target: Receiver, collected: Collected
) -> None:
    await at.app.detector.tick()
    assert collected()["overdue_age"] == 0
    await at.create(id="a", **http_job(target.url, every=3600, start=NOON + timedelta(seconds=60)))
    await at.create(id="b", **http_job(target.url, every=3600, start=NOON + timedelta(seconds=90)))
    at.clock.advance(seconds=150)
    await at.app.detector.tick()
    assert collected()["overdue_age"] == 90
    await at.dispatch()
    at.clock.advance(seconds=60)
    await at.app.detector.tick()
    assert collected()["overdue_age"] == 0


async def test_a_cycle_of_detection_is_measured(at: Bench, collected: Collected) -> None:
    async def slowly(line: str) -> None:
        if "run:" in line:
            at.clock.advance(seconds=2)

    at.wire.hold = slowly
    assert await at.app.detector.tick()
    assert collected()["detection_duration"] == 2 * len(at.partitions)
    assert not await at.app.detector.tick()
    assert "detection_duration" not in collected()


async def test_every_storage_request_is_counted_by_service(
    at: Bench, target: Receiver, collected: Collected
) -> None:
    at.requests.clear()
    collected()
    await at.create(id="a", **http_job(target.url, every=3600, start=NOON))
    await at.dispatch()
    await at.app.detector.tick()
    queue = sum("/messages" in line for line in at.requests)
    found = collected()
    assert found["storage_requests.queue"] == queue > 0
    assert found["storage_requests.table"] == len(at.requests) - queue > 0
