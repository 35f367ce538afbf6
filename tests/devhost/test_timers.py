"""Timer triggers: the schedule as a pure function, and ticks."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import azure.functions as func
import pytest

from devhost.errors import DevhostError
from devhost.functions import TimerFunction
from devhost.timers import TimerListener, next_tick
from tests.devhost.support import eventually

START = datetime(2026, 1, 1, 0, 0, 7, tzinfo=UTC)  # a Thursday


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("*/15 * * * * *", "2026-01-01T00:00:15"),
        ("7 * * * * *", "2026-01-01T00:01:07"),
        ("*/5 * * * *", "2026-01-01T00:05:00"),
        ("0 30 9 * * 1-5", "2026-01-01T09:30:00"),
        ("0 30 9 * * SAT,SUN", "2026-01-03T09:30:00"),
        ("0 0 0 29 2 *", "2028-02-29T00:00:00"),
        # Where cron takes either, NCRONTAB wants both: the first Friday the 13th.
        ("0 0 0 13 * 5", "2026-02-13T00:00:00"),
    ],
)
def test_the_next_tick_is_the_first_after_an_instant(schedule: str, expected: str) -> None:
    assert next_tick(schedule, START) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_the_next_tick_is_on_a_whole_second_after_a_fraction_of_one() -> None:
    assert next_tick("* * * * * *", START + timedelta(microseconds=1)) == START + timedelta(seconds=1)


@pytest.mark.parametrize(
    "schedule", ["", "* * * *", "* * * * * * *", "61 * * * * *", "x * * * * *", "0 0 0 30 2 *"]
)
def test_a_wrong_schedule_is_an_error_that_names_the_function(schedule: str) -> None:
    with pytest.raises(DevhostError, match="function tick has a wrong schedule"):
        TimerListener(TimerFunction("tick", lambda timer: None, "timer", schedule))


async def test_it_ticks_once_in_each_second_it_should(stop: asyncio.Event) -> None:
    ticks: list[datetime] = []

    async def tick(timer: func.TimerRequest) -> None:
        assert not timer.past_due
        ticks.append(datetime.now(UTC))

    listening = asyncio.create_task(TimerListener(TimerFunction("tick", tick, "timer", "* * * * * *")).run(stop))
    await eventually(lambda: len(ticks) == 3)
    stop.set()
    await listening
    seconds = [each.replace(microsecond=0) for each in ticks]
    assert all(earlier < later for earlier, later in pairwise(seconds))


async def test_a_tick_never_overlaps_with_itself_and_a_failure_does_not_end_it(stop: asyncio.Event) -> None:
    under_way, most = 0, 0
    ticks: list[datetime] = []

    async def tick(timer: func.TimerRequest) -> None:
        nonlocal under_way, most
        ticks.append(datetime.now(UTC).replace(microsecond=0))
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(1.2)
        under_way -= 1
        raise RuntimeError("on purpose")

    listening = asyncio.create_task(TimerListener(TimerFunction("tick", tick, "timer", "* * * * * *")).run(stop))
    await eventually(lambda: len(ticks) == 2)
    stop.set()
    await listening
    assert (most, under_way) == (1, 0)
    assert ticks[1] - ticks[0] >= timedelta(seconds=2)  # what was due during the first is left out


async def test_run_on_startup_runs_at_once_and_only_if_wanted(stop: asyncio.Event) -> None:
    calls: list[str] = []

    async def tick(timer: func.TimerRequest) -> None:
        calls.append("ticked")

    yearly = "0 0 0 1 1 *"
    at_start = TimerListener(TimerFunction("tick", tick, "timer", yearly, run_on_startup=True))
    listening = asyncio.create_task(at_start.run(stop))
    await eventually(lambda: calls)
    stop.set()
    await listening
    await TimerListener(TimerFunction("tick", tick, "timer", yearly)).run(stop)
    assert calls == ["ticked"]
