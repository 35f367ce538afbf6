"""The Wait action: X2 to X4."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.engine.actions.inputs import BadInput
from shared.engine.actions.outcome import Later, Outcome
from shared.engine.actions.wait import WaitAction, wait_until
from shared.jobs.model import Status
from tests.engine.actions.support import NOW, an_attempt, ended, goes_on


def interval(count: Any, unit: Any) -> dict[str, Any]:
    return {"interval": {"count": count, "unit": unit}}


def until(timestamp: Any) -> dict[str, Any]:
    return {"until": {"timestamp": timestamp}}


async def waiting(inputs: Any, **changed: Any) -> Outcome | Later:
    return await WaitAction().attempt(an_attempt(inputs, **changed))


@pytest.mark.parametrize(
    ("inputs", "at"),
    [
        (interval(5, "Second"), NOW + timedelta(seconds=5)),
        (interval(5, "Minute"), NOW + timedelta(minutes=5)),
        (interval(5, "Hour"), NOW + timedelta(hours=5)),
        (interval(5, "Day"), NOW + timedelta(days=5)),
        (interval(5, "Week"), NOW + timedelta(weeks=5)),
        (interval(2, "Month"), datetime(2026, 11, 8, 12, tzinfo=UTC)),
        (interval(2, "month"), datetime(2026, 11, 8, 12, tzinfo=UTC)),
        (interval(90, "Day"), NOW + timedelta(days=90)),
        (until("2026-09-08T12:34:56Z"), datetime(2026, 9, 8, 12, 34, 56, tzinfo=UTC)),
        (until("2026-09-08T12:34Z"), datetime(2026, 9, 8, 12, 34, tzinfo=UTC)),
        (until("2026-09-08T12:34:56.001Z"), datetime(2026, 9, 8, 12, 34, 57, tzinfo=UTC)),
        (until("2026-12-07T12:00:00Z"), NOW + timedelta(days=90)),
    ],
)
async def test_the_first_attempt_says_when_the_wait_is_over(inputs: Any, at: datetime) -> None:
    later = goes_on(await waiting(inputs))
    assert later.at == at
    assert not later.attempted
    assert later.reason.startswith("waits until 2026-")


@pytest.mark.parametrize(
    ("now", "count", "at"),
    [
        (datetime(2027, 1, 31, 8, 30, tzinfo=UTC), 1, datetime(2027, 2, 28, 8, 30, tzinfo=UTC)),
        (datetime(2028, 1, 31, 8, 30, tzinfo=UTC), 1, datetime(2028, 2, 29, 8, 30, tzinfo=UTC)),
        (datetime(2026, 12, 31, tzinfo=UTC), 2, datetime(2027, 2, 28, tzinfo=UTC)),
    ],
)
def test_months_are_calendar_months_clamped_to_the_last_day(now: datetime, count: int, at: datetime) -> None:
    assert wait_until(interval(count, "Month"), now) == at


@pytest.mark.parametrize(
    "inputs",
    [interval(0, "Hour"), interval(0, "Month"), until("2026-09-08T12:00:00Z"), until("2020-01-01T00:00:00Z")],
)
async def test_no_time_or_a_past_moment_goes_on_at_once(inputs: Any) -> None:
    ended(await waiting(inputs), Status.SUCCEEDED)


async def test_the_attempt_after_the_moment_succeeds_however_late() -> None:
    inputs = interval(1, "Hour")
    later = goes_on(await waiting(inputs))
    for now in (later.at, later.at + timedelta(days=400)):
        ended(await waiting(inputs, memo=later.memo, now=now), Status.SUCCEEDED)


async def test_an_attempt_before_the_moment_waits_for_the_same_moment() -> None:
    inputs = interval(1, "Hour")
    later = goes_on(await waiting(inputs))
    again = goes_on(await waiting(inputs, memo=later.memo, now=later.at - timedelta(milliseconds=1)))
    assert (again.at, again.memo) == (later.at, later.memo)


@pytest.mark.parametrize(
    ("inputs", "field"),
    [
        (interval(7_776_001, "Second"), "interval"),
        (interval(91, "Day"), "interval"),
        (interval(13, "Week"), "interval"),
        (interval(3, "Month"), "interval"),
        (interval(10**30, "Second"), "interval"),
        (interval(10**9, "Week"), "interval"),
        (interval(10**9, "Month"), "interval"),
        (interval(10**400, "Month"), "interval"),
        (until("2026-12-07T12:00:01Z"), "until.timestamp"),
        (until("9999-12-31T23:59:59.5Z"), "until.timestamp"),
    ],
)
async def test_a_wait_of_over_90_days_fails(inputs: Any, field: str) -> None:
    outcome = ended(await waiting(inputs), Status.FAILED)
    assert outcome.reason == f"{field} would wait for more than 90 days"


@pytest.mark.parametrize(
    ("inputs", "field"),
    [
        ({}, "interval"),
        (interval(1, "Day") | until("2026-09-08T12:34:56Z"), "until"),
        ({"interval": 5}, "interval"),
        (interval(-1, "Day"), "interval.count"),
        (interval(1.5, "Day"), "interval.count"),
        (interval("5", "Day"), "interval.count"),
        (interval(True, "Day"), "interval.count"),
        (interval(None, "Day"), "interval.count"),
        (interval(1, "Year"), "interval.unit"),
        (interval(1, "Days"), "interval.unit"),
        (interval(1, None), "interval.unit"),
        (interval(1, ["Day"]), "interval.unit"),
        ({"until": "2026-09-08T12:34:56Z"}, "until"),
        (until(None), "until.timestamp"),
        (until(1_757_000_000), "until.timestamp"),
        (until("tomorrow"), "until.timestamp"),
        (until("2026-09-08"), "until.timestamp"),
        (until("2026-02-30T12:00:00Z"), "until.timestamp"),
        (until("2026-09-08T12:34:56"), "until.timestamp"),
        (until("2026-09-08T12:34:56+02:00"), "until.timestamp"),
    ],
)
async def test_what_is_no_wait_is_told_with_its_field(inputs: Any, field: str) -> None:
    with pytest.raises(BadInput) as told:
        wait_until(inputs, NOW)
    assert told.value.fault.field == field
    outcome = ended(await waiting(inputs), Status.FAILED)
    assert outcome.reason == str(told.value)
    assert outcome.reason.startswith(f"{field} ")
