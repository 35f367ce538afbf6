"""Overlap: a bound on runs, who waits, who is skipped, and windows in order."""

import asyncio
import json
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web

from shared.storage.table import Verb, Write
from tests.engine.test_steps import call, wait
from tests.harness import NOON, Bench, Hit, Receiver, bench, http_job, until


def bounded(uri: str, runs: int, waiting: int | None = None, every: int = 10, **more: Any) -> dict[str, Any]:
    job = http_job(uri, every=every, **more)
    concurrency = {"runs": runs} | ({} if waiting is None else {"maximumWaitingRuns": waiting})
    job["trigger"]["runtimeConfiguration"] = {"concurrency": concurrency}
    return job


def sliding(uri: str, every: int = 3600, start: str = "2026-09-01T12:00:00Z", **trigger: Any) -> dict[str, Any]:
    job = http_job(uri)
    recurrence = {"frequency": "Second", "interval": every, "startTime": start}
    job["trigger"] = {"type": "SlidingWindow", "recurrence": recurrence} | trigger
    return job


class Slow:
    """A target that answers when it is let."""

    def __init__(self, target: Receiver) -> None:
        self.go = asyncio.Event()
        target.answer = self.answer

    async def answer(self, hit: Hit) -> web.Response:
        await self.go.wait()
        return web.Response()


async def started(at: Bench, target: Receiver, hits: int) -> asyncio.Task[None]:
    task = asyncio.create_task(at.dispatch())
    await until(lambda: len(target.hits) >= hits)
    return task


async def test_while_one_runs_and_none_may_wait_points_are_skipped_as_one_record(
    at: Bench, target: Receiver
) -> None:
    slow = Slow(target)
    await at.create(id="a", **bounded(target.url, 1, 0))
    first = await started(at, target, 1)
    for _ in range(4):
        at.clock.advance(seconds=10)
        await at.dispatch()
    assert len(target.hits) == 1
    slow.go.set()
    await first
    at.clock.advance(seconds=10)
    await at.dispatch()
    assert len(target.hits) == 2
    runs = await at.runs("a")
    assert [run["status"] for run in runs] == ["Succeeded", "Skipped", "Succeeded"]
    assert (runs[1]["from"], runs[1]["to"]) == ("2026-09-08T12:00:10Z", "2026-09-08T12:00:40Z")
    assert runs[1]["count"] == 4
    assert runs[1]["reason"]
    job = (await at.call("get", id="a")).body
    assert (job["fired"], job["skipped"]) == (2, 4)


async def test_single_instance_means_one_and_none(at: Bench, target: Receiver) -> None:
    slow = Slow(target)
    job = http_job(target.url)
    job["trigger"]["operationOptions"] = "SingleInstance"
    await at.create(id="a", **job)
    first = await started(at, target, 1)
    at.clock.advance(seconds=10)
    await at.dispatch()
    slow.go.set()
    await first
    assert [run["status"] for run in await at.runs("a")] == ["Skipped", "Succeeded"]


async def test_points_wait_in_order_and_start_as_there_is_room(at: Bench, target: Receiver) -> None:
    slow = Slow(target)
    await at.create(id="a", **bounded(target.url, 1, 2))
    first = await started(at, target, 1)
    for _ in range(3):
        at.clock.advance(seconds=10)
        await at.dispatch()
    runs = await at.runs("a")
    assert [run["status"] for run in runs] == ["Skipped", "Waiting", "Waiting", "Running"]
    slow.go.set()
    await first
    assert len(target.hits) == 1  # the first pass has had its time: what its run lets through is for others
    await at.take_runs()
    assert [hit.scheduled for hit in target.hits] == [NOON + timedelta(seconds=10 * n) for n in range(3)]
    runs = await at.runs("a")
    assert [run["status"] for run in runs] == ["Skipped", "Succeeded", "Succeeded", "Succeeded"]
    assert not await at.rows("run")


async def test_a_bounded_occurrence_costs_eight_requests(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **bounded(target.url, 1, 0, every=60))
    for _ in range(3):
        at.requests.clear()
        await at.dispatch("a")
        assert len(at.requests) <= 6  # beside receiving and deleting its ticket
        at.clock.advance(seconds=60)
    assert len(target.hits) == 3


async def test_an_idle_run_counts_as_under_way(at: Bench, target: Receiver) -> None:
    job = bounded(target.url, 1, 0)
    del job["action"]
    await at.create(id="a", **job, actions={"Pause": wait(35), "Call": call(target.url, {"Pause": ["Succeeded"]})})
    for _ in range(4):
        await at.dispatch()
        at.clock.advance(seconds=10)
    assert not target.hits
    await at.dispatch()
    assert len(target.hits) == 1
    statuses = [run["status"] for run in await at.runs("a")]
    assert statuses[-1] == "Succeeded"
    assert "Skipped" in statuses


async def test_past_windows_are_caught_up_oldest_first(at: Bench, target: Receiver) -> None:
    job = sliding(target.url, start="2026-09-06T12:00:00Z", runtimeConfiguration={"concurrency": {"runs": 1}})
    job["action"]["inputs"]["body"] = {
        "from": "@trigger().outputs.windowStartTime",
        "to": "@trigger().outputs.windowEndTime",
    }
    await at.create(id="a", **job)
    for _ in range(40):
        await at.dispatch("a")
        if len(target.hits) >= 49:
            break
    windows = [json.loads(hit.body) for hit in target.hits]
    assert len(windows) == 49  # two days of hours, and the one that starts now
    assert windows[0] == {"from": "2026-09-06T12:00:00Z", "to": "2026-09-06T13:00:00Z"}
    assert all(earlier["to"] == later["from"] for earlier, later in pairwise(windows))
    assert len({hit.key for hit in target.hits}) == 49
    (newest, *_) = await at.runs("a")
    assert newest["windowStartTime"] == "2026-09-08T12:00:00Z"
    assert newest["windowEndTime"] == "2026-09-08T13:00:00Z"
    assert (await at.call("get", id="a")).body["nextOccurrence"] == "2026-09-08T13:00:00Z"


async def test_windows_never_start_before_the_one_before_them(at: Bench, target: Receiver) -> None:
    job = sliding(target.url, start="2026-09-07T12:00:00Z", runtimeConfiguration={"concurrency": {"runs": 5}})
    await at.create(id="a", **job)
    await at.dispatch("a")
    runs = sorted(await at.runs("a"), key=lambda run: run["seq"])
    assert [run["windowStartTime"] for run in runs] == sorted(run["windowStartTime"] for run in runs)


async def test_a_window_that_finds_no_room_waits_out_of_the_timers(at: Bench, target: Receiver) -> None:
    slow = Slow(target)
    job_body = sliding(target.url, start="2026-09-07T12:00:00Z", runtimeConfiguration={"concurrency": {"runs": 2}})
    await at.create(id="a", **job_body)
    first = await started(at, target, 2)
    while await at.rows("timer"):  # noqa: ASYNC110  # what is waited for is in the table
        await asyncio.sleep(0.02)
    at.clock.advance(seconds=30)
    await at.dispatch()
    assert len(target.hits) == 2
    (job,) = [await at.app.admin.get("a")]
    assert job.gate.parked
    slow.go.set()
    at.clock.advance(seconds=30)  # the pass has spent its time: it leaves the rest to a ticket
    await first
    assert await at.rows("timer")
    await at.dispatch()
    assert len(target.hits) > 4


async def test_a_window_from_long_ago_starves_nobody(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        await at.create(id="greedy", **sliding(target.url, every=1, start="1970-01-01T00:00:00Z"))
        await at.create(id="modest", **http_job(target.url, every=600, start=NOON))
        dispatching = asyncio.create_task(at.dispatch())
        await until(lambda: len(target.hits) > 100)
        at.clock.advance(seconds=21)  # its time is spent
        await dispatching
        assert "modest" in {hit.job for hit in target.hits[:60]}
        assert len(await at.rows("past")) <= 200
        assert len(await at.rows("timer")) <= 2


async def test_a_delay_shifts_when_a_window_is_due_not_the_window(at: Bench, target: Receiver) -> None:
    job = sliding(target.url, start="2026-09-08T12:00:00Z", inputs={"delay": "PT90S"})
    await at.create(id="a", **job)
    at.clock.advance(seconds=89)
    await at.dispatch()
    assert not target.hits
    at.clock.advance(seconds=1)
    await at.dispatch()
    (run,) = await at.runs("a")
    assert run["windowStartTime"] == "2026-09-08T12:00:00Z"


async def test_jitter_delays_by_a_fixed_share(at: Bench, target: Receiver) -> None:
    job = http_job(target.url, every=3600, start=NOON)
    job["trigger"]["jitter"] = "PT10M"
    dues = set()
    for number in range(8):
        await at.create(id=f"j{number}", **job)
        (item,) = (await at.call("occurrences", id=f"j{number}", query={"count": "1"})).body["value"]
        assert item["scheduledTime"] == "2026-09-08T12:00:00Z"
        assert "2026-09-08T12:00:00Z" <= item["dueTime"] <= "2026-09-08T12:10:00Z"
        dues.add(item["dueTime"])
    assert len(dues) > 4
    at.clock.advance(minutes=10)
    await at.dispatch()
    assert [hit.scheduled for hit in target.hits] == [NOON] * 8


async def test_jitter_never_reaches_the_next_scheduled_time(at: Bench, target: Receiver) -> None:
    job = http_job(target.url, every=5, start=NOON)
    job["trigger"]["jitter"] = "PT24H"
    await at.create(id="a", **job)
    items = (await at.call("occurrences", id="a", query={"count": "3"})).body["value"]
    for item, following in pairwise(items):
        assert item["dueTime"] < following["scheduledTime"]


@pytest.mark.parametrize("runs", [1, 3])
async def test_two_dispatchers_keep_the_bound(storage: str, target: Receiver, runs: int) -> None:
    under_way, most = 0, 0

    async def count(hit: Hit) -> web.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.02)
        under_way -= 1
        return web.Response()

    target.answer = count
    async with bench(storage, PARTITIONS="1") as at:
        configuration = {"concurrency": {"runs": runs}}
        await at.create(id="a", **sliding(target.url, every=21600, runtimeConfiguration=configuration))
        for _ in range(10):
            await asyncio.gather(*(at.dispatch() for _ in range(3)))
        assert len({hit.key for hit in target.hits}) == len(target.hits) == 29
        assert most <= runs


@pytest.mark.parametrize("lost", range(1, 9))
async def test_no_lost_answer_loses_a_window_or_breaks_the_bound(at: Bench, target: Receiver, lost: int) -> None:
    await at.create(id="a", **sliding(target.url, every=86400, runtimeConfiguration={"concurrency": {"runs": 1}}))
    seen = 0

    def lose(line: str) -> bool:
        nonlocal seen
        seen += "$batch" in line
        return "$batch" in line and seen == lost

    at.wire.lose_answer = lose
    for _ in range(3):
        await at.dispatch()
        at.clock.advance(seconds=66)
        await at.take_runs()
    assert len({hit.key for hit in target.hits}) == 8


@pytest.mark.parametrize(("seconds", "called", "tickets"), [(10, 2, 0), (30, 1, 1)])
async def test_what_a_gate_lets_through_starts_where_its_pass_still_has_time_else_it_is_announced(
    at: Bench, target: Receiver, seconds: int, called: int, tickets: int
) -> None:
    slow = Slow(target)
    await at.create(id="a", **bounded(target.url, 1, 1))
    first = await started(at, target, 1)
    at.clock.advance(seconds=10)
    await at.dispatch()
    at.clock.advance(seconds=seconds - 10)
    at.requests.clear()
    slow.go.set()
    await first
    assert (len(target.hits), len([line for line in at.requests if "/messages" in line])) == (called, tickets)
    await at.take_runs()
    assert [run["status"] for run in await at.runs("a")] == ["Succeeded", "Succeeded"]
    assert at.app.workshop.slots.taken == 0


async def test_a_gate_that_others_keep_changing_costs_no_run_and_sets_no_timer_aside(
    at: Bench, target: Receiver
) -> None:
    """Firing and completing lose their race at the job's row 15 times each, and go on."""
    job = http_job(target.url, every=600, start=NOON)
    job["trigger"]["runtimeConfiguration"] = {"concurrency": {"runs": 1}}
    await at.create(id="a", **job)
    partition = at.app.store.jobs.partition("a")
    lost = {"fire": 0, "complete": 0}
    touching = False

    async def touch(line: str) -> None:
        nonlocal touching
        stage = "complete" if target.hits else "fire"
        if "$batch" not in line or touching or lost[stage] >= 15:
            return
        lost[stage] += 1
        touching = True
        await at.app.store.table.commit(partition, [Write(Verb.MERGE, {"RowKey": "job:a", "fault": ""})])
        touching = False

    at.wire.hold = touch
    await at.dispatch("a")
    assert lost == {"fire": 15, "complete": 15}
    assert [(run["seq"], run["status"]) for run in await at.runs("a")] == [(1, "Succeeded")]
    assert len(target.hits) == 1
    assert (await at.app.admin.get("a")).fault == ""
