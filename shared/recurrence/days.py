"""Which days a Day, Week or Month rule picks (K2 to K6). A day is a count of days since 1970-01-01.

Each pattern answers without walking from its anchor: `from_day` is the first picked day at or after a day
(`NEVER` if there is none within 100 years), `to_day` the last at or before it (`-NEVER` likewise), `count`
how many lie in [first, last].
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Protocol

from shared.recurrence.instants import EPOCH, NEVER

_EPOCH_ORDINAL = EPOCH.toordinal()
_LAST_DAY = date.max.toordinal() - _EPOCH_ORDINAL
_LAST_MONTH = 9999 * 12 + 11
_FIRST_MONTH = 12
_CENTURY = 1200  # months


class Days(Protocol):
    def from_day(self, day: int) -> int: ...
    def to_day(self, day: int) -> int: ...
    def count(self, first: int, last: int) -> int: ...


@dataclass(frozen=True, slots=True)
class Daily:
    """Every `interval` days, counted as dates from `anchor`."""

    anchor: int
    interval: int

    def from_day(self, day: int) -> int:
        return day + (self.anchor - day) % self.interval

    def to_day(self, day: int) -> int:
        return day - (day - self.anchor) % self.interval

    def count(self, first: int, last: int) -> int:
        if last < first:
            return 0
        return (last - self.anchor) // self.interval - (first - 1 - self.anchor) // self.interval


def weekday_of(day: int) -> int:
    """0 for Monday to 6 for Sunday."""
    return (day + 3) % 7


def week_of(day: int) -> int:
    """Weeks since that of 1970-01-01; they start on Monday (K3)."""
    return (day + 3) // 7


@dataclass(frozen=True, slots=True)
class Weekly:
    """The `weekdays` (sorted, 0 = Monday) of every `interval` weeks counted from week `anchor`."""

    anchor: int
    interval: int
    weekdays: tuple[int, ...]

    def from_day(self, day: int) -> int:
        week, weekday = divmod(day + 3, 7)
        late = (week - self.anchor) % self.interval
        if late == 0:
            position = bisect_left(self.weekdays, weekday)
            if position < len(self.weekdays):
                return day - weekday + self.weekdays[position]
        return (week + self.interval - late) * 7 - 3 + self.weekdays[0]

    def to_day(self, day: int) -> int:
        week, weekday = divmod(day + 3, 7)
        late = (week - self.anchor) % self.interval
        if late == 0:
            position = bisect_right(self.weekdays, weekday)
            if position:
                return day - weekday + self.weekdays[position - 1]
            late = self.interval
        return (week - late) * 7 - 3 + self.weekdays[-1]

    def count(self, first: int, last: int) -> int:
        return self._before(last + 1) - self._before(first) if first <= last else 0

    def _before(self, day: int) -> int:
        """Picked days before `day`, counted from the anchor week (negative before it)."""
        week, weekday = divmod(day + 3, 7)
        periods, late = divmod(week - self.anchor, self.interval)
        if late == 0:
            return periods * len(self.weekdays) + bisect_left(self.weekdays, weekday)
        return (periods + 1) * len(self.weekdays)


@dataclass(frozen=True, slots=True)
class MonthDays:
    """The days of a month that count. Exactly one of the three is set.

    `clamped`: that day, or the last one in a shorter month (K5). `numbers`: 1 to 31, or -1 to -31 from the
    end; those a month lacks are left out (K6). `occurrences`: (weekday, n), the n-th such weekday of the
    month, from its end if negative, every one if n is 0; those a month lacks are left out.
    """

    clamped: int = 0
    numbers: tuple[int, ...] = ()
    occurrences: tuple[tuple[int, int], ...] = ()


@lru_cache(maxsize=8192)
def days_in(rule: MonthDays, first_weekday: int, length: int) -> tuple[int, ...]:
    """The days, sorted, in a month of `length` days whose first falls on `first_weekday`."""
    if rule.clamped:
        return (min(rule.clamped, length),)
    days = {n if n > 0 else length + 1 + n for n in rule.numbers if abs(n) <= length}
    for weekday, nth in rule.occurrences:
        such = range(1 + (weekday - first_weekday) % 7, length + 1, 7)
        if nth == 0:
            days.update(such)
        elif abs(nth) <= len(such):
            days.add(such[nth - 1 if nth > 0 else nth])
    return tuple(sorted(days))


@dataclass(frozen=True, slots=True)
class Monthly:
    """The days `rule` names in every `interval` months from month `anchor` (year x 12 + month - 1)."""

    anchor: int
    interval: int
    rule: MonthDays

    def from_day(self, day: int) -> int:
        if day > _LAST_DAY:
            return NEVER
        month, number = month_of(day)
        late = (month - self.anchor) % self.interval
        if late:
            month, number = month + self.interval - late, 1
        for candidate in range(month, min(month + _CENTURY, _LAST_MONTH) + 1, self.interval):
            first, days = self._month(candidate)
            position = bisect_left(days, number)
            if position < len(days):
                return first + days[position] - 1
            number = 1
        return NEVER

    def to_day(self, day: int) -> int:
        month, number = month_of(min(day, _LAST_DAY))
        late = (month - self.anchor) % self.interval
        if late:
            month, number = month - late, 31
        for candidate in range(month, max(month - _CENTURY, _FIRST_MONTH) - 1, -self.interval):
            first, days = self._month(candidate)
            position = bisect_right(days, number)
            if position:
                return first + days[position - 1] - 1
            number = 31
        return -NEVER

    def count(self, first: int, last: int) -> int:
        last = min(last, _LAST_DAY)
        if last < first:
            return 0
        (month, number), (last_month, last_number) = month_of(first), month_of(last)
        total = 0
        for candidate in range(month + (self.anchor - month) % self.interval, last_month + 1, self.interval):
            days = self._month(candidate)[1]
            total += len(days)
            if candidate == month:
                total -= bisect_left(days, number)
            if candidate == last_month:
                total -= len(days) - bisect_right(days, last_number)
        return total

    def _month(self, month: int) -> tuple[int, tuple[int, ...]]:
        """The first day of a month, and the day numbers that count in it."""
        year, index = divmod(month, 12)
        first = date(year, index + 1, 1).toordinal() - _EPOCH_ORDINAL
        return first, days_in(self.rule, weekday_of(first), _length(year, index))


_STEPS = 400  # picked days after which every distance between two has come: 23 years of five Mondays a month


def least_apart(days: Days, anchor: int) -> int:
    """The fewest days between two picked ones, from day `anchor` on; NEVER if there are not two."""
    least, day = NEVER, days.from_day(anchor)
    for _ in range(_STEPS):
        if day == NEVER or least == 1:
            break
        following = days.from_day(day + 1)
        least, day = min(least, following - day), following
    return least


def month_of(day: int) -> tuple[int, int]:
    """The month of a day (year x 12 + month - 1), and the day's number in it."""
    on = date.fromordinal(day + _EPOCH_ORDINAL)
    return on.year * 12 + on.month - 1, on.day


_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _length(year: int, index: int) -> int:
    leap = index == 1 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _LENGTHS[index] + leap
