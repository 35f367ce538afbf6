"""Rows that nobody can read, room that was never given back, clocks that were wrong: each harms itself alone."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from shared.storage.records import UNLOCKED
from shared.storage.rows import job_key, run_key
from shared.storage.table import Verb, Write
from tests.activation.support import fired, hosted, saving
from tests.activation.support import host as new_host
from tests.harness import NOON, Bench, Clock, Hit, Receiver, bench, http_job, process, settings_for, until
from tests.wire import Fate


async def test_slots_are_given_back_where_storage_fails_while_a_pass_waits_for_them(
    storage: str, target: Receiver
) -> None:
    go = asyncio.Event()

    async def answer(hit: Hit) -> web.Response:
        await go.wait()
        return web.Response()

    target.answer = answer
    async with bench(storage, MAX_EXECUTING="1") as at:
        await at.create(id="a", **http_job(target.url, every=9_000_000, start=NOON))
        first = asyncio.create_task(at.dispatch("a"))
        await until(lambda: target.hits)
        await at.call("run_now", "runs", id="a")
        second = asyncio.create_task(at.app.dispatcher.take_runs(at.app.store.jobs.partition("a")))
        await until(lambda: at.app.dispatcher._lingering)
        at.wire.fate = lambda line: Fate.UNSENT if line.startswith("GET") and "run:" in line else Fate.DONE
        go.set()
        await asyncio.gather(first, second)
        at.wire.fate = lambda line: Fate.DONE
        assert at.app.workshop.slots.taken == 0
        await at.take_runs()
        assert len(target.hits) == 2


async def test_a_run_that_cannot_be_completed_holds_nobody_up(storage: str, target: Receiver) -> None:
    async with process(settings_for(storage, PARTITIONS="1"), Clock()) as at:
        bounded = http_job(target.url, every=9_000_000, start=NOON)
        bounded["trigger"]["runtimeConfiguration"] = {"concurrency": {"runs": 1}}
        await at.create(id="a", **bounded)
        await at.create(id="b", **http_job(target.url, every=9_000_000, start=NOON))

        async def lose_the_job(hit: Hit) -> web.Response:
            if hit.job == "a":
                await at.app.store.table.commit("00", [Write(Verb.DELETE, {"RowKey": job_key("a")})])
            return web.Response()

        target.answer = lose_the_job
        await asyncio.wait_for(at.dispatch("a"), 30)
        assert [run["status"] for run in await at.runs("b")] == ["Succeeded"]


@pytest.mark.parametrize("damage", [{"v": 99}, {"createdAt": 7}, {"state": "Odd"}])
async def test_a_job_nobody_can_read_keeps_no_other_from_being_stored(
    storage: str, target: Receiver, damage: dict[str, Any]
) -> None:
    async with process(settings_for(storage, PARTITIONS="1"), Clock()) as at:
        await at.create(id="x", **http_job(target.url))
        await at.app.store.table.commit("00", [Write(Verb.MERGE, {"RowKey": job_key("x"), **damage})])
        lines = [{"op": "put", "id": name, "job": http_job(target.url)} for name in ("n1", "x", "n2")]
        answer = await at.call("carry_out", "bulk", raw="\n".join(map(json.dumps, lines)).encode())
        statuses = [json.loads(line)["status"] for line in answer.body.splitlines()]
        assert statuses[0] == statuses[2] == 201
        assert statuses[1] >= 500


@pytest.mark.parametrize(
    "row",
    [
        {"RowKey": "host:" + "a" * 32, "lockedUntil": "2026"},
        {"RowKey": "wake:x", "tries": 1, "nextAt": "bad"},
    ],
)
async def test_a_row_of_hosts_nobody_can_read_does_not_stop_detection(storage: str, row: dict[str, Any]) -> None:
    async with bench(storage, DETECTION_PERIOD="PT1S") as at:
        await at.app.store.table.commit("hosts", [Write(Verb.INSERT, row)])
        for _ in range(2):
            at.clock.advance(minutes=5)
            assert await at.app.detector.tick()


async def test_a_clock_once_wrong_does_not_end_activation(storage: str, target: Receiver) -> None:
    async with bench(storage, DETECTION_PERIOD="PT1S") as at:
        await fired(at, "a", activation={"site": target.url})
        at.clock.advance(hours=10)
        await at.app.detector.tick()
        at.clock.advance(hours=-9)
        before = len(target.hits)
        await at.app.detector.tick()
        assert len(target.hits) == before + 1


async def test_a_complete_that_is_repeated_is_answered_as_before_whatever_the_limit_is_now(at: Bench) -> None:
    await fired(at, "a", historyLimit=1)
    one = await new_host(at)
    instance = await one.try_load()
    assert (await at.call("put", id="a", body=hosted(historyLimit=50))).status == 200
    answers = [await one.ask("save", saving(instance, complete={})) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 200]


async def test_a_host_that_loads_what_it_holds_gets_a_lock_that_lasts(at: Bench) -> None:
    await fired(at, "a")
    one = await new_host(at)
    await one.try_load()
    for _ in range(3):
        at.clock.advance(seconds=25)
        await one.renew()
    loaded = await one.ask("load", {"jobId": "a", "run": 1})
    assert loaded.status == 200
    assert loaded.body["lockedUntil"] > at.clock().strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_runs_nobody_can_read_hide_no_other(storage: str, target: Receiver) -> None:
    async with process(settings_for(storage, PARTITIONS="1"), Clock()) as at:
        await at.create(id="z", **http_job(target.url, every=9_000_000, start=NOON))
        await at.fire_only("z")
        (row,) = await at.rows("run")
        broken = [
            Write(Verb.INSERT, {**row, "RowKey": run_key("a", seq), "definition": "x", "scheduled": 5})
            for seq in range(1, 101)
        ]
        await at.app.store.table.commit("00", broken)
        at.clock.advance(minutes=10)
        await at.take_runs()
        assert len(target.hits) == 1


async def test_a_run_nobody_can_read_hides_none_where_there_is_one_slot(storage: str, target: Receiver) -> None:
    async with process(settings_for(storage, PARTITIONS="1", MAX_EXECUTING="1"), Clock()) as at:
        for job_id in ("y", "z"):
            await at.create(id=job_id, **http_job(target.url, every=9_000_000, start=NOON))
            await at.fire_only(job_id)
        row = (await at.rows("run"))[0]
        broken = {**row, "definition": "x", "scheduled": 5}
        writes = [Write(Verb.INSERT, {**broken, "RowKey": run_key(job_id, 1)}) for job_id in ("a", "b")]
        await at.app.store.table.commit("00", writes)
        at.clock.advance(minutes=10)
        await at.take_runs()
        assert sorted(hit.job for hit in target.hits) == ["y", "z"]


async def test_runs_nobody_can_read_call_nobody_again_and_again(storage: str) -> None:
    async with process(settings_for(storage, PARTITIONS="1"), Clock()) as at:
        broken = [
            Write(Verb.INSERT, {"RowKey": run_key("a", seq), "v": 1, "lockedUntil": UNLOCKED, "definition": "x"})
            for seq in range(1, 81)
        ]
        await at.app.store.table.commit("00", broken)
        at.requests.clear()
        await at.take_runs()
        assert not [line for line in at.requests if "/messages" in line]
