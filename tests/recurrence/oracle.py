"""The rules once more, as plainly as they read: dates walked one by one, wall times mapped by `datetime`.

Slow on purpose, and without a line of the code under test.
"""

import calendar
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib import resources
from typing import Any
from zoneinfo import ZoneInfo

WEEKDAYS = list(calendar.day_name)
STEP = {"Second": timedelta(seconds=1), "Minute": timedelta(minutes=1), "Hour": timedelta(hours=1)}
ONE_DAY = timedelta(days=1)
MARGIN = timedelta(days=3)  # more than any offset and any gap


@cache
def zone_names() -> list[str]:
    return resources.files("tzdata").joinpath("zones").read_text("utf-8").split()


@cache
def zone_of(name: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, name)


@cache
def distinct_zone_names() -> list[str]:
    """One name for each set of rules."""
    files = resources.files("tzdata").joinpath("zoneinfo")
    return list({files.joinpath(*name.split("/")).read_bytes(): name for name in zone_names()}.values())


@cache
def changes_of(name: str) -> list[datetime]:
    """The instants from 1970 to 2037 at which a zone's offset changes: every day looked at, then halved."""
    zone = zone_of(name)
    days = range(0, 68 * 366 * 86_400, 86_400)
    offsets = [datetime.fromtimestamp(day, zone).utcoffset() for day in days]
    changed = [i for i in range(1, len(days)) if offsets[i] != offsets[i - 1]]
    instants = [_change_between(zone, days[i - 1], days[i]) for i in changed]
    return [datetime.fromtimestamp(instant, UTC) for instant in instants]


def _change_between(zone: ZoneInfo, low: int, high: int) -> int:
    before = datetime.fromtimestamp(low, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        same = datetime.fromtimestamp(middle, zone).utcoffset() == before
        low, high = (middle, high) if same else (low, middle)
    return high


def instant_of(wall: datetime, zone: ZoneInfo) -> datetime:
    """D3."""
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


class Oracle:
    """A Recurrence without expressions, its numbers as numbers; `created` in whole seconds."""

    def __init__(
        self, recurrence: dict[str, Any], created: datetime, *, sliding: bool = False, skip: bool = False
    ) -> None:
        self.frequency: str = recurrence["frequency"]
        self.interval: int = recurrence["interval"]
        self.schedule: dict[str, Any] = recurrence.get("schedule") or {}
        written = recurrence.get("startTime")
        ignored = written is not None and written.endswith("Z")
        self.zone = zone_of("UTC" if ignored else recurrence.get("timeZone", "UTC"))
        self.sliding = sliding
        if written is None:
            self.anchor = created.astimezone(self.zone).replace(tzinfo=None)
            self.start = created
        else:
            self.anchor = datetime.fromisoformat(written.removesuffix("Z"))
            self.start = instant_of(self.anchor, self.zone)
        self.initial = created if written is None and not skip else None
        self.low = self.start if sliding else max(self.start, created)
        if written is None:
            self.low = created + timedelta(seconds=1)
        end = recurrence.get("endTime")
        self.end = instant_of(datetime.fromisoformat(end.removesuffix("Z")), self.zone) if end else None

    def between(self, first: datetime, last: datetime) -> list[datetime]:
        """All scheduled times in [first, last], in order."""
        if self.sliding and self.end is not None:
            return self._whole_windows(first, last)
        return self._bounds(first, last if self.end is None else min(last, self.end))

    def _bounds(self, first: datetime, last: datetime) -> list[datetime]:
        found = {point for point in self._points(max(first, self.low), last) if self.low <= point}
        if self.initial is not None and first <= self.initial <= last:
            found.add(self.initial)
        return sorted(point for point in found if first <= point <= last)

    def _whole_windows(self, first: datetime, last: datetime) -> list[datetime]:
        assert self.end is not None
        bounds = self._bounds(first, min(last + self.longest_step(), self.end))
        return [point for point in bounds[:-1] if point <= last]

    def longest_step(self) -> timedelta:
        """No two neighbouring points without a schedule are further apart."""
        if self.frequency in STEP:
            return self.interval * STEP[self.frequency]
        return self.interval * {"Day": 1, "Week": 7, "Month": 31}[self.frequency] * ONE_DAY + MARGIN

    def _points(self, first: datetime, last: datetime) -> Iterator[datetime]:
        if last < first:
            return
        if self.frequency in STEP:
            yield from self._elapsed(first, last)
            return
        day = (first - MARGIN).date()
        while day <= (last + MARGIN).date():
            if self.picks(day):
                yield from (instant_of(datetime.combine(day, clock), self.zone) for clock in self.times())
            day += ONE_DAY

    def _elapsed(self, first: datetime, last: datetime) -> Iterator[datetime]:
        step = self.interval * STEP[self.frequency]
        point = self.start + max(0, (first - self.start) // step) * step
        while point <= last:
            yield point
            point += step

    def times(self) -> list[time]:
        hours = as_list(self.schedule.get("hours", self.anchor.hour))
        if "minutes" not in self.schedule:
            return [time(hour, self.anchor.minute, self.anchor.second) for hour in hours]
        return [time(hour, minute) for hour in hours for minute in as_list(self.schedule["minutes"])]

    def picks(self, day: date) -> bool:
        anchor = self.anchor.date()
        if self.frequency == "Day":
            return (day - anchor).days % self.interval == 0
        if self.frequency == "Week":
            weeks = (monday_of(day) - monday_of(anchor)).days // 7
            wanted = as_list(self.schedule.get("weekDays", WEEKDAYS[anchor.weekday()]))
            return weeks % self.interval == 0 and WEEKDAYS[day.weekday()] in wanted
        months = (day.year - anchor.year) * 12 + day.month - anchor.month
        return months % self.interval == 0 and self._picks_in_month(day)

    def _picks_in_month(self, day: date) -> bool:
        length = calendar.monthrange(day.year, day.month)[1]
        if "monthDays" in self.schedule:
            return bool({day.day, day.day - length - 1} & set(as_list(self.schedule["monthDays"])))
        if "monthlyOccurrences" in self.schedule:
            return any(_is_nth(day, length, wanted) for wanted in self.schedule["monthlyOccurrences"])
        return day.day == min(self.anchor.day, length)


def _is_nth(day: date, length: int, wanted: dict[str, Any]) -> bool:
    if WEEKDAYS[day.weekday()] != wanted["day"]:
        return False
    nth = wanted.get("occurrence")
    return nth is None or nth in ((day.day - 1) // 7 + 1, -((length - day.day) // 7 + 1))


def monday_of(day: date) -> date:
    return day - timedelta(days=day.weekday())


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
