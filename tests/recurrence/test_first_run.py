"""When a job first fires (section 3), and where it ends (section 6), beyond the case file."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from shared.recurrence import compile_trigger
from tests.recurrence.support import at, compiled, first

CREATED = "2024-05-01T10:15:30Z"  # a Wednesday
HOURLY: dict[str, Any] = {"frequency": "Hour", "interval": 1}
DAILY: dict[str, Any] = {"frequency": "Day", "interval": 1}


# The run at creation (F2).


@pytest.mark.parametrize("recurrence", [HOURLY, DAILY, DAILY | {"schedule": {"hours": [8]}}])
def test_without_a_start_there_is_a_run_at_creation(recurrence: dict[str, Any]) -> None:
    schedule = compiled(recurrence, CREATED)
    assert schedule.initial_run == schedule.at_or_after(at(CREATED)) == at(CREATED)


@pytest.mark.parametrize("start", ["2024-04-01T00:00:00Z", CREATED, "2024-06-01T00:00:00Z"])
def test_with_a_start_there_is_none(start: str) -> None:
    assert compiled(HOURLY | {"startTime": start}, CREATED).initial_run is None


def test_without_schedule_a_skipped_initial_run_leaves_the_next_interval() -> None:
    schedule = compiled({"frequency": "Hour", "interval": 6}, CREATED, skipInitialRun=True)
    assert schedule.initial_run is None
    assert first(schedule, 2) == ["2024-05-01T16:15:30Z", "2024-05-01T22:15:30Z"]


def test_without_schedule_a_skipped_initial_run_leaves_the_next_month() -> None:
    schedule = compiled({"frequency": "Month", "interval": 2}, "2024-12-31T08:00:00Z", skipInitialRun=True)
    assert first(schedule, 2) == ["2025-02-28T08:00:00Z", "2025-04-30T08:00:00Z"]


def test_with_a_schedule_a_skipped_initial_run_leaves_the_points_after_creation() -> None:
    recurrence = DAILY | {"schedule": {"hours": [9, 11], "minutes": [0]}}
    assert first(compiled(recurrence, CREATED, skipInitialRun=True), 2) == [
        "2024-05-01T11:00:00Z",
        "2024-05-02T09:00:00Z",
    ]


def test_a_point_at_creation_is_skipped_with_the_initial_run() -> None:
    recurrence = DAILY | {"schedule": {"hours": [10]}}  # minute and second from creation
    assert first(compiled(recurrence, CREATED, skipInitialRun=True), 1) == ["2024-05-02T10:15:30Z"]


def test_a_point_at_creation_counts_once() -> None:
    recurrence = DAILY | {"schedule": {"hours": [10]}}
    schedule = compiled(recurrence, CREATED)
    assert first(schedule, 2) == [CREATED, "2024-05-02T10:15:30Z"]
    assert schedule.count_between(at(CREATED), at("2024-05-02T10:15:30Z")) == 2


def test_skipping_changes_nothing_when_there_is_a_start() -> None:
    recurrence = HOURLY | {"startTime": CREATED}
    assert first(compiled(recurrence, CREATED, skipInitialRun=True), 2) == [CREATED, "2024-05-01T11:15:30Z"]


def test_looking_back_finds_the_run_at_creation_and_nothing_before() -> None:
    schedule = compiled(DAILY | {"schedule": {"hours": [8], "minutes": [0]}}, CREATED)
    assert schedule.last_until(at("2024-05-02T07:59:59Z")) == at(CREATED)
    assert schedule.last_until(at(CREATED)) == at(CREATED)
    assert schedule.last_until(at(CREATED) - timedelta(microseconds=1)) is None


# Creation and instants in other guises.


def test_creation_is_cut_to_the_second() -> None:
    created = at("2024-05-01T10:15:30Z").replace(microsecond=999_999)
    schedule = compile_trigger({"type": "Recurrence", "recurrence": HOURLY}, created)
    assert schedule.initial_run == at("2024-05-01T10:15:30Z")


def test_instants_may_be_given_in_any_offset_and_come_back_in_utc() -> None:
    tokyo = timezone(timedelta(hours=9))
    schedule = compile_trigger({"type": "Recurrence", "recurrence": HOURLY}, at(CREATED).astimezone(tokyo))
    found = schedule.after(at(CREATED).astimezone(tokyo))
    assert found == at("2024-05-01T11:15:30Z")
    assert found is not None
    assert found.tzinfo is UTC


def test_a_naive_instant_is_a_mistake() -> None:
    with pytest.raises(TypeError):
        compiled(HOURLY, CREATED).after(at(CREATED).replace(tzinfo=None))


@pytest.mark.parametrize(
    ("start", "runs"),
    [
        ("2024-05-02T08:00:00.5Z", ["2024-05-02T08:00:01Z", "2024-05-03T08:00:01Z"]),
        ("2024-05-02T23:59:59.0000001Z", ["2024-05-03T00:00:00Z", "2024-05-04T00:00:00Z"]),
        ("2024-05-02T08:00:00.0Z", ["2024-05-02T08:00:00Z", "2024-05-03T08:00:00Z"]),
    ],
)
def test_a_start_within_a_second_counts_from_the_next(start: str, runs: list[str]) -> None:
    assert first(compiled(DAILY | {"startTime": start}, CREATED), 2) == runs


def test_a_past_start_far_back_keeps_its_grid() -> None:
    schedule = compiled({"frequency": "Second", "interval": 7, "startTime": "1970-01-01T00:00:00Z"}, CREATED)
    found = schedule.at_or_after(at(CREATED))
    assert found is not None
    assert int(found.timestamp()) % 7 == 0
    assert found - at(CREATED) < timedelta(seconds=7)


# Sliding windows (section 7).


def test_without_a_start_windows_begin_at_creation() -> None:
    schedule = compiled(HOURLY, CREATED, kind="SlidingWindow")
    assert schedule.initial_run == at(CREATED)
    assert schedule.window(at(CREATED)) == (at(CREATED), at("2024-05-01T11:15:30Z"))


def test_without_a_start_a_skipped_initial_run_drops_the_first_window() -> None:
    schedule = compiled(HOURLY, CREATED, kind="SlidingWindow", skipInitialRun=True)
    assert schedule.initial_run is None
    assert first(schedule, 1) == ["2024-05-01T11:15:30Z"]


def test_a_delayed_first_window_is_no_run_at_creation() -> None:
    schedule = compiled(HOURLY, CREATED, kind="SlidingWindow", inputs={"delay": "PT1M"})
    assert schedule.initial_run is None
    assert schedule.due(at(CREATED)) == at("2024-05-01T10:16:30Z")


def test_a_past_start_gives_every_window_due_at_creation() -> None:
    schedule = compiled(HOURLY | {"startTime": "2024-05-01T08:00:00Z"}, CREATED, kind="SlidingWindow")
    starts = first(schedule, 4)
    assert starts == [f"2024-05-01T{hour:02}:00:00Z" for hour in (8, 9, 10, 11)]
    due = [schedule.due(at(text)) for text in starts]
    assert due == [at(CREATED), at(CREATED), at(CREATED), at("2024-05-01T11:00:00Z")]


@pytest.mark.parametrize(
    ("delay", "seconds"), [("P1W", 604_800), ("P1DT1H1M1S", 90_061), ("PT0S", 0), ("PT90M", 5400)]
)
def test_a_delay_moves_the_due_time_and_not_the_window(delay: str, seconds: int) -> None:
    schedule = compiled(HOURLY | {"startTime": CREATED}, CREATED, kind="SlidingWindow", inputs={"delay": delay})
    assert schedule.due(at(CREATED)) == at(CREATED) + timedelta(seconds=seconds)
    assert schedule.window(at(CREATED)) == (at(CREATED), at("2024-05-01T11:15:30Z"))


def test_a_recurrence_has_no_windows_and_is_due_when_scheduled() -> None:
    schedule = compiled(HOURLY, CREATED)
    assert schedule.window(at(CREATED)) is None
    assert schedule.due(at(CREATED)) == at(CREATED)


@pytest.mark.parametrize(
    ("march", "hours"), [("2019-03-10T00:00:00", 23), ("2019-11-03T00:00:00", 25), ("2019-07-01T00:00:00", 24)]
)
def test_day_windows_are_as_long_as_the_local_day(march: str, hours: int) -> None:
    recurrence = DAILY | {"startTime": march, "timeZone": "Central Standard Time"}
    schedule = compiled(recurrence, "2019-01-01T00:00:00Z", kind="SlidingWindow")
    (text,) = first(schedule, 1)
    window = schedule.window(at(text))
    assert window is not None
    assert window[1] - window[0] == timedelta(hours=hours)


# Ends (N1, N2).


def test_a_point_at_the_end_runs_and_none_after() -> None:
    recurrence = HOURLY | {"startTime": "2024-05-02T00:00:00Z", "endTime": "2024-05-02T02:00:00Z"}
    assert len(first(compiled(recurrence, CREATED), 10)) == 3


def test_a_point_a_fraction_after_the_end_does_not_run() -> None:
    recurrence = HOURLY | {"startTime": "2024-05-02T00:00:00Z", "endTime": "2024-05-02T01:59:59.9Z"}
    assert len(first(compiled(recurrence, CREATED), 10)) == 2


@pytest.mark.parametrize(("end", "windows"), [("02:59:59", 2), ("03:00:00", 3), ("00:30:00", 0), ("01:00:00", 1)])
def test_only_windows_that_end_by_the_end_are_dispatched(end: str, windows: int) -> None:
    recurrence = HOURLY | {"startTime": "2024-05-02T00:00:00Z", "endTime": f"2024-05-02T{end}Z"}
    schedule = compiled(recurrence, CREATED, kind="SlidingWindow")
    assert len(first(schedule, 10)) == windows
    assert schedule.count_between(at(CREATED), at("2024-06-01T00:00:00Z")) == windows


@pytest.mark.parametrize(("end", "initial"), [("11:15:29", None), ("11:15:30", CREATED)])
def test_a_first_window_that_does_not_end_in_time_is_no_initial_run(end: str, initial: str | None) -> None:
    schedule = compiled(HOURLY | {"endTime": f"2024-05-01T{end}Z"}, CREATED, kind="SlidingWindow")
    assert schedule.initial_run == (initial and at(initial))
    assert first(schedule, 5) == ([initial] if initial else [])


def test_an_end_at_creation_leaves_the_run_at_creation() -> None:
    assert first(compiled(HOURLY | {"endTime": CREATED}, CREATED), 5) == [CREATED]


def test_an_end_before_the_first_point_leaves_nothing() -> None:
    recurrence = DAILY | {
        "startTime": "2024-05-02T08:00:00Z",
        "endTime": "2024-05-02T08:30:00Z",
        "schedule": {"hours": [9]},
    }
    schedule = compiled(recurrence, CREATED)
    assert first(schedule, 5) == []
    assert schedule.last_until(at("2030-01-01T00:00:00Z")) is None


def test_an_end_without_z_is_read_in_the_zone_whatever_the_start_says() -> None:
    recurrence = HOURLY | {
        "startTime": "2024-05-02T00:00:00Z",
        "endTime": "2024-05-01T19:00:00",  # 02:00Z
        "timeZone": "Pacific Standard Time",
    }
    assert len(first(compiled(recurrence, CREATED), 10)) == 3


def test_count_is_handed_on_for_the_dispatcher_to_count() -> None:
    schedule = compiled(HOURLY | {"count": "2"}, CREATED)
    assert schedule.count == 2
    assert schedule.count_between(at(CREATED), at("2024-05-01T20:15:30Z")) == 11


# Once (X5).


@pytest.mark.parametrize("run_at", [None, "2024-05-01T10:15:29Z", "1970-01-01T00:00:00Z"])
def test_once_without_a_future_time_runs_at_creation(run_at: str | None) -> None:
    schedule = compile_trigger({"type": "Once", "runAt": run_at}, at(CREATED))
    assert first(schedule, 5) == [CREATED]
    assert schedule.evaluated == {}
    assert schedule.count is None
    assert schedule.initial_run is None


@pytest.mark.parametrize(
    ("run_at", "instant"),
    [
        ("2024-05-01T10:15:30.1Z", "2024-05-01T10:15:31Z"),
        ("2024-05-02T08:00Z", "2024-05-02T08:00:00Z"),
        ("2073-05-01T10:15:30Z", "2073-05-01T10:15:30Z"),
    ],
)
def test_once_runs_at_its_time(run_at: str, instant: str) -> None:
    schedule = compile_trigger({"type": "Once", "runAt": run_at}, at(CREATED))
    assert first(schedule, 5) == [instant]
    assert schedule.last_until(at(instant)) == at(instant)
    assert schedule.last_until(at(instant) - timedelta(seconds=1)) is None
    assert schedule.count_between(at(CREATED), datetime.max.replace(tzinfo=UTC)) == 1
    assert schedule.window(at(instant)) is None
    assert schedule.local(at(instant)).tzinfo is UTC
    assert schedule.note(at(instant)) is None
    assert schedule.due(at(instant)) == at(instant)
