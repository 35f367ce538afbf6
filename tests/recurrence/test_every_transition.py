"""Every zone, every change of offset from 2015 to 2037: a daily job in the gap or fold runs once that day."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from shared.recurrence import Schedule, compile_trigger
from tests.recurrence.oracle import ONE_DAY, changes_of, distinct_zone_names, instant_of, zone_of
from tests.recurrence.support import occurrences

SECOND = timedelta(seconds=1)


def daily_at(wall: datetime, zone: str) -> Schedule:
    """Every day at the time of day of `wall`, from three days before."""
    start = wall - 3 * ONE_DAY
    recurrence = {"frequency": "Day", "interval": 1, "startTime": start.isoformat(), "timeZone": zone}
    return compile_trigger({"type": "Recurrence", "recurrence": recurrence}, datetime(2014, 1, 1, tzinfo=UTC))


def changes(name: str, sign: int) -> Iterator[tuple[datetime, timedelta, timedelta]]:
    """Instant, offset before, offset after, for gaps (sign 1) or folds (sign -1)."""
    zone = zone_of(name)
    for change in changes_of(name):
        before, after = (change - SECOND).astimezone(zone).utcoffset(), change.astimezone(zone).utcoffset()
        assert before is not None
        assert after is not None
        if 2015 <= change.year <= 2037 and sign * (after - before) > timedelta(0):
            yield change, before, after


def wall_at(instant: datetime, offset: timedelta) -> datetime:
    return (instant + offset).replace(tzinfo=None)


def test_a_daily_job_inside_a_gap_runs_once_that_day_later_by_the_gap() -> None:
    seen = 0
    for name in distinct_zone_names():
        for change, before, after in changes(name, 1):
            gap = after - before
            for into_gap in (timedelta(0), gap / 2, gap - SECOND):
                skipped = wall_at(change, before) + into_gap
                schedule = daily_at(skipped, name)
                runs = schedule.at_or_after(change), schedule.after(change + into_gap)
                day_before = instant_of(skipped - ONE_DAY, zone_of(name))
                day_after = instant_of(skipped + ONE_DAY, zone_of(name))
                assert runs == (change + into_gap, day_after), (name, skipped)
                assert schedule.last_until(change + into_gap - SECOND) == day_before, (name, skipped)
                assert schedule.count_between(day_before, day_after) == 3, (name, skipped)
                seen += 1
    assert seen > 3 * 2000


def test_a_daily_job_inside_a_fold_runs_once_that_day_the_first_time() -> None:
    seen = 0
    for name in distinct_zone_names():
        for change, before, after in changes(name, -1):
            fold = before - after
            for into_fold in (timedelta(0), fold / 2, fold - SECOND):
                twice = wall_at(change, after) + into_fold
                schedule = daily_at(twice, name)
                first_pass = change - fold + into_fold
                day_after = instant_of(twice + ONE_DAY, zone_of(name))
                assert schedule.at_or_after(first_pass) == first_pass, (name, twice)
                assert schedule.after(first_pass) == day_after > change + into_fold, (name, twice)
                assert schedule.count_between(first_pass, day_after) == 2, (name, twice)
                seen += 1
    assert seen > 3 * 2000


@pytest.mark.parametrize("name", ["America/Chicago", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Gaza"])
def test_a_job_at_every_minute_of_the_day_runs_at_every_wall_minute_there_is(name: str) -> None:
    for change in changes_of(name):
        if not 2015 <= change.year <= 2016:
            continue
        day = (change - ONE_DAY).replace(second=0)
        schedule = every_minute(name)
        instants = [day + timedelta(minutes=minute) for minute in range(2 * 1440)]
        first_passes = [instant for instant in instants if instant.astimezone(zone_of(name)).fold == 0]
        # A gap adds nothing: the skipped minutes coincide with those after it (D4).
        found = list(zip(range(len(first_passes)), occurrences(schedule, day), strict=False))
        assert [instant for _, instant in found] == first_passes


def every_minute(zone: str) -> Schedule:
    every = {"hours": list(range(24)), "minutes": list(range(60))}
    recurrence = {"frequency": "Day", "interval": 1, "timeZone": zone, "schedule": every}
    return compile_trigger({"type": "Recurrence", "recurrence": recurrence}, datetime(2014, 1, 1, tzinfo=UTC))
