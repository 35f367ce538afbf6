"""The main job, end to end, in real time: from CreateTimerJob to calls of a real endpoint."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.harness import Receiver, http_job, until
from tests.stories.host import HostProcess


@pytest.fixture
async def host(storage: str) -> AsyncIterator[HostProcess]:
    process = HostProcess(storage)
    await process.start()
    yield process
    await process.kill()


async def test_a_job_each_second_two_jobs_of_one_second_and_one_whose_first_run_is_now(
    host: HostProcess, target: Receiver
) -> None:
    each_second = http_job(target.url + "/second", every=1, id="second")
    each_second["trigger"]["recurrence"]["count"] = 30
    together = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=8)
    asked_at = datetime.now(UTC)
    for body in (
        each_second,
        once("twin-1", target.url, together),
        once("twin-2", target.url, together),
        once("now", target.url, None),
    ):
        status, job = await host.call("POST", "/jobs", body)
        assert status == 201, job

    await until(lambda: len([hit for hit in target.hits if hit.job == "second"]) >= 30, 120)
    await until(lambda: {"twin-1", "twin-2", "now"} <= {hit.job for hit in target.hits})
    await asyncio.sleep(2)  # for what should not come

    assert all(hit.at >= hit.scheduled for hit in target.hits)
    assert len({hit.key for hit in target.hits}) == len(target.hits) == 33
    seconds = [hit.scheduled for hit in target.hits if hit.job == "second"]
    assert min(seconds) >= asked_at.replace(microsecond=0)
    assert len(set(seconds)) == 30
    assert all(second.microsecond == 0 for second in seconds)
    assert [hit.scheduled for hit in target.hits if hit.job.startswith("twin")] == [together, together]
    for name in ("second", "twin-1", "twin-2", "now"):
        _, job = await host.call("GET", f"/jobs/{name}")
        assert job["state"] == "Completed"
        _, runs = await host.call("GET", f"/jobs/{name}/runs")
        missed = [run for run in runs["value"] if run["status"] == "Missed"]  # on a machine that is too busy
        assert {run["status"] for run in runs["value"] if run not in missed} == {"Succeeded"}
        if name == "second":
            # What was missed before the first call shifts them all.
            left_out = sum(run["count"] for run in missed if datetime.fromisoformat(run["from"]) > min(seconds))
            assert max(seconds) - min(seconds) == timedelta(seconds=29 + left_out)
        else:
            assert not missed
    assert await host.stop() == 0


def once(job_id: str, uri: str, at: datetime | None) -> dict[str, Any]:
    trigger = {"type": "Once"} | ({"runAt": at.strftime("%Y-%m-%dT%H:%M:%SZ")} if at else {})
    return http_job(uri, id=job_id) | {"trigger": trigger}


async def test_a_job_goes_on_after_a_restart(host: HostProcess, target: Receiver) -> None:
    await host.call("PUT", "/jobs/a", http_job(target.url, every=1))
    await until(lambda: len(target.hits) >= 2)
    assert await host.stop() == 0
    before = len(target.hits)
    await host.start()
    await until(lambda: len(target.hits) >= before + 2)
    assert len({hit.key for hit in target.hits}) == len(target.hits)
    status, _ = await host.call("DELETE", "/jobs/a")
    assert status == 204


async def test_ctrl_c_lets_a_running_action_finish(host: HostProcess, target: Receiver) -> None:
    import aiohttp.web

    async def slowly(hit: Any) -> aiohttp.web.Response:
        await asyncio.sleep(2)
        return aiohttp.web.Response()

    target.answer = slowly
    await host.call("PUT", "/jobs/a", http_job(target.url, id="a") | {"trigger": {"type": "Once"}})
    await until(lambda: target.hits)
    assert await host.stop() == 0
    assert not [line for line in host.log if "Unclosed" in line or "Traceback" in line]
    await host.start()
    _, runs = await host.call("GET", "/jobs/a/runs")
    assert [run["status"] for run in runs["value"]] == ["Succeeded"]
    assert len(target.hits) == 1


async def test_a_run_that_waits_twice_goes_on_over_restarts(host: HostProcess, target: Receiver) -> None:
    def call(after: str) -> dict[str, Any]:
        inputs = {"method": "POST", "uri": f"{target.url}/{after}"}
        return {"type": "Http", "inputs": inputs, "runAfter": {after: ["Succeeded"]}}

    def wait(**after: list[str]) -> dict[str, Any]:
        return {"type": "Wait", "inputs": {"interval": {"count": 2, "unit": "Second"}}, "runAfter": after}

    actions = {"First": wait(), "One": call("First"), "Second": wait(One=["Succeeded"]), "Two": call("Second")}
    status, job = await host.call("PUT", "/jobs/a", {"trigger": {"type": "Once"}, "actions": actions})
    assert status == 201, job
    for calls in (1, 2):
        await until_status(host, "Waiting")
        await host.kill()
        await host.start()
        await until_hits(target, calls)
    await until_status(host, "Succeeded")
    assert [hit.path for hit in target.hits] == ["/hook/First", "/hook/Second"]


async def until_hits(target: Receiver, count: int) -> None:
    await until(lambda: len(target.hits) >= count, 60)


async def until_status(host: HostProcess, status: str) -> None:
    async with asyncio.timeout(60):
        while True:
            _, runs = await host.call("GET", "/jobs/a/runs")
            if [run["status"] for run in runs["value"]] == [status]:
                return
            await asyncio.sleep(0.1)
