"""Connections to one host: so many at once, the others wait in order, and their time does not run meanwhile."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from shared.engine.actions.connections import Connections
from shared.engine.actions.outbound import Lookups
from shared.jobs.model import Status
from tests.engine.actions.support import a_call, an_attempt, ended, http_action
from tests.harness import Bench, Hit, Receiver, bench, http_job, receiving, until

HOST = URL("http://one.test/")
AT_ONCE = 0.01  # seconds after which a wait is reported


@dataclass
class Slow:
    """A target that answers no call before `go`."""

    target: Receiver
    go: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.target.answer = self.answer

    async def answer(self, hit: Hit) -> web.Response:
        await self.go.wait()
        return web.Response()


@dataclass
class Told:
    """What an attempt has told that it waits for."""

    reasons: list[str] = field(default_factory=list)

    async def tell(self, reason: str) -> None:
        self.reasons.append(reason)


async def test_the_time_of_a_call_does_not_run_while_it_waits_for_a_connection(target: Receiver) -> None:
    slow, told, connections = Slow(target), Told(), Connections(1, AT_ONCE)
    async with http_action(connections=connections) as action:
        first = asyncio.create_task(action.attempt(an_attempt(a_call(target.url))))
        await until(lambda: target.hits)
        short = timedelta(seconds=0.5)
        second = asyncio.create_task(action.attempt(an_attempt(a_call(target.url), timeout=short, tell=told.tell)))
        await until(lambda: told.reasons)
        longer = asyncio.create_task(asyncio.sleep(2 * short.total_seconds()))
        await until(longer.done)
        assert len(target.hits) == 1
        slow.go.set()
        for each in (first, second):
            ended(await each, Status.SUCCEEDED)
    origin = URL(target.url).origin()
    assert told.reasons == [f"waits for a connection to {origin}: 1 are open", ""]
    assert not connections._hosts


async def test_its_time_runs_once_it_has_one(target: Receiver) -> None:
    slow, told = Slow(target), Told()
    async with http_action(connections=Connections(1, AT_ONCE)) as action:
        first = asyncio.create_task(action.attempt(an_attempt(a_call(target.url))))
        await until(lambda: target.hits)
        inputs = a_call(target.url, retryPolicy={"type": "none"})
        short = timedelta(seconds=0.2)
        second = asyncio.create_task(action.attempt(an_attempt(inputs, timeout=short, tell=told.tell)))
        await until(lambda: told.reasons)
        first.cancel()
        ended(await second, Status.TIMED_OUT)
        slow.go.set()


async def test_another_host_is_not_affected(target: Receiver) -> None:
    slow, connections = Slow(target), Connections(1)
    async with http_action(connections=connections) as action, receiving() as other:
        first = asyncio.create_task(action.attempt(an_attempt(a_call(target.url))))
        await until(lambda: target.hits)
        ended(await action.attempt(an_attempt(a_call(other.url))), Status.SUCCEEDED)
        slow.go.set()
        await first


async def test_a_redirect_takes_a_place_where_it_leads_and_keeps_none(target: Receiver) -> None:
    connections = Connections(1)
    async with http_action(connections=connections) as action, receiving() as other:

        async def away(hit: Hit) -> web.Response:
            return web.Response(status=302, headers={"Location": other.url})

        target.answer, slow = away, Slow(other)
        get = {"method": "GET", "uri": target.url}
        first = asyncio.create_task(action.attempt(an_attempt(get)))
        await until(lambda: other.hits)
        second = asyncio.create_task(action.attempt(an_attempt(get)))
        await until(lambda: len(target.hits) == 2)  # there the first has left its place
        await until(lambda: connections._hosts[str(URL(other.url).origin())].users == 2)
        assert len(other.hits) == 1
        slow.go.set()
        for each in (first, second):
            ended(await each, Status.SUCCEEDED)
        assert len(other.hits) == 2
    assert not connections._hosts


@asynccontextmanager
async def taken(connections: Connections) -> AsyncIterator[asyncio.Event]:
    """One place at the host is taken, until the event that is given is set, or the context is left."""
    free, got = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with asyncio.timeout(None) as time, connections.to(HOST, "a", Told().tell, time):
            got.set()
            await free.wait()

    holding = asyncio.create_task(hold())
    await got.wait()
    yield free
    free.set()
    await holding


async def use(connections: Connections, told: Told, name: str, order: list[str]) -> None:
    """Waits for a connection, and has had one."""
    async with asyncio.timeout(30) as time, connections.to(HOST, "a", told.tell, time):
        order.append(name)


async def test_who_waits_is_served_in_order() -> None:
    connections, order = Connections(1, AT_ONCE), list[str]()
    names = [f"{n}" for n in range(5)]
    async with taken(connections) as free:
        waiting = []
        for name in names:
            told = Told()
            waiting.append(asyncio.create_task(use(connections, told, name, order)))
            await until(lambda: told.reasons)  # noqa: B023
        free.set()
        await asyncio.gather(*waiting)
    assert order == names
    assert not connections._hosts


@pytest.mark.parametrize("told_of", [False, True], ids=["at once", "when it was told of"])
async def test_who_stops_waiting_takes_no_place(told_of: bool) -> None:
    connections, order, told = Connections(1, AT_ONCE if told_of else 60), list[str](), Told()
    async with taken(connections) as free:
        waiting = asyncio.create_task(use(connections, told, "cancelled", order))
        if told_of:
            await until(lambda: told.reasons)
        else:
            await until(lambda: connections._hosts[str(HOST.origin())].users == 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        free.set()
        await use(connections, Told(), "next", order)
    assert order == ["next"]
    assert not connections._hosts


async def test_who_is_stopped_just_as_the_place_is_free_gives_it_on() -> None:
    connections, order, told = Connections(1, AT_ONCE), list[str](), Told()
    for loops in range(6):
        async with taken(connections) as free:
            waiting = asyncio.create_task(use(connections, told, "cancelled", []))
            await until(lambda: told.reasons)
            following = asyncio.create_task(use(connections, Told(), f"{loops}", order))
            free.set()
            for _ in range(loops):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await asyncio.wait({following}, timeout=30)
            assert following.done()
        told.reasons.clear()
    assert order == [f"{loops}" for loops in range(6)]
    assert not connections._hosts


@pytest.mark.parametrize("reasons", [1, 2], ids=["that it waits", "that it goes on"])
async def test_what_telling_raises_ends_the_wait_and_takes_no_place(reasons: int) -> None:
    connections, order, told = Connections(1, AT_ONCE), list[str](), Told()

    class Lost(Exception):
        pass

    async def tell(reason: str) -> None:
        await told.tell(reason)
        if len(told.reasons) == reasons:
            raise Lost

    async with taken(connections) as free:
        async with asyncio.timeout(30) as time:
            waiting = asyncio.ensure_future(connections.to(HOST, "a", tell, time).__aenter__())
            await until(lambda: told.reasons)
            following = asyncio.create_task(use(connections, Told(), "next", order))
            free.set()
            with pytest.raises(Lost):
                await waiting
            await asyncio.wait({following}, timeout=30)
            assert following.done()
    assert order == ["next"]
    assert not connections._hosts


async def two_calls(at: Bench, target: Receiver) -> tuple[asyncio.Task[None], str]:
    """Two jobs at one host that takes one connection: the pass that executes them, and the job that waits."""
    for job_id in ("a", "b"):
        await at.create(id=job_id, **http_job(target.url, every=3600, start=at.clock()))
    dispatching = asyncio.create_task(at.dispatch())
    await until(lambda: target.hits)
    waiting = "b" if target.hits[0].job == "a" else "a"

    async with asyncio.timeout(30):
        while True:
            if (await action_of(at, waiting))["status"] == "Waiting":
                return dispatching, waiting
            await asyncio.sleep(0.05)


async def action_of(at: Bench, job_id: str) -> dict[str, Any]:
    (run,) = await at.runs(job_id)
    actions = (await at.call("get", "runs", id=job_id, seq=str(run["seq"]))).body["actions"]
    found: dict[str, Any] = actions.get("Action", {"status": "Running"})
    return found


@pytest.fixture
async def narrow(storage: str) -> AsyncIterator[Bench]:
    """A bench whose app has one connection to a host."""
    async with bench(storage, PARTITIONS="1", MAX_CONNECTIONS_PER_HOST="1") as at:
        yield at


async def test_a_wait_for_a_connection_is_seen_in_the_run_and_is_no_attempt(narrow: Bench) -> None:
    async with receiving() as target:
        slow = Slow(target)
        dispatching, waiting = await two_calls(narrow, target)
        assert (await action_of(narrow, waiting))["reason"].startswith(
            "waits for a connection to http://127.0.0.1"
        )
        slow.go.set()
        await dispatching
        second = target.hits[1]
        assert (second.job, second.headers["x-timerjobs-attempt"]) == (waiting, "1")
        action = await action_of(narrow, waiting)
        assert (action["status"], action["attempts"]) == ("Succeeded", 1)
        assert "reason" not in action
        assert narrow.app.workshop.slots.taken == 0


async def test_a_run_that_is_cancelled_while_it_waits_takes_no_place(narrow: Bench) -> None:
    async with receiving() as target:
        slow = Slow(target)
        dispatching, waiting = await two_calls(narrow, target)
        assert (await narrow.call("cancel", "runs", id=waiting, seq="1")).status == 202
        slow.go.set()
        await dispatching
        assert len(target.hits) == 1
        assert [run["status"] for run in await narrow.runs(waiting)] == ["Cancelled"]
        assert (await narrow.call("run_now", "runs", id=waiting)).status == 202
        await narrow.take_runs()
        assert len(target.hits) == 2
        assert narrow.app.workshop.slots.taken == 0


async def test_names_that_hang_hold_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    go, hanging = threading.Event(), list[str]()
    real = socket.getaddrinfo

    def look_up(host: Any, *rest: Any, **named: Any) -> Any:
        if str(host).startswith("hangs"):
            hanging.append(host)
            go.wait(60)
            raise OSError("nobody knows it")
        return real(host, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    lookups = Lookups(11)
    tasks = [asyncio.create_task(lookups.resolve(f"hangs-{n}.test")) for n in range(10)]
    try:
        await until(lambda: len(hanging) == 10)
        (found, *_) = await lookups.resolve("127.0.0.1", 80)
        assert (found["host"], found["port"]) == ("127.0.0.1", 80)
        assert not any(task.done() for task in tasks)
    finally:
        go.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await lookups.close()
    assert all(isinstance(result, OSError) for result in results)


async def test_a_fifth_is_kept_for_jobs_that_have_none(target: Receiver) -> None:
    connections, told = Connections(10, AT_ONCE), Told()
    async with AsyncExitStack() as stack, asyncio.timeout(None) as time:
        for _ in range(8):
            await stack.enter_async_context(connections.to(HOST, "a", told.tell, time))
        order: list[str] = []
        async with asyncio.timeout(None) as other:
            waiting = asyncio.ensure_future(connections.to(HOST, "a", told.tell, other).__aenter__())
            await until(lambda: told.reasons)
            assert "8 are open of 10, the others are kept for other jobs" in told.reasons[0]
            for name in ("b", "c"):
                await stack.enter_async_context(connections.to(HOST, name, told.tell, time))
                order.append(name)
            assert order == ["b", "c"]
            assert not waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
    assert not connections._hosts
