"""What is refused of times, zones, delays and the trigger itself (Z1 to Z7, N1, N2, W4, X5)."""

from typing import Any

import pytest

from shared.errors import InvalidInput
from tests.recurrence.support import FAULTS_CREATED as CREATED
from tests.recurrence.support import FAULTS_START as START
from tests.recurrence.support import at, compiled, faults, fields, recurrence_fields

# Z1 to Z7, N1

BAD_TIMES = [
    "2024-05-02",
    "2024-05-02T08Z",
    "2024-05-02 08:00:00Z",
    "2024-05-02T08:00:00+00:00",
    "2024-05-02T08:00:00-07",
    "2024-05-02T08:00:00z",
    "2024-05-02t08:00:00Z",
    "2024-05-02T08:00:00 Z",
    " 2024-05-02T08:00:00Z",
    "2024-05-02T08:00:00Z\n",
    "2024-05-02T08:00:00.Z",
    "2024-05-02T08:00:00.12345678Z",
    "2024-05-02T08:00:00,5Z",
    "2024-05-02T24:00:00Z",
    "2024-05-02T08:60:00Z",
    "2024-05-02T08:00:60Z",
    "2024-02-30T08:00:00Z",
    "2023-02-29T08:00:00Z",
    "2024-00-02T08:00:00Z",
    "20240502T080000Z",
    "02024-05-02T08:00:00Z",
    "-2024-05-02T08:00:00Z",
    "\uff12\uff10\uff12\uff14-05-02T08:00:00Z",
    "1969-12-31T23:59:59Z",
    "",
    5,
    True,
    [],
]


@pytest.mark.parametrize("wrong", BAD_TIMES)
def test_z2_to_z5_times_that_are_none(wrong: object) -> None:
    assert recurrence_fields(startTime=wrong) == ["startTime"]
    assert recurrence_fields(startTime=wrong, timeZone="Pacific Standard Time") == ["startTime"]
    assert recurrence_fields(endTime=wrong) == ["endTime"]
    assert fields({"type": "Once", "runAt": wrong}) == ["runAt"]


@pytest.mark.parametrize("name", ["startTime", "endTime"])
def test_z3_a_wall_time_without_a_zone(name: str) -> None:
    assert recurrence_fields(**{name: "2024-06-01T08:00:00"}) == [name]


def test_z4_an_offset_is_named_as_the_reason() -> None:
    recurrence = {"frequency": "Day", "interval": 1, "startTime": "2022-03-16T08:30-04:00"}
    assert "offset" in faults({"recurrence": recurrence})[0][1]


@pytest.mark.parametrize("right", ["2073-05-01T00:00:00Z", "2073-04-30T17:00:00", "2073-04-30T16:59:59.5"])
def test_z6_a_start_at_most_49_years_ahead(right: str) -> None:
    compiled({"frequency": "Day", "interval": 1, "startTime": right, "timeZone": "Pacific Standard Time"}, CREATED)


@pytest.mark.parametrize("wrong", ["2073-05-01T00:00:01Z", "2073-04-30T17:00:01", "2073-04-30T17:00:00.1"])
def test_z6_a_start_more_than_49_years_ahead(wrong: str) -> None:
    assert recurrence_fields(startTime=wrong, timeZone="Pacific Standard Time") == ["startTime"]


def test_z6_from_a_leap_day_the_49_years_end_on_the_28th() -> None:
    recurrence = {"frequency": "Day", "interval": 1, "startTime": "2073-02-28T00:00:00Z"}
    compiled(recurrence, "2024-02-29T00:00:00Z")
    with pytest.raises(InvalidInput):
        compiled(recurrence | {"startTime": "2073-02-28T00:00:01Z"}, "2024-02-29T00:00:00Z")


@pytest.mark.parametrize("wrong", ["", "PST", "+02:00", "Mars/Phobos", 5, ["UTC"], {"id": "UTC"}])
def test_z7_zones_that_are_none(wrong: object) -> None:
    assert recurrence_fields(timeZone=wrong) == ["timeZone"]
    assert recurrence_fields(timeZone=wrong, startTime=START) == ["timeZone"]


@pytest.mark.parametrize("wrong", ["2024-04-30T23:59:59Z", "2024-04-30T16:59:59", "1970-01-01T00:00:00Z"])
def test_n1_an_end_before_creation(wrong: str) -> None:
    assert recurrence_fields(endTime=wrong, timeZone="Pacific Standard Time") == ["endTime"]


def test_n1_an_end_before_the_start() -> None:
    assert recurrence_fields(startTime=START, endTime="2024-05-02T07:59:59Z") == ["endTime"]


def test_n1_an_end_at_the_start_is_right() -> None:
    recurrence = {"frequency": "Day", "interval": 1, "startTime": START, "endTime": START}
    assert compiled(recurrence, CREATED).last_until(at("2030-01-01T00:00:00Z")) == at(START)


def test_n1_an_end_may_be_as_late_as_can_be_written() -> None:
    recurrence = {"frequency": "Day", "interval": 1, "endTime": "9999-12-31T23:59:59"}
    for zone in ("Pacific Standard Time", "Tokyo Standard Time"):
        schedule = compiled(recurrence | {"timeZone": zone}, CREATED)
        assert "until 9999-12-31" in schedule.describe()
        assert schedule.at_or_after(at("9999-12-31T20:00:00Z")) is None


@pytest.mark.parametrize("wrong", [0, -1, "0"])
def test_n2_a_count_below_one(wrong: object) -> None:
    assert recurrence_fields(count=wrong) == ["count"]


# W4


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "P1M",
        "P1Y",
        "P1W1D",
        "P1.5D",
        "PT1,5H",
        "-PT5M",
        "+PT5M",
        "PT-5M",
        "pt5m",
        "PT5M ",
        "PT5M\n",
        "5 minutes",
        "PT1M1H",
        "PT\u0665M",
        "P99999999999D",
        5,
        True,
        {},
    ],
)
def test_w4_delays_that_are_none(wrong: object) -> None:
    trigger = {
        "type": "SlidingWindow",
        "recurrence": {"frequency": "Hour", "interval": 1},
        "inputs": {"delay": wrong},
    }
    assert fields(trigger) == ["inputs.delay"]


def test_w4_a_delay_on_anything_but_a_sliding_window() -> None:
    delayed = {"inputs": {"delay": "PT5M"}}
    assert fields(delayed | {"recurrence": {"frequency": "Hour", "interval": 1}}) == ["inputs.delay"]
    assert fields(delayed | {"type": "Once"}) == ["inputs.delay"]


def test_w4_an_input_that_does_not_exist() -> None:
    trigger = {"recurrence": {"frequency": "Hour", "interval": 1}, "inputs": {"Delay": "PT5M"}}
    assert fields(trigger | {"type": "SlidingWindow"}) == ["inputs.Delay"]


@pytest.mark.parametrize("kind", ["Recurrence", "SlidingWindow", "Once"])
def test_w4_inputs_that_are_no_object(kind: str) -> None:
    recurrence = None if kind == "Once" else {"frequency": "Hour", "interval": 1}
    assert fields({"type": kind, "recurrence": recurrence, "inputs": "PT5M"}) == ["inputs"]


# The trigger itself, X5


@pytest.mark.parametrize("wrong", [None, "", "recurrence", "Timer", 5, ["Once"]])
def test_a_type_that_is_none(wrong: object) -> None:
    assert fields({"type": wrong, "recurrence": {"frequency": "Day", "interval": 1}}) == ["type"]


def test_x5_once_with_a_recurrence() -> None:
    assert fields({"type": "Once", "recurrence": {"frequency": "Day", "interval": 1}}) == ["recurrence"]


def test_x5_a_time_for_once_needs_z() -> None:
    assert fields({"type": "Once", "runAt": "2024-06-01T08:00:00"}) == ["runAt"]


def test_x5_a_time_for_once_more_than_49_years_ahead() -> None:
    assert fields({"type": "Once", "runAt": "2073-05-01T00:00:01Z"}) == ["runAt"]


@pytest.mark.parametrize("kind", ["Recurrence", "SlidingWindow"])
def test_x5_a_time_for_once_on_another_type(kind: str) -> None:
    trigger = {"type": kind, "recurrence": {"frequency": "Day", "interval": 1}, "runAt": START}
    assert fields(trigger) == ["runAt"]


@pytest.mark.parametrize("kind", ["Recurrence", "SlidingWindow", "Once"])
@pytest.mark.parametrize("wrong", ["true", 1, 0, []])
def test_whether_to_skip_the_initial_run_is_true_or_false(kind: str, wrong: object) -> None:
    recurrence = None if kind == "Once" else {"frequency": "Day", "interval": 1}
    assert fields({"type": kind, "recurrence": recurrence, "skipInitialRun": wrong}) == ["skipInitialRun"]


def test_faults_of_the_trigger_come_beside_those_of_the_recurrence() -> None:
    trigger = {"recurrence": {"frequency": "Day", "interval": 0}, "skipInitialRun": 1, "runAt": START}
    assert fields(trigger) == ["recurrence.interval", "runAt", "skipInitialRun"]


def test_properties_of_other_rooms_are_not_looked_at() -> None:
    others: dict[str, Any] = {"maxLateness": 5, "jitter": 5, "runtimeConfiguration": 5, "operationOptions": 5}
    compiled({"frequency": "Day", "interval": 1}, CREATED, **others)
