"""What is refused in a recurrence, naming which property (V1 to V12), beyond the case file."""

from typing import Any

import pytest

from tests.recurrence.support import FAULTS_CREATED as CREATED
from tests.recurrence.support import FAULTS_START as START
from tests.recurrence.support import at, compiled, faults, fields, recurrence_fields, schedule_fields

LONGEST = {"Second": 9_999_999, "Minute": 72_000, "Hour": 12_000, "Day": 500, "Week": 71, "Month": 16}


# V1


@pytest.mark.parametrize("name", ["Interval", "starttime", "weekDays", "timezone", "jitter"])
def test_v1_a_property_that_does_not_exist(name: str) -> None:
    assert recurrence_fields(**{name: 1}) == [name]


def test_v1_a_property_of_the_schedule_that_does_not_exist() -> None:
    assert schedule_fields(Hours=[1]) == ["schedule.Hours"]


@pytest.mark.parametrize("wrong", [[], "daily", 5, True])
def test_v1_a_recurrence_that_is_no_object(wrong: object) -> None:
    assert fields({"recurrence": wrong}) == ["recurrence"]


@pytest.mark.parametrize("trigger", [{}, {"recurrence": None}])
def test_v1_a_recurrence_that_is_missing(trigger: dict[str, Any]) -> None:
    assert faults(trigger) == [("recurrence", "is required")]


@pytest.mark.parametrize("wrong", [[], "8:00", 5])
def test_v1_a_schedule_that_is_no_object(wrong: object) -> None:
    assert recurrence_fields(schedule=wrong) == ["schedule"]


def test_v1_null_is_absent() -> None:
    nothing = dict.fromkeys(["startTime", "timeZone", "schedule", "endTime", "count"])
    assert compiled({"frequency": "Day", "interval": 1} | nothing, CREATED).count is None


def test_v1_a_schedule_of_nulls_is_no_schedule() -> None:
    nulls = dict.fromkeys(["hours", "minutes", "weekDays", "monthDays", "monthlyOccurrences"])
    for kind in ("Recurrence", "SlidingWindow"):
        recurrence = {"frequency": "Hour", "interval": 1, "startTime": START, "schedule": nulls}
        assert compiled(recurrence, CREATED, kind=kind).at_or_after(at(CREATED)) == at(START)


# V2, V3, V4


@pytest.mark.parametrize("wrong", [None, "", "Year", "Daily", "Days", " Day", 1, ["Day"], True])
def test_v2_a_frequency_that_is_none(wrong: object) -> None:
    assert recurrence_fields(frequency=wrong) == ["frequency"]


@pytest.mark.parametrize("kind", ["Recurrence", "SlidingWindow"])
@pytest.mark.parametrize("frequency", LONGEST)
def test_v3_intervals_from_one_to_the_longest(frequency: str, kind: str) -> None:
    for right in (1, LONGEST[frequency], str(LONGEST[frequency])):
        compiled({"frequency": frequency, "interval": right}, CREATED, kind=kind)
    for wrong in (0, -1, LONGEST[frequency] + 1, str(LONGEST[frequency] + 1)):
        trigger = {"type": kind, "recurrence": {"frequency": frequency, "interval": wrong}}
        assert fields(trigger) == ["recurrence.interval"]


def test_v3_the_longest_interval_is_told() -> None:
    reason = faults({"recurrence": {"frequency": "Week", "interval": 72}})[0][1]
    assert reason == "must be 1 to 71 with frequency Week"


@pytest.mark.parametrize(
    "wrong", [None, "", "1.0", "+1", "1_000", "0x1", "one", "\uff11", "1\n", 1.0, 1.5, True, [1], {}]
)
def test_v4_what_is_no_integer(wrong: object) -> None:
    assert recurrence_fields(interval=wrong) == ["interval"]
    if wrong is not None:
        assert recurrence_fields(count=wrong) == ["count"]
        assert schedule_fields(minutes=[wrong]) == ["schedule.minutes"]


def test_v4_an_absurdly_long_number_is_refused_like_any_other() -> None:
    assert recurrence_fields(interval="9" * 10_000) == ["interval"]
    assert recurrence_fields(interval=10**5000) == ["interval"]


# V5 to V8


@pytest.mark.parametrize("frequency", ["Second", "Minute", "Hour"])
@pytest.mark.parametrize("name", ["hours", "minutes"])
def test_v5_times_of_day_need_day_week_or_month(frequency: str, name: str) -> None:
    assert schedule_fields(frequency, **{name: [8]}) == [f"schedule.{name}"]


@pytest.mark.parametrize(("name", "wrong"), [("hours", 24), ("hours", -1), ("minutes", 60), ("minutes", -1)])
def test_v5_times_of_day_out_of_range(name: str, wrong: int) -> None:
    for form in (wrong, [wrong], [0, wrong], str(wrong)):
        assert schedule_fields(**{name: form}) == [f"schedule.{name}"]


def test_v5_the_reason_is_what_is_wrong_first() -> None:
    recurrence = {"frequency": "Day", "interval": 1, "schedule": {"hours": [24, "x"]}}
    assert faults({"recurrence": recurrence}) == [
        ("recurrence.schedule.hours", "must be less than or equal to 23"),
    ]


@pytest.mark.parametrize("frequency", ["Second", "Minute", "Hour", "Day", "Month"])
def test_v6_week_days_need_week(frequency: str) -> None:
    assert schedule_fields(frequency, weekDays=["Monday"]) == ["schedule.weekDays"]


@pytest.mark.parametrize("wrong", ["Mon", "", "Montag", " Monday", 1, None, ["Monday"]])
def test_v6_week_days_that_are_none(wrong: object) -> None:
    assert schedule_fields("Week", weekDays=["Tuesday", wrong]) == ["schedule.weekDays"]


@pytest.mark.parametrize("frequency", ["Second", "Minute", "Hour", "Day", "Week"])
@pytest.mark.parametrize(("name", "value"), [("monthDays", [1]), ("monthlyOccurrences", [{"day": "Friday"}])])
def test_v7_v8_days_of_the_month_need_month(frequency: str, name: str, value: list[Any]) -> None:
    assert schedule_fields(frequency, **{name: value}) == [f"schedule.{name}"]


@pytest.mark.parametrize("wrong", [0, "0", "-0", 32, -32, "first", 1.0, None])
def test_v7_month_days_that_are_none(wrong: object) -> None:
    assert schedule_fields("Month", monthDays=[15, wrong]) == ["schedule.monthDays"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"day": "Friday", "occurrence": 0},
        {"day": "Friday", "occurrence": 6},
        {"day": "Friday", "occurrence": -6},
        {"day": "Friday", "occurrence": 1.0},
        {"day": "Friday", "occurrence": True},
        {"day": "Fri"},
        {"day": None},
        {"occurrence": 1},
        {"day": "Friday", "Occurrence": 1},
        {},
        "Friday",
        None,
    ],
)
def test_v8_monthly_occurrences_that_are_none(wrong: object) -> None:
    right = {"day": "Monday", "occurrence": "-1"}
    assert schedule_fields("Month", monthlyOccurrences=[right, wrong]) == ["schedule.monthlyOccurrences"]


def test_v8_monthly_occurrences_are_always_a_list() -> None:
    assert schedule_fields("Month", monthlyOccurrences={"day": "Friday"}) == ["schedule.monthlyOccurrences"]


# V9 to V12


def test_v9_month_days_beside_monthly_occurrences() -> None:
    found = schedule_fields("Month", monthDays=[1], monthlyOccurrences=[{"day": "Friday"}])
    assert found == ["schedule.monthlyOccurrences"]


@pytest.mark.parametrize(
    ("frequency", "name"),
    [
        ("Day", "hours"),
        ("Day", "minutes"),
        ("Week", "weekDays"),
        ("Month", "monthDays"),
        ("Month", "monthlyOccurrences"),
    ],
)
def test_v10_an_empty_list(frequency: str, name: str) -> None:
    assert schedule_fields(frequency, **{name: []}) == [f"schedule.{name}"]


@pytest.mark.parametrize("schedule", [{"hours": [8]}, {"monthDays": [1]}, {"hours": ["what"]}, {"weekDays": []}])
def test_v11_a_schedule_on_a_sliding_window(schedule: dict[str, Any]) -> None:
    recurrence = {"frequency": "Day", "interval": 1, "schedule": schedule}
    assert fields({"type": "SlidingWindow", "recurrence": recurrence}) == ["recurrence.schedule"]


@pytest.mark.parametrize(
    ("start", "schedule"),
    [
        ("2024-02-01T00:00:00Z", {"monthDays": [30]}),
        ("2024-02-01T00:00:00Z", {"monthDays": [31, -31, -30]}),
        ("2024-06-01T00:00:00Z", {"monthDays": 31}),
    ],
)
def test_v12_days_that_never_come(start: str, schedule: dict[str, Any]) -> None:
    assert recurrence_fields(frequency="Month", interval=12, startTime=start, schedule=schedule) == ["schedule"]


@pytest.mark.parametrize(
    ("start", "schedule"),
    [
        ("2024-02-01T00:00:00Z", {"monthDays": [29, 30]}),
        ("2024-02-01T00:00:00Z", {"monthlyOccurrences": [{"day": "Friday", "occurrence": -5}]}),
        ("2024-04-01T00:00:00Z", {"monthlyOccurrences": [{"day": "Friday", "occurrence": 5}]}),
    ],
)
def test_v12_days_that_are_rare_are_no_fault(start: str, schedule: dict[str, Any]) -> None:
    recurrence = {"frequency": "Month", "interval": 12, "startTime": start, "schedule": schedule}
    assert compiled(recurrence, CREATED).at_or_after(at(CREATED)) is not None
