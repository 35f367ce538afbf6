"""A fault of storage while runs are under way is never silent: logged and counted, and nothing is lost by it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest
from aiohttp import web

from shared.engine.crew import Crew
from shared.engine.taking import Taken
from shared.storage.tickets import Ticket
from tests.engine.conftest import Collected
from tests.harness import NOON, Bench, Hit, Receiver, bench, http_job, until
from tests.reliability.post import Post, recover
from tests.wire import Fate

HIDDEN = timedelta(seconds=5)
Fails = Callable[[str], bool]


class Stage:
    """A bench of one partition, what it sends, a target that answers when `go` is set, and what fails."""

    def __init__(self, at: Bench, target: Receiver) -> None:
        self.at = at
        self.post = Post(at.clock)
        self.sent: list[tuple[Ticket, timedelta]] = []
        self.go = asyncio.Event()
        self.target = target
        target.answer = self._answer
        at.wire.mail = self._mail

    async def _answer(self, hit: Hit) -> web.Response:
        if hit.job.startswith("slow"):
            await self.go.wait()
        return web.Response()

    def _mail(self, ticket: Ticket, delay: timedelta) -> None:
        self.sent.append((ticket, delay))
        self.post.collect(ticket, delay)

    def fails(self, which: Fails) -> None:
        """From now on what is so requested is not carried out."""
        self.at.wire.fate = lambda line: Fate.UNSENT if which(line) else Fate.DONE

    def carry_out(self, ticket: Ticket) -> asyncio.Task[None]:
        return asyncio.create_task(self.at.app.dispatcher.carry_out(ticket))

    async def calls(self, number: int) -> None:
        """Waits for so many calls."""
        await until(lambda: len(self.target.hits) >= number)

    async def recovers(self, *jobs: str) -> None:
        """Storage is well again: what was left is called, each once by its key; and every slot is given back."""
        self.at.wire.fate = lambda line: Fate.DONE
        self.go.set()
        await recover(self.at, self.post)
        await until(lambda: not self.at.app.dispatcher._line.invocations._passes)
        assert self.at.app.workshop.slots.taken == 0
        assert {hit.job for hit in self.target.hits} == set(jobs)
        assert not await self.at.rows("run")
        for job_id in jobs:
            assert {run["status"] for run in await self.at.runs(job_id)} == {"Succeeded"}


@pytest.fixture
async def stage(storage: str, target: Receiver) -> AsyncIterator[Stage]:
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="2") as at:
        yield Stage(at, target)


def reading(line: str) -> bool:
    return line.startswith("GET") and "/messages" not in line


def reading_and_sending(line: str) -> bool:
    return line.startswith("GET") or "/messages" in line


def committing(line: str) -> bool:
    return "$batch" in line


def after_commit(then: Fails) -> Fails:
    """What is requested after the next transaction."""
    committed: list[str] = []

    def fails(line: str) -> bool:
        if committing(line):
            committed.append(line)
            return False
        return bool(committed) and then(line)

    return fails


FAULTS = pytest.mark.parametrize(
    "fails", [reading, reading_and_sending], ids=["its ticket is sent", "nor is a ticket sent"]
)


def collected_faults(collected: Collected) -> int:
    return int(collected().get("faults", 0))


async def overdue(stage: Stage, *jobs: str) -> None:
    for job_id in jobs:
        await stage.at.create(id=job_id, **http_job(stage.target.url, every=3600, start=NOON))
    stage.sent.clear()


@FAULTS
async def test_when_the_rest_of_a_page_is_fired_while_runs_are_under_way(
    stage: Stage, fails: Fails, collected: Collected, caplog: pytest.LogCaptureFixture
) -> None:
    await overdue(stage, "slow-1", "slow-2", "slow-3")  # two of them get a slot
    stage.fails(after_commit(fails))
    opened = stage.carry_out(Ticket("00", NOON))
    await until(lambda: collected_faults(collected))
    assert "a pass failed while its runs were under way" in caplog.text
    if fails is reading:
        await until(lambda: (Ticket("00", NOON), HIDDEN) in stage.sent)
    else:
        await until(lambda: "is left to detection" in caplog.text)
    assert not opened.done()  # it is open for the run
    await stage.recovers("slow-1", "slow-2", "slow-3")
    await asyncio.gather(opened, return_exceptions=True)


@FAULTS
async def test_when_a_ticket_that_came_early_is_carried_out(
    stage: Stage, fails: Fails, collected: Collected, caplog: pytest.LogCaptureFixture
) -> None:
    await overdue(stage, "slow")
    due = NOON + timedelta(seconds=1)
    stage.fails(fails)
    opened = stage.carry_out(Ticket("00", due))
    await until(lambda: stage.at.app.dispatcher._line.invocations._newest)  # it holds no invocation any more
    stage.at.clock.now = due
    await opened
    assert "a pass failed after it had given its ticket back" in caplog.text
    assert collected()["faults"] == 1
    assert stage.sent == ([(Ticket("00", due), HIDDEN)] if fails is reading else [])
    await stage.recovers("slow")


@FAULTS
async def test_when_what_an_end_puts_back_is_fired(
    stage: Stage, fails: Fails, collected: Collected, caplog: pytest.LogCaptureFixture
) -> None:
    at = stage.at
    window = http_job(stage.target.url)
    window["trigger"] = {
        "type": "SlidingWindow",
        "recurrence": {"frequency": "Hour", "interval": 1, "startTime": "2026-09-08T11:00:00Z"},
        "runtimeConfiguration": {"concurrency": {"runs": 1}},
    }
    await at.create(id="slow", **window)
    opened = stage.carry_out(Ticket("00", at.clock()))
    await stage.calls(1)
    await at.dispatch()  # the next window finds the gate full, and is parked
    stage.sent.clear()
    stage.fails(after_commit(fails))
    stage.go.set()
    await opened
    assert "a pass failed after it had given its ticket back" in caplog.text
    assert collected()["faults"] == 1
    assert [delay for _, delay in stage.sent] == ([HIDDEN] if fails is reading else [])
    await stage.recovers("slow")
    assert len({hit.key for hit in stage.target.hits}) == len(stage.target.hits) == 2


@FAULTS
async def test_when_who_waits_for_slots_takes_runs(
    stage: Stage, fails: Fails, collected: Collected, caplog: pytest.LogCaptureFixture
) -> None:
    at = stage.at
    await overdue(stage, "slow-1", "slow-2", "waits")
    if fails is reading_and_sending:
        stage.fails(lambda line: "/messages" in line)
    with at.full():
        await at.dispatch()
        lingers = stage.carry_out(Ticket("00"))
        await until(lambda: at.app.dispatcher._called)
        stage.fails(fails)
    await lingers
    assert "waiting runs could not be taken" in caplog.text
    assert collected()["faults"] == 1
    hidden = [ticket for ticket, delay in stage.sent if delay == HIDDEN]
    assert hidden == ([Ticket("00")] if fails is reading else [])
    await stage.recovers("slow-1", "slow-2", "waits")


async def test_when_who_waits_for_slots_calls_for_the_rest(
    stage: Stage, collected: Collected, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = stage.at
    outcomes = iter([Taken(frozenset({"a"}), more=False, some=False), Taken(frozenset(), more=True, some=True)])

    async def take(partition: str, crew: Crew) -> Taken:
        return next(outcomes)

    monkeypatch.setattr(at.app.dispatcher._line.taker, "take", take)
    stage.fails(lambda line: "/messages" in line)
    await at.app.dispatcher.take_runs("00")
    assert "waiting runs could not be taken" in caplog.text
    assert collected()["faults"] == 1
    assert not at.app.dispatcher._lingering


async def test_when_runs_are_completed_until_their_locks_have_run_out(
    stage: Stage, collected: Collected, caplog: pytest.LogCaptureFixture
) -> None:
    at = stage.at
    await overdue(stage, "slow")
    opened = stage.carry_out(Ticket("00", NOON))
    await stage.calls(1)
    stage.fails(committing)
    stage.go.set()
    await until(lambda: "completion waits for storage" in caplog.text)
    at.clock.advance(minutes=1)
    await opened
    assert "left to its lease" in caplog.text
    assert collected()["faults"] == 1
    assert at.app.workshop.slots.taken == 0
    await stage.recovers("slow")


async def test_when_a_run_that_waited_too_long_is_recorded(
    storage: str, target: Receiver, collected: Collected, caplog: pytest.LogCaptureFixture
) -> None:
    async with bench(storage, PARTITIONS="1", DEFAULT_MAX_LATENESS="PT30S") as at:
        stage = Stage(at, target)
        await overdue(stage, "a")
        with at.full():
            await at.dispatch()
        at.clock.advance(seconds=31)
        stage.fails(committing)
        await stage.carry_out(Ticket("00"))
        assert "left to its lease" in caplog.text
        assert collected()["faults"] == 1
        at.wire.fate = lambda line: Fate.DONE
        await recover(at, stage.post)
        assert [run["status"] for run in await at.runs("a")] == ["Missed"]
        assert not target.hits
