"""Whether two triggers mean the same (L4): a redeployment must not start a job's calendar anew."""

from typing import Any

import pytest

from shared.recurrence import compile_trigger
from shared.recurrence.zones import load_zone
from tests.recurrence.support import at

CREATED = "2024-05-01T10:15:30Z"
WEEKLY: dict[str, Any] = {
    "frequency": "Week",
    "interval": 1,
    "startTime": "2024-05-06T08:00:00",
    "timeZone": "Pacific Standard Time",
    "schedule": {"weekDays": ["Monday", "Friday"], "hours": [8, 16], "minutes": [0]},
}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    defaults = {"type": "Recurrence"}
    schedules = [compile_trigger(defaults | trigger, at(CREATED), {"n": 1}) for trigger in (one, other)]
    assert schedules[0].same_as(schedules[0])
    assert schedules[0].same_as(schedules[1]) == schedules[1].same_as(schedules[0])
    return schedules[0].same_as(schedules[1])


@pytest.mark.parametrize(
    "changed",
    [
        {"frequency": "week"},
        {"interval": "1"},
        {"interval": "@parameters('n')"},
        {"startTime": "2024-05-06T08:00"},
        {"startTime": "2024-05-06T07:59:59.5"},
        {"timeZone": "pacific standard time"},
        {"timeZone": "America/Los_Angeles"},
        {"schedule": {"weekDays": ["friday", "MONDAY", "Friday"], "hours": ["16", 8], "minutes": 0}},
        {"endTime": None, "count": None},
    ],
)
def test_the_same_in_other_words(changed: dict[str, Any]) -> None:
    assert same({"recurrence": WEEKLY}, {"recurrence": WEEKLY | changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"interval": 2},
        {"startTime": "2024-05-13T08:00:00"},
        {"startTime": "2024-05-06T08:00:01"},
        {"timeZone": "Mountain Standard Time"},
        {"schedule": {"weekDays": ["Monday"], "hours": [8, 16], "minutes": [0]}},
        {"schedule": {"weekDays": ["Monday", "Friday"], "hours": [8, 16], "minutes": [1]}},
        {"endTime": "2030-01-01T00:00:00Z"},
        {"count": 5},
    ],
)
def test_another_calendar(changed: dict[str, Any]) -> None:
    assert not same({"recurrence": WEEKLY}, {"recurrence": WEEKLY | changed})


HOURLY = {"recurrence": {"frequency": "Hour", "interval": 1}}
WINDOWS = HOURLY | {"type": "SlidingWindow"}


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (HOURLY, {"recurrence": {"frequency": "Minute", "interval": 60}}, True),
        (HOURLY, HOURLY | {"skipInitialRun": False}, True),
        (HOURLY, HOURLY | {"skipInitialRun": True}, False),
        (HOURLY, WINDOWS, False),
        (WINDOWS, WINDOWS | {"inputs": {"delay": "PT0S"}}, True),
        (WINDOWS | {"inputs": {"delay": "PT60M"}}, WINDOWS | {"inputs": {"delay": "PT1H"}}, True),
        (WINDOWS, WINDOWS | {"inputs": {"delay": "PT1H"}}, False),
        ({"type": "Once"}, {"type": "Once", "runAt": "2024-05-01T00:00:00Z"}, True),
        ({"type": "Once"}, {"type": "Once", "runAt": "2024-06-01T00:00:00Z"}, False),
        ({"type": "Once"}, HOURLY, False),
    ],
)
def test_the_trigger_around_the_recurrence(one: dict[str, Any], other: dict[str, Any], equal: bool) -> None:
    assert same(one, other) is equal


@pytest.mark.parametrize(
    "names",
    [
        (None, "UTC", "Etc/UTC", "Zulu", "Etc/Universal"),
        ("Europe/Kiev", "Europe/Kyiv"),
        ("India Standard Time", "Asia/Kolkata", "Asia/Calcutta"),
        ("US Eastern Standard Time", "America/Indianapolis", "America/Indiana/Indianapolis"),
        ("Central Standard Time", "America/Chicago", "US/Central"),
        ("Asia/Rangoon", "Asia/Yangon", "Myanmar Standard Time"),
    ],
)
@pytest.mark.parametrize("start", [{}, {"startTime": "2024-05-06T08:00:00Z"}])
def test_a_zone_by_any_of_its_names_is_the_same_zone(names: tuple[str | None, ...], start: dict[str, str]) -> None:
    rule = {"frequency": "Day", "interval": 1, **start, "schedule": {"hours": [8], "minutes": [0]}}
    recurrences = [{"recurrence": rule | ({"timeZone": name} if name else {})} for name in names]
    for other in recurrences[1:]:
        assert same(recurrences[0], other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Europe/Berlin", "Europe/Paris"),
        ("Africa/Cairo", "Etc/GMT-2"),
        ("America/Phoenix", "America/Denver"),
        (None, "Africa/Abidjan"),
    ],
)
def test_zones_that_ever_differ_are_different(one: str | None, other: str) -> None:
    rule = {"frequency": "Day", "interval": 1}
    assert not same(
        {"recurrence": rule | ({"timeZone": one} if one else {})}, {"recurrence": rule | {"timeZone": other}}
    )


def test_a_zone_that_was_read_anew_is_the_same_zone() -> None:
    trigger = {"type": "Recurrence", "recurrence": WEEKLY}
    before = compile_trigger(trigger, at(CREATED))
    load_zone.cache_clear()
    assert compile_trigger(trigger, at(CREATED)).same_as(before)
