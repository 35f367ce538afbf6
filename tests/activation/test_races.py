"""Two that meet over one instance, at each request of the one: the other is let in there."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import pytest

from tests.activation.support import RemoteHost, hosted, saving
from tests.activation.support import host as new_host
from tests.audit import audit
from tests.engine.test_races import meeting
from tests.harness import Bench, bench

EVERY = 9_000_000


@dataclass
class Meeting:
    """A job whose run 1 is `instance`, loaded by `host` if it `is_loaded`; `other` is a host as well."""

    at: Bench
    job: str
    host: RemoteHost
    other: RemoteHost
    instance: Any = None

    async def saves(self, **more: Any) -> Any:
        return await self.host.ask("save", saving(self.instance, **more))

    async def loads(self, host: RemoteHost) -> Any:
        return await host.ask("load", {"jobId": self.job, "run": 1})

    async def asks(self, operation: str) -> Any:
        return await self.at.call(operation, "runs", id=self.job, seq="1")

    async def deletes(self) -> Any:
        return await self.at.call("delete", id=self.job)

    async def puts_a_bound(self) -> Any:
        body = hosted(EVERY, start=self.at.clock())
        body["trigger"]["runtimeConfiguration"] = {"concurrency": {"runs": 1}}
        return await self.at.call("put", id=self.job, body=body)

    async def loses(self) -> Any:
        """The lock runs out, and dispatch finds it; the host's own lease goes on."""
        for _ in range(3):
            self.at.clock.advance(seconds=25)
            await self.host.renew()
        await self.at.take_runs()


Doing = Callable[[Meeting], Awaitable[Any]]

WAITING: dict[str, Doing] = {
    "try to load": lambda it: it.host.ask("try_load"),
    "load": lambda it: it.loads(it.host),
}
LOADED: dict[str, Doing] = {
    "save": lambda it: it.saves(state="new"),
    "unlock": lambda it: it.saves(state="new", unlock=True),
    "unlock until later": lambda it: it.saves(unlock=True, pendingTimer="2026-09-08T12:00:00Z"),
    "complete": lambda it: it.saves(complete={"result": "host"}),
    "renew": lambda it: it.host.ask("renew", {"instances": [saving(it.instance) | {"version": None}]}),
}
INTRUDERS: dict[str, Doing] = {
    "another host": lambda it: it.loads(it.other),
    "cancel": lambda it: it.asks("cancel"),
    "delete": lambda it: it.deletes(),
    "put a bound": lambda it: it.puts_a_bound(),
    "dispatch": lambda it: it.at.take_runs(),
}


# Before each request; or before each third one, from another on each time.
STEPS = pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.soak)])


async def meet(
    at: Bench, works: dict[str, Doing], intruders: dict[str, Doing], is_loaded: bool, step: int
) -> None:
    """Each work met by each intruder, before each `step`-th of its requests; every time with a job of its own."""
    number = 0
    for turn, ((work, do), (intruder, intrude)) in enumerate(product(works.items(), intruders.items())):
        for request in range(1 + turn % step, 8, step):
            number += 1
            it = await prepared(at, f"j{number}", is_loaded)
            answer = await meeting(at, request, partial(intrude, it), do(it))
            try:
                await settled(it, work, answer)
            except AssertionError as error:
                raise AssertionError(f"{work} meets {intruder} at request {request}: {error}") from error
            if len(at.requests) < request:
                break


@STEPS
async def test_a_waiting_instance_is_loaded_by_one_or_ended(storage: str, step: int) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        await meet(at, WAITING, INTRUDERS, False, step)
        met_by_a_host = {"another host": INTRUDERS["another host"]}
        operations = {name: INTRUDERS[name] for name in ("cancel", "delete", "put a bound")}
        await meet(at, operations, met_by_a_host, False, step)


@STEPS
async def test_a_loaded_instance_is_saved_by_its_holder_or_by_nobody(storage: str, step: int) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        intruders = {name: INTRUDERS[name] for name in ("cancel", "delete")} | {"a lost lock": Meeting.loses}
        await meet(at, LOADED, intruders, True, step)
        await meet(at, {"complete": LOADED["complete"]}, {"put a bound": INTRUDERS["put a bound"]}, True, step)


async def prepared(at: Bench, job: str, is_loaded: bool) -> Meeting:
    await at.create(id=job, **hosted(EVERY, start=at.clock()))
    await at.dispatch()
    it = Meeting(at, job, await new_host(at), await new_host(at))
    if is_loaded:
        it.instance = await it.host.try_load()
        assert it.instance["jobId"] == job
    return it


async def settled(it: Meeting, work: str, answer: Any) -> None:
    """What was answered holds, and a survivor ends what is left: nothing is there twice, nothing gets lost."""
    at = it.at
    assert answer.status < 500
    assert await audit(at.app.store) == []
    listed = await at.call("list", "runs", id=it.job)
    if work == "complete" and answer.status == 200 and listed.status == 200:
        assert listed.body["value"][0]["result"] == "host"
    found = []
    for _ in range(3):
        if not await left(at):
            break
        at.clock.advance(seconds=66)
        await at.dispatch()
        await at.take_runs()
        survivor = await new_host(at)
        while instance := await survivor.try_load():
            found.append(instance)
            await survivor.save(instance, complete={"result": "survivor"})
    assert len(found) <= 1
    assert not await left(at)
    listed = await at.call("list", "runs", id=it.job)
    if listed.status == 200:
        (run,) = listed.body["value"]
        assert run["status"] in ("Succeeded", "Cancelled")
        assert (run.get("result") == "survivor") == bool(found)
        await it.deletes()


async def left(at: Bench) -> list[Any]:
    """The rows of runs that have not ended."""
    return [row for kind in ("run", "idle") for row in await at.rows(kind)]


async def test_many_hosts_save_and_give_back_one_instance_in_turn(at: Bench) -> None:
    await at.create(id="a", **hosted(EVERY))
    await at.dispatch()
    hosts = [await new_host(at) for _ in range(4)]

    async def count_up(one: RemoteHost) -> int:
        saved = 0
        while saved < 5:
            if instance := await one.try_load():
                state = (instance["state"] or 0) + 1
                await one.save(instance, state=state, unlock=True)
                saved += 1
            await asyncio.sleep(0)
        return saved

    assert await asyncio.gather(*map(count_up, hosts)) == [5] * 4
    assert (await hosts[0].try_load())["state"] == 20
