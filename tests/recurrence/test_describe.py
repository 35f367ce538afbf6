"""What a schedule says of itself."""

from typing import Any

import pytest

from shared.recurrence import compile_trigger
from tests.recurrence.support import at, compiled

CREATED = "2024-05-01T06:05:07Z"  # a Wednesday
PACIFIC = {"timeZone": "pacific standard time"}
ALL_DAY = list(range(24))


@pytest.mark.parametrize(
    ("recurrence", "text"),
    [
        ({"frequency": "Minute", "interval": 15}, "Every 15 minutes"),
        ({"frequency": "hour", "interval": 1}, "Every hour"),
        ({"frequency": "Day", "interval": 1}, "Every day at 06:05:07, UTC"),
        ({"frequency": "Day", "interval": 3} | PACIFIC, "Every 3 days at 23:05:07, Pacific Standard Time"),
        (
            {
                "frequency": "Week",
                "interval": 2,
                "schedule": {"weekDays": "monday", "hours": [16, 8], "minutes": 30},
            }
            | PACIFIC,
            "Every 2 weeks on Monday at 08:30 and 16:30, Pacific Standard Time",
        ),
        (
            {"frequency": "Week", "interval": 1, "schedule": {"weekDays": ["Sunday", "Friday", "Monday"]}},
            "Every week on Monday, Friday and Sunday at 06:05:07, UTC",
        ),
        ({"frequency": "Week", "interval": 1}, "Every week on Wednesday at 06:05:07, UTC"),
        (
            {"frequency": "Month", "interval": 1, "startTime": "2024-05-31T08:00:00Z"},
            "Every month on day 31 (or the last day of a shorter month) at 08:00, from 2024-05-31 08:00, UTC",
        ),
        (
            {"frequency": "Month", "interval": 1, "startTime": "2024-05-29T08:00:00Z"},
            "Every month on day 29 (or the last day of a shorter month) at 08:00, from 2024-05-29 08:00, UTC",
        ),
        (
            {"frequency": "Month", "interval": 1, "startTime": "2024-05-28T08:00:00Z"},
            "Every month on day 28 at 08:00, from 2024-05-28 08:00, UTC",
        ),
        (
            {
                "frequency": "Month",
                "interval": 2,
                "schedule": {"monthDays": [-1, 15, -2, 1], "hours": 8, "minutes": 0},
            },
            "Every 2 months on day 1, day 15, the 2nd to last day and the last day at 08:00, UTC",
        ),
        (
            {
                "frequency": "Month",
                "interval": 1,
                "schedule": {
                    "monthlyOccurrences": [
                        {"day": "Tuesday", "occurrence": 2},
                        {"day": "Friday", "occurrence": -1},
                        {"day": "Sunday"},
                    ],
                    "hours": [8],
                    "minutes": [0],
                },
            },
            "Every month on the 2nd Tuesday, the last Friday and every Sunday at 08:00, UTC",
        ),
        (
            {"frequency": "Day", "interval": 1, "schedule": {"hours": ALL_DAY, "minutes": [0, 15, 30, 45]}},
            "Every day at :00, :15, :30 and :45 past the hours 0-23, UTC",
        ),
        (
            {"frequency": "Day", "interval": 1, "schedule": {"hours": [8, 9, 10, 11, 13, 15, 16], "minutes": [0]}},
            "Every day at :00 past the hours 8-11, 13 and 15-16, UTC",
        ),
        (
            {
                "frequency": "Hour",
                "interval": 6,
                "startTime": "2024-05-02T08:00",
                "timeZone": "Europe/Paris",
                "endTime": "2024-06-01T00:00:00Z",
                "count": 5,
            },
            "Every 6 hours, from 2024-05-02 08:00, until 2024-06-01 02:00, at most 5 runs, Europe/Paris",
        ),
        (
            {"frequency": "Hour", "interval": 1, "count": 1, "startTime": "2024-05-02T08:00:00Z"} | PACIFIC,
            "Every hour, from 2024-05-02 08:00, at most 1 run, UTC",
        ),
    ],
)
def test_a_recurrence_in_plain_english(recurrence: dict[str, Any], text: str) -> None:
    assert compiled(recurrence, CREATED).describe() == text


@pytest.mark.parametrize(
    ("delay", "text"),
    [
        (None, "A window every 2 days at 06:05:07, UTC"),
        ("PT0S", "A window every 2 days at 06:05:07, UTC"),
        ("PT5M", "A window every 2 days at 06:05:07, each due 5 minutes after its start, UTC"),
        (
            "P1DT1H30S",
            "A window every 2 days at 06:05:07, each due 1 day, 1 hour and 30 seconds after its start, UTC",
        ),
    ],
)
def test_a_sliding_window_in_plain_english(delay: str | None, text: str) -> None:
    recurrence = {"frequency": "Day", "interval": 2}
    assert compiled(recurrence, CREATED, kind="SlidingWindow", inputs={"delay": delay}).describe() == text


def test_once_in_plain_english() -> None:
    assert compile_trigger({"type": "Once"}, at(CREATED)).describe() == "Once at 2024-05-01 06:05:07, UTC"


def test_local_times_are_those_of_the_zone() -> None:
    schedule = compiled({"frequency": "Hour", "interval": 1} | PACIFIC, CREATED)
    assert schedule.local(at(CREATED)).isoformat() == "2024-04-30T23:05:07-07:00"


def test_local_times_are_utc_if_a_start_in_utc_overrides_the_zone() -> None:
    schedule = compiled({"frequency": "Hour", "interval": 1, "startTime": CREATED} | PACIFIC, CREATED)
    assert schedule.local(at(CREATED)).isoformat() == "2024-05-01T06:05:07+00:00"
