"""Random rules, zones and instants, against the plain oracle and against dateutil's rrule."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from typing import Any, Literal

import pytest
from dateutil import rrule
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shared.errors import InvalidInput
from shared.recurrence import Schedule, compile_trigger
from tests.recurrence import drawn
from tests.recurrence.oracle import WEEKDAYS, Oracle, as_list
from tests.recurrence.support import occurrences

SECOND = timedelta(seconds=1)
SPAN = {
    "Second": timedelta(seconds=40),
    "Minute": timedelta(minutes=40),
    "Hour": timedelta(hours=40),
    "Day": timedelta(days=8),
    "Week": timedelta(days=40),
    "Month": timedelta(days=150),
}


class Drawn:
    """A schedule, its oracle, and a stretch of time to look at."""

    def __init__(self, data: st.DataObject, *, sliding: bool = False) -> None:
        self.zone = data.draw(drawn.zones)
        self.recurrence = data.draw(drawn.recurrences(self.zone))
        if sliding:
            self.recurrence.pop("schedule", None)
        self.skip = data.draw(st.booleans())
        self.created = data.draw(drawn.instants(self.zone))
        self.sliding = sliding
        self.schedule = self.compile()
        self.oracle = Oracle(self.recurrence, self.created, sliding=sliding, skip=self.skip)
        span = SPAN[self.recurrence["frequency"]] * self.recurrence["interval"]
        anywhere = st.sampled_from([self.created, self.oracle.start]) | drawn.instants(self.zone)
        self.first = data.draw(anywhere) - data.draw(st.sampled_from([SECOND, span / 4]))
        self.last = self.first + min(span, timedelta(days=600))

    def compile(self) -> Schedule:
        kind = "SlidingWindow" if self.sliding else "Recurrence"
        trigger = {"type": kind, "recurrence": self.recurrence, "skipInitialRun": self.skip}
        try:
            return compile_trigger(trigger, self.created)
        except InvalidInput as refused:
            # Starts more than 49 years ahead, days that never come: tested elsewhere.
            assume({fault.field for fault in refused.faults} - {"recurrence.startTime", "recurrence.schedule"})
            raise


def within(schedule: Schedule, first: datetime, last: datetime) -> list[datetime]:
    return list(takewhile(lambda instant: instant <= last, occurrences(schedule, first)))


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_a_recurrence_fires_when_the_oracle_says(data: st.DataObject) -> None:
    case = Drawn(data)
    assert within(case.schedule, case.first, case.last) == case.oracle.between(case.first, case.last)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_windows_begin_when_the_oracle_says_and_meet(data: st.DataObject) -> None:
    case = Drawn(data, sliding=True)
    starts = within(case.schedule, case.first, case.last)
    assert starts == case.oracle.between(case.first, case.last)
    windows = [window for start in starts if (window := case.schedule.window(start))]
    assert all(left[1] == right[0] for left, right in pairwise(windows))
    assert all(start < end for start, end in windows)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_looking_back_and_counting_agree_with_the_oracle(data: st.DataObject) -> None:
    case = Drawn(data, sliding=data.draw(st.booleans()))
    expected = case.oracle.between(case.first, case.last)
    assert case.schedule.count_between(case.first, case.last) == len(expected)
    found = case.schedule.last_until(case.last)
    if expected:
        assert found == expected[-1]
        assert case.schedule.last_until(expected[-1]) == expected[-1]
    else:
        assert found is None or found < case.first
    for earlier, later in pairwise(expected):
        assert case.schedule.last_until(later - SECOND) == earlier


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_instants_between_seconds_are_neither_rounded_into_nor_out_of_a_point(data: st.DataObject) -> None:
    case = Drawn(data)
    point = case.schedule.at_or_after(case.first)
    assume(point is not None)
    assert point is not None
    part = timedelta(microseconds=data.draw(st.integers(1, 999_999)))
    assert case.schedule.at_or_after(point - part) == point == case.schedule.after(point - part)
    assert case.schedule.last_until(point + part) == point
    assert case.schedule.at_or_after(point + part) == case.schedule.after(point)
    assert case.schedule.last_until(point - part) == case.schedule.last_until(point - SECOND)
    assert case.schedule.count_between(point - part, point + part) == 1
    assert case.schedule.count_between(point + part, point + part) == 0


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_times_only_go_forward_and_keep_to_start_creation_and_end(data: st.DataObject) -> None:
    case = Drawn(data)
    end = max(case.created, case.oracle.start, case.last)
    case.recurrence["endTime"] = f"{end.replace(tzinfo=None).isoformat()}Z"
    case.schedule = case.compile()
    found = list(islice(occurrences(case.schedule, end - SPAN[case.recurrence["frequency"]]), 60))
    assert all(earlier < later for earlier, later in pairwise(found))
    assert all(max(case.created, case.oracle.start) <= instant <= end for instant in found)
    assert all(instant.microsecond == 0 and instant.tzinfo is UTC for instant in found)
    assert case.schedule.after(end) is None
    assert case.schedule.count_between(end + SECOND, end + timedelta(days=4000)) == 0


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_only_windows_that_end_in_time_are_left(data: st.DataObject) -> None:
    case = Drawn(data, sliding=True)
    end = max(case.created, case.oracle.start, case.last)
    case.recurrence["endTime"] = f"{end.replace(tzinfo=None).isoformat()}Z"
    case.recurrence.pop("timeZone", None)
    if not case.recurrence.get("startTime", "Z").endswith("Z"):
        case.recurrence["startTime"] += "Z"
    assume(case.recurrence.get("startTime", "") <= case.recurrence["endTime"])
    schedule = case.compile()
    oracle = Oracle(case.recurrence, case.created, sliding=True, skip=case.skip)
    assert within(schedule, case.first, case.last) == oracle.between(case.first, case.last)
    before_end = end - 3 * oracle.longest_step()
    expected = oracle.between(before_end, end)
    if expected:
        assert schedule.last_until(end) == schedule.last_until(end + timedelta(days=4000)) == expected[-1]
    assert schedule.at_or_after(end) is None
    assert schedule.count_between(before_end, end + timedelta(days=4000)) == len(expected)


frequencies: dict[str, Literal[0, 1, 2, 3, 4, 5, 6]] = {
    "Second": rrule.SECONDLY,
    "Minute": rrule.MINUTELY,
    "Hour": rrule.HOURLY,
    "Day": rrule.DAILY,
    "Week": rrule.WEEKLY,
    "Month": rrule.MONTHLY,
}


def as_rrule(recurrence: dict[str, Any]) -> rrule.rrule:
    """The same rule in RFC 5545 terms, for zones without changes."""
    schedule = recurrence.get("schedule", {})
    options: dict[str, Any] = {"interval": recurrence["interval"], "wkst": rrule.MO}
    if "hours" in schedule:
        options["byhour"] = as_list(schedule["hours"])
    if "minutes" in schedule:
        options |= {"byminute": as_list(schedule["minutes"]), "bysecond": 0}
    if "weekDays" in schedule:
        options["byweekday"] = [WEEKDAYS.index(day) for day in as_list(schedule["weekDays"])]
    if "monthDays" in schedule:
        options["bymonthday"] = as_list(schedule["monthDays"])
    if "monthlyOccurrences" in schedule:
        # rrule wants both of "MO" and "+1MO" to hold, so every Monday is said as the five there may be.
        options["byweekday"] = [
            rrule.weekday(WEEKDAYS.index(item["day"]), nth)
            for item in schedule["monthlyOccurrences"]
            for nth in as_list(item.get("occurrence", [1, 2, 3, 4, 5]))
        ]
    start = datetime.fromisoformat(recurrence["startTime"])
    return rrule.rrule(frequencies[recurrence["frequency"]], dtstart=start, **options)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_without_changes_of_offset_a_rule_means_what_rrule_means(data: st.DataObject) -> None:
    recurrence = data.draw(drawn.recurrences("UTC"))
    start = data.draw(drawn.moments())
    clamps = recurrence["frequency"] == "Month" and not {"monthDays", "monthlyOccurrences"} & set(
        recurrence.get("schedule", {})
    )
    recurrence["startTime"] = (start.replace(day=min(start.day, 28)) if clamps else start).isoformat() + "Z"
    created = start.replace(tzinfo=UTC) - timedelta(days=40)
    try:
        schedule = compile_trigger({"type": "Recurrence", "recurrence": recurrence}, created)
    except InvalidInput:
        assume(recurrence["interval"] != 12)  # days that never come: tested elsewhere
        raise
    limit = start.replace(tzinfo=UTC) + timedelta(days=3000)
    expected = list(zip(range(12), takewhile(lambda point: point <= limit, as_rrule(recurrence)), strict=False))
    found = list(zip(range(12), takewhile(lambda point: point <= limit, occurrences(schedule)), strict=False))
    assert found == expected


@pytest.mark.parametrize(
    ("frequency", "by_hand"),
    [
        ("Day", ["01-31 08:00", "02-02 08:00", "02-04 08:00"]),
        ("Week", ["01-31 08:00", "02-14 08:00", "02-28 08:00"]),
        ("Month", ["01-31 08:00", "03-31 08:00", "05-31 08:00"]),
    ],
)
def test_the_oracle_itself_is_right_on_rules_counted_by_hand(frequency: str, by_hand: list[str]) -> None:
    recurrence = {"frequency": frequency, "interval": 2, "startTime": "2024-01-31T08:00:00Z"}
    oracle = Oracle(recurrence, datetime(2024, 1, 1, tzinfo=UTC))
    found = oracle.between(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC))
    assert [f"{point:%m-%d %H:%M}" for point in found[:3]] == by_hand
