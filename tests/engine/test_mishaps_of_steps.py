"""Mishaps of runs with steps, gates and operations that once lost or repeated something, held off for good."""

import asyncio
import os
from contextlib import suppress
from typing import Any

from aiohttp import web
from azure.storage.queue.aio import QueueClient

from shared.storage.table import StoreFailed, Verb, Write
from tests.engine.test_gate import bounded, sliding
from tests.engine.test_steps import call, steps_job, wait
from tests.harness import NOON, Bench, Hit, Receiver, bench, http_job, until


async def test_runs_that_end_while_others_are_committed_are_not_dropped(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        await at.create(id="a", **http_job(target.url, every=36000, start=NOON.replace(year=2027)))
        for _ in range(60):
            assert (await at.call("run_now", "runs", id="a")).status == 202
        await at.take_runs()
        assert len(target.hits) == 60
        assert not await at.rows("run")


async def test_a_bound_set_while_a_run_is_about_to_rest_counts_it(at: Bench, target: Receiver) -> None:
    go = asyncio.Event()

    async def fail_once(hit: Hit) -> web.Response:
        await go.wait()
        return web.Response(status=500 if len(target.hits) == 1 else 200)

    target.answer = fail_once
    body = http_job(target.url, every=3600, start=NOON)
    body["action"]["inputs"]["retryPolicy"] = {"type": "fixed", "count": 1, "interval": "PT10S"}
    await at.create(id="a", **body)
    dispatching = asyncio.create_task(at.dispatch())
    await until(lambda: target.hits)
    body["trigger"]["runtimeConfiguration"] = {"concurrency": {"runs": 1}}
    assert (await at.call("put", id="a", body=body)).status == 200
    go.set()
    await dispatching
    at.clock.advance(seconds=12)
    await at.dispatch()
    assert (await at.app.admin.get("a")).gate.running == 0
    at.clock.advance(seconds=3588)
    await at.dispatch()
    assert len(target.hits) == 3


async def test_a_record_that_is_too_large_is_kept_without_what_targets_answered(
    storage: str, target: Receiver
) -> None:
    async def random(hit: Hit) -> web.Response:
        return web.Response(body=os.urandom(9000).hex()[:16000] if hit.job == "big" else "ok")

    target.answer = random
    names = [f"A{n}" for n in range(12)]
    actions = {n: call(target.url, {names[i - 1]: ["Succeeded"]} if i else None) for i, n in enumerate(names)}
    async with bench(storage, PARTITIONS="1") as at:
        await at.create(id="big", **steps_job(actions))
        for number in range(10):
            await at.create(id=f"j{number}", **http_job(target.url, every=3600, start=NOON))
        await at.dispatch()
        assert len({hit.key for hit in target.hits}) == len(target.hits) == 22
        (run,) = await at.runs("big")
        assert run["status"] == "Succeeded"
        assert any("dropped" in action["response"] for action in run["actions"].values())


async def test_a_job_completed_within_a_second_is_removed_after_its_time(at: Bench, target: Receiver) -> None:
    at.clock.advance(seconds=0.25)
    await at.create(id="a", **http_job(target.url, deleteAfter="PT1M") | {"trigger": {"type": "Once"}})
    await at.dispatch()
    at.clock.advance(minutes=2)
    await at.dispatch()
    assert (await at.call("get", id="a")).status == 404


async def test_a_removal_of_many_idle_runs_can_die_anywhere(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        body = http_job(target.url, every=1, start=NOON)
        del body["action"]
        await at.create(id="a", **body, actions={"Pause": wait(3600)})
        for _ in range(55):
            await at.dispatch()
            at.clock.advance(seconds=1)
        assert len(await at.rows("idle")) == 55
        batches = 0

        async def fail(line: str) -> None:
            nonlocal batches
            batches += "$batch" in line
            if batches == 3:
                raise StoreFailed("storage stumbles")

        at.wire.hold = fail
        with suppress(StoreFailed):
            await at.call("delete", id="a")
        at.wire.hold = None
        # As a split between a timer and its pointer would leave it.
        (pointer, *_) = await at.rows("idle")
        await at.app.store.table.commit("00", [Write(Verb.DELETE, {"RowKey": pointer["timer"]})])
        assert (await at.call("delete", id="a")).status == 204
        for kind in ("job", "timer", "idle", "run", "past"):
            assert not await at.rows(kind)


async def older_zone_data(at: Bench) -> None:
    """Makes the pending timer of job a one that was computed with older data."""
    (row,) = await at.rows("timer")
    partition = at.app.store.jobs.partition("a")
    writes = [Write(Verb.MERGE, {"RowKey": key, "tzdata": "2001a"}) for key in (row["RowKey"], "job:a")]
    await at.app.store.table.commit(partition, writes)


async def test_newer_zone_data_loses_no_window(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **sliding(target.url, start="2026-09-08T00:00:00Z"))
    await older_zone_data(at)
    await at.dispatch()
    assert len({hit.key for hit in target.hits}) == 13


async def test_newer_zone_data_repeats_no_window(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **sliding(target.url, every=7200, start="2026-09-08T00:00:00Z"))
    await at.dispatch()
    await at.call("put", id="a", body=sliding(target.url, every=600, start="2026-09-08T00:00:00Z"))
    await older_zone_data(at)
    at.clock.advance(hours=3)
    await at.dispatch()
    starts = sorted(run["windowStartTime"] for run in await at.runs("a"))
    ends = sorted(run["windowEndTime"] for run in await at.runs("a"))
    assert starts[1:] == ends[:-1]


async def test_newer_zone_data_records_nothing_twice(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=60, start=NOON))
    await at.dispatch()
    await at.call("suspend", id="a")
    at.clock.advance(seconds=605)
    await at.call("resume", id="a")
    await older_zone_data(at)
    at.clock.advance(seconds=60)
    await at.dispatch()
    statuses = [run["status"] for run in await at.runs("a")]
    assert statuses == ["Succeeded", "Skipped", "Succeeded"]


async def test_a_schedule_replaced_while_suspended_leaves_a_record(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=60, start=NOON))
    await at.dispatch()
    await at.call("suspend", id="a")
    at.clock.advance(seconds=605)
    await at.call("put", id="a", body=http_job(target.url, every=120, start=NOON))
    skipped, fired = (await at.runs("a"))[:2]
    assert (skipped["status"], skipped["count"], fired["status"]) == ("Skipped", 10, "Succeeded")


async def test_an_events_queue_that_is_gone_stops_nobody(storage: str, target: Receiver) -> None:
    async with bench(storage, None, PARTITIONS="1", EVENTS_QUEUE="events-gone") as at:
        async with QueueClient.from_connection_string(storage, "events-gone") as queue:
            await queue.delete_queue()
        await at.create(id="a", **http_job(target.url) | {"trigger": {"type": "Once"}})
        await at.create(id="b", **http_job(target.url, every=3600))
        await at.dispatch()
        assert sorted(hit.job for hit in target.hits) == ["a", "b"]


async def test_a_resubmitted_window_keeps_its_bounds_under_another_schedule(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **sliding(target.url, every=3600, start="2026-09-08T11:00:00Z"))
    await at.dispatch()
    await at.call("put", id="a", body=sliding(target.url, every=600, start="2026-09-08T11:00:00Z"))
    await at.call("resubmit", "runs", id="a", seq="1")
    await at.take_runs()
    run: dict[str, Any] = (await at.runs("a"))[0]
    assert (run["windowStartTime"], run["windowEndTime"]) == ("2026-09-08T11:00:00Z", "2026-09-08T12:00:00Z")


async def test_a_changed_limit_ends_an_open_stretch(at: Bench, target: Receiver) -> None:
    go = asyncio.Event()

    async def stall(hit: Hit) -> web.Response:
        await go.wait()
        return web.Response()

    target.answer = stall
    body = bounded(target.url, 1, 0)
    await at.create(id="a", **body)
    dispatching = asyncio.create_task(at.dispatch())
    await until(lambda: target.hits)
    for limit in (100, 200):
        assert (await at.call("put", id="a", body=body | {"historyLimit": limit})).status == 200
        for _ in range(2):
            at.clock.advance(seconds=10)
            await at.dispatch()
    go.set()
    await dispatching
    seqs = [run["seq"] for run in await at.runs("a")]
    assert len(seqs) == len(set(seqs)) == 3
