"""Gaps and folds (D1 to D5), in pairs: the clocks go forward, the clocks go back.

Central Time, 2019. Left what the clocks show, right UTC.

    forward, 10 March                       back, 3 November
    01:59:59 CST  07:59:59                  01:59:59 CDT  06:59:59
    03:00:00 CDT  08:00:00                  01:00:00 CST  07:00:00
    02:00 to 03:00 never comes: the gap     01:00 to 02:00 comes twice: the fold

Lord Howe Island, 2024, moves by half an hour.

    forward, 6 October                      back, 7 April
    01:59:59 +10:30  15:29:59 (5 Oct)       01:59:59 +11:00  14:59:59 (6 Apr)
    02:30:00 +11:00  15:30:00               01:30:00 +10:30  15:00:00
"""

from typing import Any

import pytest

from tests.recurrence.support import at, compiled, first

CENTRAL, LORD_HOWE = "Central Standard Time", "Lord Howe Standard Time"


def daily(start: str, zone: str, created: str, wanted: int = 3, **schedule: Any) -> list[str]:
    """The first occurrences of a daily job, without their year."""
    recurrence: dict[str, Any] = {"frequency": "Day", "interval": 1, "startTime": start, "timeZone": zone}
    if schedule:
        recurrence["schedule"] = schedule
    return [text[5:-4] for text in first(compiled(recurrence, created), wanted)]


# Central, one run a day: before, inside and after the gap (March) and the fold (November).


@pytest.mark.parametrize(
    ("clock", "instants"),
    [
        ("01:30", ["03-09T07:30", "03-10T07:30", "03-11T06:30"]),
        ("01:59", ["03-09T07:59", "03-10T07:59", "03-11T06:59"]),
        ("02:00", ["03-09T08:00", "03-10T08:00", "03-11T07:00"]),
        ("02:30", ["03-09T08:30", "03-10T08:30", "03-11T07:30"]),
        ("02:59", ["03-09T08:59", "03-10T08:59", "03-11T07:59"]),
        ("03:00", ["03-09T09:00", "03-10T08:00", "03-11T08:00"]),
    ],
)
def test_march_a_time_in_the_gap_moves_forward_and_is_back_the_day_after(clock: str, instants: list[str]) -> None:
    assert daily(f"2019-03-09T{clock}:00", CENTRAL, "2019-03-01T00:00:00Z") == instants


@pytest.mark.parametrize(
    ("clock", "instants"),
    [
        ("00:59", ["11-02T05:59", "11-03T05:59", "11-04T06:59"]),
        ("01:00", ["11-02T06:00", "11-03T06:00", "11-04T07:00"]),
        ("01:30", ["11-02T06:30", "11-03T06:30", "11-04T07:30"]),
        ("01:59", ["11-02T06:59", "11-03T06:59", "11-04T07:59"]),
        ("02:00", ["11-02T07:00", "11-03T08:00", "11-04T08:00"]),
        ("02:30", ["11-02T07:30", "11-03T08:30", "11-04T08:30"]),
    ],
)
def test_november_a_time_in_the_fold_runs_the_first_time_only(clock: str, instants: list[str]) -> None:
    assert daily(f"2019-11-02T{clock}:00", CENTRAL, "2019-10-20T00:00:00Z") == instants


# Central, half-hourly from 01:00 to 03:30.

HALF_HOURLY = {"hours": [1, 2, 3], "minutes": [0, 30]}


def test_march_times_that_meet_after_the_gap_run_once() -> None:
    runs = daily("2019-03-10T00:00:00", CENTRAL, "2019-03-09T12:00:00Z", 5, **HALF_HOURLY)
    assert runs == ["03-10T07:00", "03-10T07:30", "03-10T08:00", "03-10T08:30", "03-11T06:00"]


def test_november_nothing_runs_in_the_second_pass() -> None:
    runs = daily("2019-11-03T00:00:00", CENTRAL, "2019-11-02T12:00:00Z", 7, **HALF_HOURLY)
    assert runs[:3] == ["11-03T06:00", "11-03T06:30", "11-03T08:00"]
    assert runs[3:] == ["11-03T08:30", "11-03T09:00", "11-03T09:30", "11-04T07:00"]


# Central, elapsed time: daylight saving does not matter (E1).


def test_march_every_24_hours_is_an_hour_later_by_the_clocks() -> None:
    recurrence = {"frequency": "Hour", "interval": 24, "startTime": "2019-03-09T02:30:00", "timeZone": CENTRAL}
    schedule = compiled(recurrence, "2019-03-01T00:00:00Z")
    clocks = [f"{schedule.local(at(text)):%d %H:%M}" for text in first(schedule, 3)]
    assert clocks == ["09 02:30", "10 03:30", "11 03:30"]


def test_november_every_24_hours_is_an_hour_earlier_by_the_clocks() -> None:
    recurrence = {"frequency": "Hour", "interval": 24, "startTime": "2019-11-02T02:30:00", "timeZone": CENTRAL}
    schedule = compiled(recurrence, "2019-10-20T00:00:00Z")
    clocks = [f"{schedule.local(at(text)):%d %H:%M}" for text in first(schedule, 3)]
    assert clocks == ["02 02:30", "03 01:30", "04 01:30"]


# Lord Howe: the half hour.


@pytest.mark.parametrize(
    ("clock", "instants"),
    [
        ("01:59", ["10-04T15:29", "10-05T15:29", "10-06T14:59"]),
        ("02:00", ["10-04T15:30", "10-05T15:30", "10-06T15:00"]),
        ("02:15", ["10-04T15:45", "10-05T15:45", "10-06T15:15"]),
        ("02:30", ["10-04T16:00", "10-05T15:30", "10-06T15:30"]),
    ],
)
def test_october_a_half_hour_gap_moves_by_half_an_hour(clock: str, instants: list[str]) -> None:
    assert daily(f"2024-10-05T{clock}:00", LORD_HOWE, "2024-10-01T00:00:00Z") == instants


@pytest.mark.parametrize(
    ("clock", "instants"),
    [
        ("01:29", ["04-05T14:29", "04-06T14:29", "04-07T14:59"]),
        ("01:30", ["04-05T14:30", "04-06T14:30", "04-07T15:00"]),
        ("01:45", ["04-05T14:45", "04-06T14:45", "04-07T15:15"]),
        ("02:00", ["04-05T15:00", "04-06T15:30", "04-07T15:30"]),
    ],
)
def test_april_a_half_hour_fold_runs_the_first_time_only(clock: str, instants: list[str]) -> None:
    assert daily(f"2024-04-06T{clock}:00", LORD_HOWE, "2024-04-01T00:00:00Z") == instants


def test_october_a_moved_time_may_come_after_one_that_is_later_by_the_clocks() -> None:
    runs = daily("2024-10-06T00:00:00", LORD_HOWE, "2024-10-05T00:00:00Z", 4, hours=[2], minutes=[10, 35])
    assert runs == ["10-05T15:35", "10-05T15:40", "10-06T15:10", "10-06T15:35"]


def test_april_the_same_times_keep_their_order() -> None:
    runs = daily("2024-04-07T00:00:00", LORD_HOWE, "2024-04-06T00:00:00Z", 4, hours=[2], minutes=[10, 35])
    assert runs == ["04-06T15:40", "04-06T16:05", "04-07T15:40", "04-07T16:05"]


# Where the gap is not at night, or not an hour.


def test_a_time_moved_over_midnight_leaves_the_next_day_its_own_run() -> None:
    runs = daily("2024-03-29T23:30:00", "America/Nuuk", "2024-03-01T00:00:00Z", 4)
    assert runs == ["03-30T01:30", "03-31T01:30", "04-01T00:30", "04-02T00:30"]


def test_a_whole_date_that_never_came_falls_on_the_next_once() -> None:
    runs = daily("2011-12-28T12:00:00", "Samoa Standard Time", "2011-12-01T00:00:00Z", 4)
    assert runs == ["12-28T22:00", "12-29T22:00", "12-30T22:00", "12-31T22:00"]


# What creation in the second pass of a fold means: 07:30Z shows 01:30 for the second time.

SECOND_PASS = "2019-11-03T07:30:00Z"


@pytest.mark.parametrize("kind", ["Recurrence", "SlidingWindow"])
def test_november_created_in_the_second_pass_runs_then_and_daily_after(kind: str) -> None:
    recurrence = {"frequency": "Day", "interval": 1, "timeZone": CENTRAL}
    schedule = compiled(recurrence, SECOND_PASS, kind=kind)
    assert first(schedule, 3) == [SECOND_PASS, "2019-11-04T07:30:00Z", "2019-11-05T07:30:00Z"]


@pytest.mark.parametrize("kind", ["Recurrence", "SlidingWindow"])
def test_november_elapsed_hours_count_from_the_second_pass(kind: str) -> None:
    recurrence = {"frequency": "Hour", "interval": 5, "timeZone": CENTRAL}
    schedule = compiled(recurrence, SECOND_PASS, kind=kind)
    assert first(schedule, 3) == [SECOND_PASS, "2019-11-03T12:30:00Z", "2019-11-03T17:30:00Z"]


# Without a zone, or with a start that ends in Z, there is no daylight saving (D5, Z1).


@pytest.mark.parametrize("zone", [None, CENTRAL])
def test_march_a_start_in_utc_stays_in_utc(zone: str | None) -> None:
    recurrence = {"frequency": "Day", "interval": 1, "startTime": "2019-03-09T08:30:00Z", "timeZone": zone}
    runs = first(compiled(recurrence, "2019-03-01T00:00:00Z"), 3)
    assert runs == ["2019-03-09T08:30:00Z", "2019-03-10T08:30:00Z", "2019-03-11T08:30:00Z"]


# Remarks on single occurrences.


def remarks(start: str, zone: str, created: str, wanted: int = 3) -> list[str | None]:
    recurrence = {"frequency": "Day", "interval": 1, "startTime": start, "timeZone": zone}
    schedule = compiled(recurrence, created)
    return [schedule.note(at(text)) for text in first(schedule, wanted)]


def test_march_an_occurrence_that_moved_says_so() -> None:
    assert remarks("2019-03-09T02:30:00", CENTRAL, "2019-03-01T00:00:00Z") == [
        None,
        "the clocks skip 02:30 on 2019-03-10; runs at 03:30 instead",
        None,
    ]


def test_november_an_occurrence_whose_time_repeats_says_so() -> None:
    assert remarks("2019-11-02T01:30:00", CENTRAL, "2019-10-20T00:00:00Z") == [
        None,
        "the clocks show 01:30 twice on 2019-11-03; runs the first time only",
        None,
    ]


@pytest.mark.parametrize("clock", ["01:59", "03:00"])
def test_march_occurrences_beside_the_gap_have_no_remark(clock: str) -> None:
    assert remarks(f"2019-03-09T{clock}:00", CENTRAL, "2019-03-01T00:00:00Z") == [None, None, None]


@pytest.mark.parametrize("clock", ["00:59", "02:00"])
def test_november_occurrences_beside_the_fold_have_no_remark(clock: str) -> None:
    assert remarks(f"2019-11-02T{clock}:00", CENTRAL, "2019-10-20T00:00:00Z") == [None, None, None]


def test_november_elapsed_hours_have_no_remark() -> None:
    schedule = compiled({"frequency": "Hour", "interval": 1, "timeZone": CENTRAL}, "2019-11-03T05:30:00Z")
    assert [schedule.note(at(text)) for text in first(schedule, 4)] == [None] * 4


@pytest.mark.parametrize("clock", ["01:00", "01:59"])
def test_november_the_edges_of_the_fold_belong_to_it(clock: str) -> None:
    found = remarks(f"2019-11-02T{clock}:00", CENTRAL, "2019-10-20T00:00:00Z")
    assert found == [None, f"the clocks show {clock} twice on 2019-11-03; runs the first time only", None]


@pytest.mark.parametrize("clock", ["02:00", "02:59"])
def test_march_the_edges_of_the_gap_belong_to_it(clock: str) -> None:
    found = remarks(f"2019-03-09T{clock}:00", CENTRAL, "2019-03-01T00:00:00Z")
    moved = clock.replace("02", "03")
    assert found == [None, f"the clocks skip {clock} on 2019-03-10; runs at {moved} instead", None]


def test_march_a_later_time_of_the_same_list_is_not_taken_for_a_moved_one() -> None:
    schedule = {"hours": [2, 3], "minutes": [30]}
    recurrence = {"frequency": "Day", "interval": 1, "startTime": "2019-03-11T00:00:00", "timeZone": CENTRAL}
    daily_twice = compiled(recurrence | {"schedule": schedule}, "2019-03-01T00:00:00Z")
    assert [daily_twice.note(at(text)) for text in first(daily_twice, 4)] == [None] * 4


def test_november_a_run_at_creation_that_is_no_scheduled_time_has_no_remark() -> None:
    recurrence = {"frequency": "Day", "interval": 1, "timeZone": CENTRAL, "schedule": {"hours": [8]}}
    schedule = compiled(recurrence, "2019-11-03T06:30:00Z")
    assert schedule.initial_run is not None
    assert schedule.note(schedule.initial_run) is None
