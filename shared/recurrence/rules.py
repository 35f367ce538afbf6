"""A recurrence that has been read and found right, and the instants it means (sections 4 and 5)."""

from dataclasses import dataclass
from itertools import pairwise

from shared.recurrence.days import (
    Daily,
    Days,
    MonthDays,
    Monthly,
    Weekly,
    least_apart,
    month_of,
    week_of,
    weekday_of,
)
from shared.recurrence.instants import DAY, NEVER
from shared.recurrence.models import RecurrenceSchedule
from shared.recurrence.points import Calendar, Elapsed, Points
from shared.recurrence.zones import Zone

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBER = {name: number for number, name in enumerate(WEEKDAYS)}
_SECONDS = {"Second": 1, "Minute": 60, "Hour": 3600}


@dataclass(frozen=True, slots=True)
class Rule:
    """`anchor` is a wall reading of `zone` in seconds (Z9); `start` and `end` are instants, None if not given."""

    frequency: str
    interval: int
    zone: Zone
    zone_name: str  # as properly written: a Windows or an IANA id
    anchor: int
    start: int | None = None
    schedule: RecurrenceSchedule | None = None
    end: int | None = None
    count: int | None = None

    def points(self, created: int) -> Points:
        """All instants of the rule, those before its start and after its end included."""
        if self.frequency in _SECONDS:
            # Not the instant of the anchor: that of a creation in the second pass of a fold is in the first.
            start = created if self.start is None else self.start
            return Elapsed(start, self.interval * _SECONDS[self.frequency])
        return Calendar(self.days(), self.times(), self.zone)

    def days(self) -> Days:
        """The qualifying days of a Day, Week or Month rule (K2, K3, K5)."""
        day = self.anchor // DAY
        if self.frequency == "Day":
            return Daily(day, self.interval)
        if self.frequency == "Week":
            return Weekly(week_of(day), self.interval, self.weekdays())
        return Monthly(month_of(day)[0], self.interval, self.month_days())

    def weekdays(self) -> tuple[int, ...]:
        names = self.schedule.week_days if self.schedule else None
        if names is None:
            return (weekday_of(self.anchor // DAY),)
        return tuple(sorted({_NUMBER[name] for name in names}))

    def month_days(self) -> MonthDays:
        schedule = self.schedule
        if schedule and schedule.month_days:
            return MonthDays(numbers=tuple(sorted(set(schedule.month_days))))
        if schedule and schedule.monthly_occurrences:
            pairs = {(_NUMBER[item.day], item.occurrence or 0) for item in schedule.monthly_occurrences}
            return MonthDays(occurrences=tuple(sorted(pairs)))
        return MonthDays(clamped=month_of(self.anchor // DAY)[1])

    def times(self) -> tuple[int, ...]:
        """Times of day, in seconds, sorted (K7, K8)."""
        hour, within_hour = divmod(self.anchor % DAY, 3600)
        hours = self.schedule.hours if self.schedule else None
        minutes = self.schedule.minutes if self.schedule else None
        seconds = [within_hour] if minutes is None else sorted({minute * 60 for minute in minutes})
        return tuple(h * 3600 + s for h in sorted(set(hours or (hour,))) for s in seconds)

    def least_gap(self) -> tuple[int, str]:
        """The fewest seconds from one point to the next, as clocks on the wall show them, and the property that
        brings two so near."""
        if self.frequency in _SECONDS:
            return self.interval * _SECONDS[self.frequency], "interval"
        times = self.times()
        apart = least_apart(self.days(), self.anchor // DAY)
        gaps = [later - earlier for earlier, later in pairwise(times)]
        gaps.append(apart * DAY + times[0] - times[-1])
        several = self.schedule and self.schedule.minutes and len(self.schedule.minutes) > 1
        by_times = "schedule.minutes" if several else "schedule.hours"
        return min(gaps), by_times if len(times) > 1 else "interval"

    def can_match(self) -> bool:
        """Whether any day within 100 years qualifies (V12)."""
        return self.frequency != "Month" or self.days().from_day(self.anchor // DAY) != NEVER
