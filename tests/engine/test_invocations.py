"""Invocations: one stays open while runs are under way, the newest; and what a pass's failures come to."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from shared.engine.invocations import LAST, TERM, Firing, Invocations
from shared.storage.table import StoreFailed
from tests.harness import until
from tests.test_config import load


@dataclass
class Pass:
    """A pass that fires, or fails to, and then awaits its runs until they are let go."""

    error: Exception | None = None
    firing: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self, firing: Firing) -> None:
        await self.firing.wait()
        firing.end(self.error)
        await self.go.wait()
        if self.error:
            raise self.error


@dataclass
class Process:
    """Invocations, and the tickets that they sent."""

    invocations: Invocations
    calls: list[str] = field(default_factory=list)
    opened: list[asyncio.Task[None]] = field(default_factory=list)
    on_call: Callable[[], None] = lambda: None

    def open(self, each: Pass) -> asyncio.Task[None]:
        self.opened.append(asyncio.create_task(self.invocations.carry(each.work, self._again, self._call)))
        return self.opened[-1]

    async def _again(self, error: Exception) -> None:
        self.calls.append(f"again: {error}")

    async def _call(self) -> None:
        self.calls.append("call")
        self.on_call()

    @property
    def open_now(self) -> int:
        return sum(not each.done() for each in self.opened)


@pytest.fixture
async def of() -> AsyncIterator[Process]:
    process = Process(Invocations())
    yield process
    await process.invocations.close()


async def turns(number: int = 20) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_of_ten_invocations_with_runs_under_way_nine_have_returned(of: Process) -> None:
    passes = [Pass() for _ in range(10)]
    for each in passes:
        of.open(each)
        each.firing.set()
        await turns()
        assert of.open_now == 1
    assert not of.opened[-1].done()
    for each in passes[:9]:
        each.go.set()
    await turns()
    assert of.open_now == 1
    passes[9].go.set()
    await asyncio.gather(*of.opened)


async def test_an_invocation_returns_only_after_the_next_one_has_taken_its_place(of: Process) -> None:
    slow, next_one = Pass(), Pass()
    first = of.open(slow)
    slow.firing.set()
    await turns()
    second = of.open(next_one)
    await turns()
    assert not first.done()  # the second has not fired yet
    next_one.go.set()
    next_one.firing.set()
    await turns()
    assert first.done()
    assert not second.done()  # its own runs have ended; it stays open for those of the first
    slow.go.set()
    await second


async def test_an_invocation_that_has_no_runs_ends_with_its_pass(of: Process) -> None:
    each = Pass()
    each.firing.set()
    each.go.set()
    await of.open(each)


async def test_a_pass_that_fails_before_it_has_fired_fails_its_invocation(of: Process) -> None:
    async def work(firing: Firing) -> None:
        raise StoreFailed("storage stumbles")

    with pytest.raises(StoreFailed, match="stumbles"):
        await of.invocations.carry(work, of._again, of._call)
    assert not of.calls


async def test_a_pass_that_fails_while_runs_are_under_way_keeps_its_invocation_and_sends_its_ticket_again(
    of: Process,
) -> None:
    each = Pass(error=StoreFailed("storage stumbles"))
    each.firing.set()
    opened = of.open(each)
    await turns()
    assert (of.calls, opened.done()) == (["again: storage stumbles"], False)
    each.go.set()
    await opened


async def test_an_invocation_that_gets_old_calls_for_another_again_and_again(of: Process) -> None:
    of.invocations = Invocations(term=0.01, retry=0.01)
    each = Pass()
    each.firing.set()
    opened = of.open(each)
    await until(lambda: len(of.calls) >= 3)
    assert not opened.done()
    successor = Pass()
    successor.firing.set()
    successor.go.set()
    of.open(successor)
    await until(opened.done)
    each.go.set()
    await asyncio.gather(*of.opened)


async def test_one_that_is_not_relieved_returns_before_it_would_end_the_process_and_says_so(
    of: Process, caplog: pytest.LogCaptureFixture
) -> None:
    of.invocations = Invocations(term=600, last=0.01)
    each = Pass()
    each.firing.set()
    with caplog.at_level(logging.WARNING):
        await of.open(each)
    assert "without an invocation" in caplog.text
    each.go.set()


def test_the_longest_an_invocation_lasts_is_less_than_the_platform_allows() -> None:
    hours, minutes, seconds = map(int, load("host.json")["functionTimeout"].split(":"))
    assert TERM < 300 < LAST < hours * 3600 + minutes * 60 + seconds


async def test_closing_cancels_what_is_under_way(of: Process) -> None:
    each = Pass()
    each.firing.set()
    opened = of.open(each)
    await turns()
    await of.invocations.close()
    await opened
