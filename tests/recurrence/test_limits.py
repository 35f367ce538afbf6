"""Far past, far future, rare days: answers stay right, and the work stays small."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from shared.recurrence import days
from shared.recurrence.days import MonthDays, Monthly
from tests.recurrence.oracle import Oracle
from tests.recurrence.support import at, compiled, first, occurrences

CREATED = "2024-05-01T00:00:00Z"
END_OF_TIME = datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize("zone", ["UTC", "America/Chicago", "Asia/Tokyo"])
@pytest.mark.parametrize("frequency", ["Second", "Minute", "Hour", "Day", "Week", "Month"])
@pytest.mark.parametrize("kind", ["Recurrence", "SlidingWindow"])
def test_at_the_end_of_the_calendar_there_is_nothing_more(kind: str, frequency: str, zone: str) -> None:
    recurrence = {"frequency": frequency, "interval": 1, "startTime": "2024-06-30T12:00:00", "timeZone": zone}
    schedule = compiled(recurrence, CREATED, kind=kind)
    assert schedule.after(END_OF_TIME) is None
    assert schedule.at_or_after(END_OF_TIME - timedelta(microseconds=1)) is None
    last = schedule.last_until(END_OF_TIME)
    assert last is not None
    assert END_OF_TIME - last < timedelta(days=32)
    assert schedule.after(last) is None
    assert schedule.window(last) is None
    assert schedule.due(last) == last


def test_rare_days_run_out_at_the_end_of_the_calendar() -> None:
    recurrence = {
        "frequency": "Month",
        "interval": 12,
        "startTime": "2024-02-29T00:00:00Z",
        "schedule": {"monthDays": 29},
    }
    assert compiled(recurrence, CREATED).after(at("9996-02-29T00:00:00Z")) is None


def test_a_delay_cannot_push_a_window_beyond_the_calendar() -> None:
    schedule = compiled(
        {"frequency": "Hour", "interval": 1}, CREATED, kind="SlidingWindow", inputs={"delay": "P999999999D"}
    )
    assert schedule.due(at(CREATED)) == at("9999-12-31T23:59:59Z")


@pytest.mark.parametrize(
    ("interval", "start", "rule", "expected"),
    [
        (12, "2096-02-29T00:00:00Z", {"monthDays": [29]}, ["2096-02-29", "2104-02-29", "2108-02-29"]),
        (12, "2000-02-29T00:00:00Z", {"monthDays": [-29]}, ["2028-02-01", "2032-02-01", "2036-02-01"]),
        (
            12,
            "2064-02-01T00:00:00Z",
            {"monthlyOccurrences": [{"day": "Friday", "occurrence": 5}]},
            ["2064-02-29", "2092-02-29", "2104-02-29"],
        ),
        (12, "2096-02-29T00:00:00Z", {}, ["2096-02-29", "2097-02-28", "2098-02-28"]),
    ],
)
def test_leap_days_across_the_year_2100(
    interval: int, start: str, rule: dict[str, Any], expected: list[str]
) -> None:
    recurrence = {"frequency": "Month", "interval": interval, "startTime": start, "schedule": rule}
    created = max(start, "2024-05-01T00:00:00Z") if start > "2073" else CREATED
    assert [text[:10] for text in first(compiled(recurrence, created), 3)] == expected


@pytest.mark.parametrize("year", [2099, 2100, 2101, 2150, 2400, 9998])
@pytest.mark.parametrize("zone", ["America/Chicago", "Australia/Lord_Howe", "Europe/Dublin"])
def test_daylight_saving_goes_on_beyond_the_prepared_years(zone: str, year: int) -> None:
    recurrence = {"frequency": "Day", "interval": 1, "startTime": "2024-06-30T02:30:00", "timeZone": zone}
    schedule = compiled(recurrence, CREATED)
    oracle = Oracle(recurrence, at(CREATED))
    first_day, last_day = datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, tzinfo=UTC)
    expected = oracle.between(first_day, last_day)
    found = list(zip(range(len(expected)), occurrences(schedule, first_day), strict=False))
    assert [instant for _, instant in found] == expected
    assert schedule.last_until(last_day) == expected[-1]
    assert schedule.count_between(first_day, last_day) == len(expected)
    assert all(schedule.count_between(instant, instant) == 1 for instant in expected[::30])


@pytest.mark.parametrize("month", ["01", "07"])
def test_a_far_end_is_read_with_the_offset_of_its_own_season(month: str) -> None:
    recurrence = {"frequency": "Day", "interval": 1, "timeZone": "Central Standard Time"}
    schedule = compiled(recurrence | {"endTime": f"2150-{month}-01T00:00:00"}, CREATED)
    offset = {"01": "06", "07": "05"}[month]
    assert f"until 2150-{month}-01 00:00" in schedule.describe()
    hourly = compiled(
        {
            "frequency": "Hour",
            "interval": 1,
            "endTime": f"2150-{month}-01T00:00:00",
            "timeZone": "Central Standard Time",
        },
        CREATED,
    )
    assert hourly.last_until(END_OF_TIME) == at(f"2150-{month}-01T{offset}:00:00Z")


@pytest.mark.parametrize("frequency", ["Second", "Minute", "Hour", "Day", "Week", "Month"])
def test_counting_decades_agrees_with_counting_their_parts(frequency: str) -> None:
    schedule = compiled(
        {"frequency": frequency, "interval": 3, "startTime": "1970-01-31T02:30:00", "timeZone": "America/Chicago"},
        CREATED,
        kind="SlidingWindow",
    )
    years = [datetime(year, 1, 1, tzinfo=UTC) for year in range(1970, 2031)]
    second = timedelta(seconds=1)
    parts = [schedule.count_between(first, last - second) for first, last in pairwise(years)]
    assert sum(parts) == schedule.count_between(years[0], years[-1] - second)


class Counted:
    """Counts how many months are looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.months = 0
        real = days.days_in

        def counting(rule: MonthDays, first_weekday: int, length: int) -> tuple[int, ...]:
            self.months += 1
            return real(rule, first_weekday, length)

        monkeypatch.setattr(days, "days_in", counting)


@pytest.mark.parametrize("day", [0, 20_000, 2_000_000, 2_932_000])
def test_looking_for_days_that_never_come_ends_within_a_century(day: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    never = Monthly(1970 * 12 + 1, 12, MonthDays(numbers=(30,)))
    assert never.from_day(day) > 10**9
    assert never.to_day(day) < -(10**9)
    assert counted.months <= 202


def test_an_ordinary_month_is_found_at_once_however_far_the_anchor(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    monthly = Monthly(1970 * 12, 1, MonthDays(numbers=(15,)))
    assert monthly.from_day(2_900_000) - 2_900_000 < 31
    assert counted.months <= 2
