"""A sleeping host elsewhere, in real time: woken, killed half-way; another goes on with what was saved."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from examples.host_client import (
    Api,
    Host,
    HostLockExpired,
    InstanceLocked,
    InstanceLockLost,
    InstancePersistenceError,
    StaleInstanceVersion,
)
from tests.harness import until
from tests.stories.host import ROOT, HostProcess

KIND = "acme/nightly"


class ExampleHost:
    """`python -m examples.host`, its lines of JSON read as they come."""

    def __init__(self, url: str, *more: str) -> None:
        self._arguments = ("-m", "examples.host", "--url", url, "--type", KIND, "--idle", "2", *more)
        self.told: list[dict[str, Any]] = []
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, *self._arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process
        assert self._process.stdout
        async for line in self._process.stdout:
            self.told.append(json.loads(line))

    async def kill(self) -> None:
        if self._process and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
            await self._reading

    def all(self, what: str) -> list[dict[str, Any]]:
        return [line for line in self.told if line["what"] == what]


@pytest.fixture
async def app(storage: str) -> AsyncIterator[HostProcess]:
    process = HostProcess(storage, HOST_LOCK_RENEWAL_PERIOD="PT1S")
    await process.start()
    yield process
    await process.kill()


async def test_a_sleeping_host_is_woken_and_killed_and_another_goes_on(app: HostProcess) -> None:
    first = ExampleHost(app.url, "--listen", "0", "--step", "0.5")
    second = ExampleHost(app.url, "--step", "0.01")
    try:
        await first.start()
        await until(lambda: first.all("listening"))
        port = first.all("listening")[0]["port"]
        activation = {"site": f"http://127.0.0.1:{port}", "applicationPath": "app", "servicePath": "nightly"}
        job = {
            "serviceType": KIND,
            "parameters": {"steps": 40},
            "trigger": {"type": "Once"},
            "activation": activation,
        }
        status, made = await app.call("PUT", "/jobs/a", job)
        assert status == 201, made

        await until(lambda: len(first.all("saved")) >= 2, 60)
        assert [line["path"] for line in first.all("activated")] == ["/app/nightly"]
        _, runs = await app.call("GET", "/jobs/a/runs")
        assert [run["status"] for run in runs["value"]] == ["Running"]
        await first.kill()
        saved = first.all("saved")[-1]

        await second.start()
        await until(lambda: second.all("loaded"), 120)
        loaded = second.all("loaded")[0]
        assert loaded["done"] in (saved["done"], saved["done"] + 1)  # what it saved last it may not have told
        assert loaded["fencingToken"] > saved["fencingToken"]

        late = {name: saved[name] for name in ("jobId", "run", "fencingToken", "version")} | {
            "state": {"done": 999}
        }
        status, problem = await app.call("POST", f"/hosts/{saved['host']}/save", late)
        assert (status, problem["type"]) == (409, "HostLockExpired")
        status, problem = await app.call("POST", f"/hosts/{loaded['host']}/save", late)
        assert (status, problem["type"]) == (409, "InstanceLockLost")

        await until(lambda: second.all("completed"), 120)
        _, runs = await app.call("GET", "/jobs/a/runs")
        (run,) = runs["value"]
        assert (run["status"], run["result"], run["attempts"]) == ("Succeeded", {"steps": 40}, 2)
    finally:
        await first.kill()
        await second.kill()


async def test_a_workflow_of_the_app_counts_down_over_a_kill(app: HostProcess) -> None:
    job = {
        "serviceType": "example/countdown",
        "parameters": {"from": 4, "pause": 1},
        "trigger": {"type": "Once"},
    }
    status, made = await app.call("PUT", "/jobs/b", job)
    assert status == 201, made
    await asyncio.sleep(2)
    await app.kill()
    await app.start()
    async with asyncio.timeout(90):
        while True:
            _, runs = await app.call("GET", "/jobs/b/runs")
            if runs["value"] and runs["value"][0]["status"] not in ("Running", "Waiting"):
                break
            await asyncio.sleep(0.2)
    (run,) = runs["value"]
    assert (run["status"], run["result"]["liftOff"]) == ("Succeeded", "b")


async def test_the_client_speaks_every_route(app: HostProcess) -> None:
    await asyncio.to_thread(drive, app.url)
    for job in ("c", "d"):
        _, runs = await app.call("GET", f"/jobs/{job}/runs")
        assert [run["status"] for run in runs["value"]] == ["Failed" if job == "c" else "Succeeded"]


def drive(url: str) -> None:
    """What a program elsewhere does with the client."""
    api = Api(url, None)
    activation = {"site": "http://127.0.0.1:9", "applicationPath": "", "servicePath": ""}
    with Host.register(url, ["Any"], activation_type="WAS") as generic:
        for job in ("c", "d"):
            body = {"serviceType": KIND, "trigger": {"type": "Once"}, "activation": activation, "tags": {}}
            api.call("PUT", f"/jobs/{job}", body)
        assert generic.wait(30) == ["Any"]
        assert generic.query_activatable() == [{"serviceType": KIND} | activation]
        with pytest.raises(InstancePersistenceError):
            generic.try_load()
    with pytest.raises(HostLockExpired):
        generic.renew()
    with Host.register(url, [KIND]) as one, Host.register(url, [KIND]) as two:
        assert one.wait(30) == [KIND]
        first = one.try_load()
        assert first
        with pytest.raises(InstanceLocked):
            two.load(first.job_id, first.run)
        first.save({"n": 1}, activation)
        one.renew()
        assert not first.lost
        first.unlock({"n": 2}, until=datetime.now(UTC) + timedelta(hours=1))
        with pytest.raises(InstanceLockLost):
            first.save({"late": True})
        again = two.load(first.job_id, first.run)
        assert (again.state, again.version, again.window) == ({"n": 2}, 2, None)
        again.complete(status="Failed" if again.job_id == "c" else "Succeeded", reason="as asked")
        second = two.try_load()
        assert second
        second.version += 1
        with pytest.raises(StaleInstanceVersion):
            second.save({})
        second.version -= 1
        second.complete(status="Failed" if second.job_id == "c" else "Succeeded")
        assert two.try_load() is None
        assert two.wait(0) == []
