"""Rows that a newer version of the app wrote: left as they are, and no hindrance to the others."""

import asyncio
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from shared.engine.removal import Remover
from shared.errors import NewerFormat
from shared.jobs.model import FORMAT_VERSION
from shared.storage.formats import NEWEST
from shared.storage.hosts import Host, Wake
from shared.storage.rows import run_key, timer_key
from shared.storage.table import Verb, Write
from shared.web.exchange import Request
from tests.harness import NOON, Bench, Hit, Receiver, bench, http_job, until

NEWER = NEWEST + 1
KEY = {"x-functions-key": "the key"}


async def by_newer(at: Bench, key: str) -> Mapping[str, Any]:
    """The row, as a newer version would have written it."""
    await at.app.store.table.commit("00", [Write(Verb.MERGE, {"RowKey": key, "v": NEWER})])
    row = await at.app.store.table.get("00", key)
    assert row
    return row


async def still(at: Bench, *rows: Mapping[str, Any]) -> bool:
    """Whether the rows are as they were, their versions too."""
    return [await at.app.store.table.get("00", row["RowKey"]) for row in rows] == list(rows)


def transactions(at: Bench) -> int:
    return sum("$batch" in line for line in at.requests)


def tickets(at: Bench) -> int:
    return sum("/messages" in line for line in at.requests)


def waits(**more: Any) -> dict[str, Any]:
    job = http_job("http://127.0.0.1:9/", every=3600, start=NOON, **more)
    return job | {"action": {"type": "Wait", "inputs": {"interval": {"count": 1, "unit": "Minute"}}}}


async def health(at: Bench) -> Any:
    return (await at.app.api.health.health(_asked())).body


def _asked() -> Any:
    return Request(url="http://localhost/api/health", headers=KEY, route={}, query={}, body=b"")


async def test_timers_of_every_kind_are_left_and_those_beside_them_fire(
    storage: str, target: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    async with bench(storage, PARTITIONS="1", HEALTH_KEY="the key") as at:
        await at.create(id="rests", **waits())
        await at.dispatch()
        for name in ("baton", "removed", "plain"):
            await at.create(id=name, **http_job(target.url, every=3600, start=NOON + timedelta(seconds=60)))
        removed = await at.app.store.jobs.get("removed")
        assert removed
        await Remover(at.app.store.jobs, at.app.store.runs).begin(removed, at.clock())
        at.clock.advance(seconds=70)
        keys = [row["RowKey"] for row in await at.rows("timer")]
        left = [await by_newer(at, key) for key in keys if not key.endswith((":plain", ":rests"))]
        assert len(left) == 3
        at.requests.clear()
        await at.dispatch()
        assert [hit.job for hit in target.hits] == ["plain"]
        assert transactions(at) == 2  # plain is fired and completed
        assert await still(at, *left)

        caplog.clear()
        for _ in range(3):  # neither dispatch nor detection makes more of them as time goes by
            at.clock.advance(seconds=61)
            at.requests.clear()
            assert await at.app.detector.tick()
            assert tickets(at) == 1
            await at.dispatch()
            assert transactions(at) == 1  # how far detection has come
            assert tickets(at) == 1
        assert await still(at, *left)
        told = [r for r in caplog.records if getattr(r, "action", "") == "leave"]
        assert [(r.levelno, r.__dict__["count"]) for r in told] == [(logging.WARNING, 3)] * 3
        assert (await health(at))["newerRows"] == 3


async def test_however_many_timers_are_left_those_behind_them_fire(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        await at.create(id="z", **http_job(target.url, every=3600, start=NOON + timedelta(seconds=10)))
        rows = [
            {"RowKey": timer_key(NOON, f"n{number:04d}"), "kind": "fire", "v": NEWER} for number in range(1100)
        ]
        for start in range(0, len(rows), 100):
            writes = [Write(Verb.INSERT, row) for row in rows[start : start + 100]]
            await at.app.store.table.commit("00", writes)
        at.clock.advance(seconds=10)
        await at.dispatch()
        assert [hit.job for hit in target.hits] == ["z"]
        assert len(await at.rows("timer")) == 1101


async def test_runs_are_left_and_those_beside_them_are_taken(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1", HEALTH_KEY="the key") as at:
        for name in ("a", "b"):
            await at.create(id=name, **http_job(target.url, every=36000, start=NOON))
            await at.fire_only(name)
        left = await by_newer(at, run_key("a", 1))
        crowd = [{**left, "RowKey": run_key("a", number)} for number in range(2, 122)]
        for start in range(0, len(crowd), 60):
            writes = [Write(Verb.INSERT, row) for row in crowd[start : start + 60]]
            await at.app.store.table.commit("00", writes)
        at.clock.advance(minutes=2)
        at.requests.clear()
        await at.take_runs()
        assert [hit.job for hit in target.hits] == ["b"]
        assert (transactions(at), tickets(at)) == (2, 0)
        await at.app.detector.tick()
        at.requests.clear()
        await at.take_runs()
        assert (transactions(at), tickets(at)) == (0, 0)
        assert await still(at, left)
        assert (await health(at))["newerRows"] == 121


async def test_a_run_taken_over_by_a_newer_version_is_written_by_nobody_else(
    storage: str, target: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    release = asyncio.Event()

    async def slowly(hit: Hit) -> web.Response:
        if hit.job == "a":
            await release.wait()
        return web.Response()

    target.answer = slowly
    async with bench(storage, PARTITIONS="1") as at:
        for name in ("a", "b"):
            await at.create(id=name, **http_job(target.url, every=36000, start=NOON))
        passing = asyncio.create_task(at.dispatch())
        await until(lambda: len(target.hits) == 2)
        left = await by_newer(at, run_key("a", 1))
        release.set()
        await passing
        assert await still(at, left)
        assert [run["status"] for run in await at.runs("b")] == ["Succeeded"]
        told = [(record.levelno, vars(record)["job"]) for record in caplog.records]
        assert told == [(logging.WARNING, "a")]  # a run that is lost, no fault of the app's own


async def test_a_job_is_left_and_its_routes_say_to_try_again(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for name in ("a", "b", "c"):
            await at.create(id=name, **http_job(target.url, every=3600, start=NOON + timedelta(hours=1)))
        left = await by_newer(at, "job:b")
        body = http_job(target.url)
        answers = [await at.call(route, id="b") for route in ("get", "delete", "suspend", "resume", "occurrences")]
        answers += [await at.call("put", id="b", body=body), await at.call("create", body=body | {"id": "b"})]
        answers += [await at.call(route, "runs", id="b") for route in ("list", "run_now")]
        answers += [await at.call(route, "runs", id="b", seq="1") for route in ("get", "cancel", "resubmit")]
        for answer in answers:
            assert answer.status == 503, answer.body
            assert "newer version" in answer.body["detail"]
        assert await still(at, left)
        listed = (await at.call("list")).body
        assert [job["id"] for job in listed["value"]] == ["a", "c"]
        first = (await at.call("list", query={"pageSize": "1"})).body
        rest = (await at.call("list", query={"pageSize": "9", "continuation": first["continuation"]})).body
        assert [job["id"] for job in first["value"] + rest["value"]] == ["a", "c"]


async def test_a_page_of_jobs_reads_no_more_than_it_may_although_it_lists_none(
    storage: str, target: Receiver
) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        await at.create(id="z", **http_job(target.url, every=3600, start=NOON + timedelta(hours=1)))
        rows = [{"RowKey": f"job:n{number:05d}", "v": NEWER} for number in range(2100)]
        for start in range(0, len(rows), 100):
            writes = [Write(Verb.INSERT, row) for row in rows[start : start + 100]]
            await at.app.store.table.commit("00", writes)
        page = (await at.call("list", query={"pageSize": "500"})).body
        assert page["value"] == []
        page = (await at.call("list", query={"pageSize": "500", "continuation": page["continuation"]})).body
        assert ([job["id"] for job in page["value"]], page["continuation"]) == (["z"], None)


async def test_a_baton_whose_job_is_newer_is_not_set_aside(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        job = http_job(target.url, every=3600, start=NOON)
        job["trigger"]["operationOptions"] = "SingleInstance"
        await at.create(id="a", **job)
        await at.create(id="b", **http_job(target.url, every=3600, start=NOON))
        (baton,) = [row for row in await at.rows("timer") if row["RowKey"].endswith(":a")]
        left = await by_newer(at, "job:a")
        await at.dispatch()
        assert [hit.job for hit in target.hits] == ["b"]
        assert await still(at, left, baton)


async def test_a_run_at_the_gate_of_a_newer_job_is_executed_once_and_left_to_the_newer_version(
    storage: str, target: Receiver
) -> None:
    async with bench(storage, PARTITIONS="1") as at:

        async def upgraded(hit: Hit) -> web.Response:
            await by_newer(at, "job:a")
            return web.Response()

        target.answer = upgraded
        job = http_job(target.url, every=36000, start=NOON)
        job["trigger"]["operationOptions"] = "SingleInstance"
        await at.create(id="a", **job)
        await at.dispatch()
        for _ in range(3):
            at.clock.advance(minutes=2)
            await at.take_runs()
        assert len(target.hits) == 1
        target.answer = None
        await at.app.store.table.commit("00", [Write(Verb.MERGE, {"RowKey": "job:a", "v": FORMAT_VERSION})])
        await at.take_runs()
        assert len(target.hits) == 2
        assert [run["status"] for run in await at.runs("a")] == ["Succeeded"]


async def test_runs_and_records_of_a_job_are_left_by_whatever_is_done_to_it(
    storage: str, target: Receiver
) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        await at.create(id="a", **http_job(target.url, every=60, start=NOON))
        await at.dispatch()
        at.clock.advance(seconds=60)
        await at.fire_only("a")
        left = [await by_newer(at, run_key("a", 2))]
        left.append(await by_newer(at, (await at.rows("past"))[0]["RowKey"]))
        bound = http_job(target.url, every=60, start=NOON)
        bound["trigger"]["operationOptions"] = "SingleInstance"
        answers = [await at.call("list", "runs", id="a"), await at.call("cancel", "runs", id="a", seq="2")]
        answers += [await at.call("put", id="a", body=bound), await at.call("delete", id="a")]
        assert [answer.status for answer in answers] == [503] * 4
        assert await still(at, *left)
        at.clock.advance(minutes=2)
        await at.dispatch()
        assert await still(at, *left)
        assert (await at.call("get", id="a")).status == 404
        await at.app.store.table.commit("00", [Write(Verb.DELETE, {"RowKey": row["RowKey"]}) for row in left])
        await at.dispatch()
        assert await at.rows("job") == []


async def test_hosts_are_left(storage: str, caplog: pytest.LogCaptureFixture) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        hosts, later = at.app.store.hosts, NOON + timedelta(hours=1)
        await hosts.add(Host(id="one", service_types=("acme/x",), locked_until=later))
        assert await hosts.claim(Wake(service_type="acme/x", tries=1, next_at=later))
        rows = await at.app.store.table.scan("hosts", "host:", "wake;")
        assert {row["v"] for row in rows} == {FORMAT_VERSION}
        unreadable = {"v": NEWER, "nextAt": 7, "lockedUntil": 7}
        writes = [Write(Verb.MERGE, {"RowKey": row["RowKey"]} | unreadable) for row in rows]
        await at.app.store.table.commit("hosts", writes)
        await hosts.add(Host(id="two", service_types=("acme/y",), locked_until=later))
        census = await hosts.census()
        assert ([host.id for host in census.hosts], census.wakes) == (["two"], {})
        assert not caplog.records
        with pytest.raises(NewerFormat):
            await hosts.get("one")
