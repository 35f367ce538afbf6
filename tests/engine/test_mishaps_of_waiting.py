"""What goes wrong around runs that wait: refused commits, a failing pass, a process killed while it waits."""

import asyncio
from collections.abc import Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from shared.engine.crew import Crew
from shared.storage.table import StoreFailed, Verb, Write
from shared.storage.tickets import Ticket
from shared.workflow import Context, registered, workflow
from tests.activation.support import hosted
from tests.engine.test_gate import bounded
from tests.engine.test_waiting_runs import clear, waiting
from tests.harness import NOON, Bench, Hit, Receiver, bench, http_job, until

KIND = "mishaps/workflow"


@pytest.fixture
def kind() -> Iterator[None]:
    """A workflow of the app."""

    async def body(context: Context) -> None:
        """Does nothing."""

    workflow(KIND)(body)
    yield
    registered().pop(KIND)  # type: ignore[attr-defined]


def once_before_a_commit(at: Bench, done: Any) -> None:
    """Has something done just before the next transaction is sent."""
    left = iter([True])

    async def hold(line: str) -> None:
        if "$batch" in line and next(left, False):
            await done()

    at.wire.hold = hold


async def test_runs_in_load_rows_are_missed_though_one_of_them_is_cancelled_meanwhile(
    storage: str, kind: None, caplog: pytest.LogCaptureFixture
) -> None:
    async with bench(storage, PARTITIONS="1", DEFAULT_MAX_LATENESS="PT30S") as at:
        for n in range(3):
            await at.create(id=f"w{n}", **hosted(360_000, KIND))
        with at.full():
            await at.dispatch()
        assert len(await at.rows("load")) == 3
        at.clock.advance(seconds=60)
        once_before_a_commit(at, lambda: at.call("cancel", "runs", id="w0", seq="1"))
        await at.take_runs()
        assert not await at.rows("load")
        assert [(await at.runs(f"w{n}"))[0]["status"] for n in range(3)] == ["Cancelled", "Missed", "Missed"]
        told = [record.__dict__["job"] for record in caplog.records if "left by nobody" in record.getMessage()]
        assert told == ["w0"]


async def test_a_run_in_a_load_row_is_missed_though_its_gate_changes_meanwhile(storage: str, kind: None) -> None:
    async with bench(storage, PARTITIONS="1", DEFAULT_MAX_LATENESS="PT30S") as at:
        job = hosted(360_000, KIND)
        job["trigger"]["runtimeConfiguration"] = {"concurrency": {"runs": 1, "maximumWaitingRuns": 1}}
        await at.create(id="w", **job)
        with at.full():
            await at.dispatch()
        at.clock.advance(seconds=60)
        once_before_a_commit(at, lambda: at.call("run_now", "runs", id="w"))
        await at.take_runs()
        assert (await at.runs("w"))[-1]["status"] == "Missed"
        await at.take_runs()
        assert not await at.rows("load")


async def test_what_cannot_be_recorded_is_not_asked_for_again_and_again(storage: str) -> None:
    async with bench(storage, PARTITIONS="1", DEFAULT_MAX_LATENESS="PT30S", MAX_EXECUTING="2") as at:
        later = NOON + timedelta(hours=5)
        await at.create(id="g", **bounded("http://127.0.0.1:1", 2, 2, every=360_000, start=later))
        await waiting(at, "g", 2, by_hand=False)
        rows = await at.app.store.table.scan("00", "run:", "run;")
        gated = [Write(Verb.MERGE, {"RowKey": row["RowKey"], "gated": True}) for row in rows]
        newer = Write(Verb.MERGE, {"RowKey": "job:g", "v": 99})  # of a newer version meanwhile
        await at.app.store.table.commit("00", [*gated, newer])
        at.clock.advance(seconds=60)
        at.requests.clear()
        sent: list[float] = []
        at.wire.mail = lambda ticket, delay: sent.append(delay.total_seconds())
        await asyncio.wait_for(at.app.dispatcher.take_runs("00"), 30)
        assert len(at.requests) < 30
        assert all(delay > 0 for delay in sent)
        await at.app.store.table.commit("00", [Write(Verb.MERGE, {"RowKey": "job:g", "v": 1})])
        await clear(at)


@asynccontextmanager
async def one_connection_in_use(at: Bench, url: str) -> Any:
    """Has the only connection to a target used by somebody else."""

    async def silent(reason: str) -> None:
        """Tells nobody."""

    performer = at.app.workshop.performer
    actions = next(a for each in vars(performer).values() if (a := getattr(each, "_actions", None)))
    async with asyncio.timeout(60) as limit:
        async with actions["Http"]._connections.to(URL(url), "other", silent, limit):
            yield


async def taken(at: Bench) -> None:
    """A pass that takes what waits, and nothing else."""
    async with Crew("00", at.app.workshop, at.clock()) as crew:
        await at.app.dispatcher._line.taker.take("00", crew)


def is_waiting(at: Bench, taking: asyncio.Task[None]) -> bool:
    """Whether the run is locked, and has told what it waits for; or the pass is over."""
    return taking.done() or sum("$batch" in line for line in at.requests) == 2


async def test_a_run_that_kills_its_process_while_it_waits_for_a_connection_ends_as_failed(
    storage: str, target: Receiver
) -> None:
    async with bench(storage, PARTITIONS="1", MAX_CONNECTIONS_PER_HOST="1") as at:
        await at.create(id="a", **http_job(target.url, every=360_000, start=NOON))
        await at.fire_only("a")
        for _ in range(7):
            at.clock.advance(minutes=2)
            async with one_connection_in_use(at, target.url):
                at.requests.clear()
                killed = asyncio.create_task(taken(at))
                await until(partial(is_waiting, at, killed))
                await asyncio.sleep(0.1)
                killed.cancel()
                await asyncio.gather(killed, return_exceptions=True)
            if await at.app.store.runs.get("a", 1) is None:
                break
        (run,) = await at.runs("a")
        assert run["status"] == "Failed"
        assert run["reason"] == "taken over 5 times without getting further"
        assert not target.hits


async def test_a_baton_put_back_after_its_pass_has_failed_is_announced(
    storage: str, target: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="2") as at:
        sent: list[float] = []
        go = asyncio.Event()

        async def answer(hit: Hit) -> web.Response:
            await go.wait()
            return web.Response()

        target.answer = answer
        window = http_job(target.url)
        recurrence = {"frequency": "Hour", "interval": 1, "startTime": "2026-09-08T11:00:00Z"}
        concurrency = {"concurrency": {"runs": 1}}
        window["trigger"] = {
            "type": "SlidingWindow",
            "recurrence": recurrence,
            "runtimeConfiguration": concurrency,
        }
        await at.create(id="slow", **window)
        rounds, fails = at.app.dispatcher._rounds, iter([True])

        async def failing(*given: Any) -> None:
            is_first = next(fails, False)
            await rounds(*given)
            if is_first:
                raise StoreFailed("a later page could not be read")

        monkeypatch.setattr(at.app.dispatcher, "_rounds", failing)
        at.wire.mail = lambda ticket, delay: sent.append(delay.total_seconds())
        opened = asyncio.create_task(at.app.dispatcher.carry_out(Ticket("00", at.clock())))
        await until(lambda: 5 in sent)
        at.clock.advance(hours=1)
        await at.dispatch()  # the next window finds the gate full, and is parked
        sent.clear()
        go.set()
        await opened
        assert 0 in sent
        await at.dispatch()
        assert len(target.hits) > 1


async def test_a_shot_that_is_aimed_anew_takes_no_second_slot(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="2") as at:
        await at.create(id="g", **bounded(target.url, 5, 5, every=360_000))
        touched = Write(Verb.MERGE, {"RowKey": "job:g"})

        async def touch() -> None:
            at.wire.hold = None
            await at.app.store.table.commit("00", [touched])

        once_before_a_commit(at, touch)
        await at.dispatch()
        assert len(target.hits) == 1
        assert at.app.workshop.slots.taken == 0


async def test_timers_whose_runs_start_elsewhere_wait_for_no_slot(
    storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="2") as at:
        await at.create(id="foreign", **hosted(360_000))

        async def room(*given: Any) -> int:
            raise AssertionError("it waits in line")

        monkeypatch.setattr(at.app.workshop.slots, "room", room)
        with at.full():
            await at.dispatch()
        assert len(await at.rows("load")) == 1
