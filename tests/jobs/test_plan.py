"""What becomes of a due timer (rules T3, T4, N2, N3, L5)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.jobs.model import Core, Counters, Pending, Status
from shared.jobs.plan import Timing, Turn, first_turn, pending_at, plan_turn
from shared.recurrence import Schedule, compile_trigger

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


CREATED = instant("2026-09-08T10:00:00")


def core(**counters: int) -> Core:
    return Core(stamp="s", generation=1, anchor=CREATED, definition=b"", counters=Counters(**counters))


def recurrence(**fields: Any) -> Schedule:
    return compile_trigger({"type": "Recurrence", "recurrence": fields}, CREATED)


HOURLY = recurrence(frequency="Hour", interval=1, startTime="2026-09-08T11:00:00Z")


def turn(
    scheduled: str,
    now: str,
    schedule: Schedule = HOURLY,
    max_lateness: timedelta | None = HOUR,
    start: Core | None = None,
) -> Turn:
    point = instant(scheduled)
    pending = Pending(scheduled=point, due=point)
    timing = Timing(schedule=schedule, max_lateness=max_lateness)
    return plan_turn(start or core(), pending, timing, None, instant(now))


def test_a_point_in_time_fires_and_the_next_is_pending() -> None:
    got = turn("2026-09-08T11:00:00", "2026-09-08T11:00:00.4")
    assert got.fires == instant("2026-09-08T11:00:00")
    assert got.records == ()
    assert got.pending == Pending(scheduled=instant("2026-09-08T12:00:00"), due=instant("2026-09-08T12:00:00"))
    assert (got.core.counters.seq, got.core.counters.fired) == (1, 1)
    assert got.core.last_scheduled == instant("2026-09-08T11:00:00")


def test_a_late_point_fires_once_until_the_next_falls_due() -> None:
    got = turn("2026-09-08T11:00:00", "2026-09-08T11:59:59.9")
    assert got.fires == instant("2026-09-08T11:00:00")
    assert got.records == ()


def test_points_before_the_newest_are_one_missed_stretch() -> None:
    got = turn("2026-09-08T11:00:00", "2026-09-08T14:20:00")
    assert got.fires == instant("2026-09-08T14:00:00")
    (missed,) = got.records
    assert (missed.first, missed.last) == (instant("2026-09-08T11:00:00"), instant("2026-09-08T13:00:00"))
    assert (missed.count, missed.status, missed.seq) == (3, Status.MISSED, 1)
    assert got.core.counters == Counters(seq=2, fired=1, missed=3)
    assert got.pending is not None
    assert got.pending.scheduled == instant("2026-09-08T15:00:00")


def test_a_point_past_its_max_lateness_is_missed_with_the_reason() -> None:
    daily = recurrence(frequency="Day", interval=1, startTime="2026-09-08T11:00:00Z")
    got = turn("2026-09-08T11:00:00", "2026-09-08T12:00:01", daily)
    assert got.fires is None
    (missed,) = got.records
    assert (missed.first, missed.last, missed.count) == (*[instant("2026-09-08T11:00:00")] * 2, 1)
    assert "PT1H" in missed.reason
    assert got.core.last_scheduled is None
    assert got.pending is not None
    assert got.pending.scheduled == instant("2026-09-09T11:00:00")


@pytest.mark.parametrize(("late", "fires"), [(3600, True), (3600.001, False)])
def test_max_lateness_is_counted_to_its_very_end(late: float, fires: bool) -> None:
    daily = recurrence(frequency="Day", interval=1, startTime="2026-09-08T11:00:00Z")
    now = instant("2026-09-08T11:00:00") + timedelta(seconds=late)
    pending = Pending(scheduled=instant("2026-09-08T11:00:00"), due=instant("2026-09-08T11:00:00"))
    assert (
        plan_turn(core(), pending, Timing(schedule=daily, max_lateness=HOUR), None, now).fires is not None
    ) is fires


@pytest.mark.parametrize(("late", "fires"), [(0, True), (5, True), (5.001, False)])
def test_a_max_lateness_of_nothing_leaves_the_ordinary_path_its_time(late: float, fires: bool) -> None:
    now = instant("2026-09-08T11:00:00") + timedelta(seconds=late)
    pending = Pending(scheduled=instant("2026-09-08T11:00:00"), due=instant("2026-09-08T11:00:00"))
    assert (
        plan_turn(core(), pending, Timing(schedule=HOURLY, max_lateness=timedelta(0)), None, now).fires is not None
    ) is fires


def test_a_year_of_missed_seconds_is_counted_and_not_walked() -> None:
    each_second = recurrence(frequency="Second", interval=1, startTime="2026-09-08T11:00:00Z")
    got = turn("2026-09-08T11:00:00", "2027-09-08T11:00:00.5", each_second)
    (missed,) = got.records
    assert missed.count == 365 * 86400
    assert missed.last == instant("2027-09-08T10:59:59")
    assert got.fires == instant("2027-09-08T11:00:00")
    assert got.pending is not None
    assert got.pending.scheduled == instant("2027-09-08T11:00:01")


def test_count_ends_with_the_run_that_reaches_it() -> None:
    twice = recurrence(frequency="Hour", interval=1, startTime="2026-09-08T11:00:00Z", count=2)
    assert turn("2026-09-08T11:00:00", "2026-09-08T11:00:00", twice).pending is not None
    last = turn("2026-09-08T12:00:00", "2026-09-08T12:00:00", twice, start=core(seq=1, fired=1))
    assert last.fires is not None
    assert last.pending is None


def test_missed_points_do_not_count_towards_count() -> None:
    twice = recurrence(frequency="Hour", interval=1, startTime="2026-09-08T11:00:00Z", count=2)
    got = turn("2026-09-08T11:00:00", "2026-09-08T14:20:00", twice)
    assert got.pending is not None
    assert got.core.counters.fired == 1


def test_count_starts_anew_at_a_reset() -> None:
    twice = recurrence(frequency="Hour", interval=1, startTime="2026-09-08T11:00:00Z", count=2)
    got = turn("2026-09-08T11:00:00", "2026-09-08T11:00:00", twice, start=core(seq=7, fired=7, base=7))
    assert got.pending is not None


def test_the_end_time_leaves_nothing_pending() -> None:
    ending = recurrence(
        frequency="Hour", interval=1, startTime="2026-09-08T11:00:00Z", endTime="2026-09-08T12:00:00Z"
    )
    got = turn("2026-09-08T12:00:00", "2026-09-08T12:00:00", ending)
    assert got.fires is not None
    assert got.pending is None


def test_the_last_point_may_be_missed_too() -> None:
    ending = recurrence(
        frequency="Hour", interval=1, startTime="2026-09-08T11:00:00Z", endTime="2026-09-08T12:00:00Z"
    )
    got = turn("2026-09-08T11:00:00", "2026-09-09T12:00:00", ending)
    assert (got.fires, got.pending) == (None, None)
    (missed,) = got.records
    assert missed.count == 2


def test_once_runs_whenever_it_can() -> None:
    once = compile_trigger({"type": "Once", "runAt": "2026-09-08T11:00:00Z"}, CREATED)
    got = turn("2026-09-08T11:00:00", "2029-01-01T00:00:00", once, max_lateness=None)
    assert got.fires == instant("2026-09-08T11:00:00")
    assert (got.records, got.pending) == ((), None)


def test_a_timer_is_never_keyed_before_the_moment_of_writing() -> None:
    now = instant("2026-09-08T13:00:00.7")
    pending = pending_at(Timing(schedule=HOURLY), instant("2026-09-08T11:00:00"), now)
    assert pending is not None
    assert pending.due == instant("2026-09-08T13:00:00")


def test_a_reset_takes_only_points_later_than_the_last_dispatched() -> None:
    dispatched = Core(
        stamp="s", generation=2, anchor=instant("2026-09-08T11:00:00"), definition=b"", counters=Counters(),
        last_scheduled=instant("2026-09-08T11:00:00"), floor=instant("2026-09-08T11:00:01"),
    )  # fmt: skip
    schedule = compile_trigger(
        {
            "type": "Recurrence",
            "recurrence": {"frequency": "Hour", "interval": 2, "startTime": "2026-09-08T11:00:00Z"},
        },
        dispatched.anchor,
    )
    pending = first_turn(dispatched, Timing(schedule=schedule), instant("2026-09-08T11:00:00.9"))
    assert pending is not None
    assert pending.scheduled == instant("2026-09-08T13:00:00")


def test_a_job_without_any_occurrence_has_no_timer() -> None:
    none_left = recurrence(
        frequency="Month", interval=1, startTime="2026-09-08T10:00:01Z", endTime="2026-09-08T10:00:02Z",
        schedule={"monthDays": [1]},
    )  # fmt: skip
    assert first_turn(core(), Timing(schedule=none_left), CREATED) is None


@pytest.mark.parametrize("seconds", [0, 0.2, 0.999])
def test_never_early(seconds: float) -> None:
    now = instant("2026-09-08T11:00:00") + timedelta(seconds=seconds)
    got = turn("2026-09-08T11:00:00", now.replace(tzinfo=None).isoformat())
    assert got.fires is not None
    assert got.fires <= now
    assert got.pending is not None
    assert got.pending.due > now
