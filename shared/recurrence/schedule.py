"""A compiled trigger: when it fires, and what can be said about it. Pure: instants in, instants out."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.recurrence.describe import describe_once, describe_rule, note_on
from shared.recurrence.instants import EPOCH, LAST_INSTANT, ceil_second, floor_second, to_datetime
from shared.recurrence.points import Points
from shared.recurrence.rules import Rule
from shared.recurrence.zones import zone_info


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """The scheduled times of a job. All instants are aware; those given back are UTC and whole seconds.

    `count` is how many runs end the job (N2); whoever dispatches counts them, not this class.
    `evaluated` is the recurrence after expressions (X1), empty for a Once trigger.
    `initial_run` is the instant of the run at creation, if there will be one (F2).
    """

    count: int | None
    evaluated: dict[str, Any]
    initial_run: datetime | None
    _created: int
    _points: Points = field(repr=False)
    _first: int  # earlier points are not scheduled times
    _last: int  # nor are later ones
    _at_once: int | None = None  # creation, earlier than `_first`, if it is a scheduled time (F2)
    _rule: Rule | None = None  # None: Once
    _delay: int | None = None  # seconds; None: not a sliding window

    def at_or_after(self, instant: datetime) -> datetime | None:
        """The first scheduled time at or after `instant`; None if none is left."""
        return self._first_from(ceil_second(instant))

    def after(self, instant: datetime) -> datetime | None:
        """The first scheduled time later than `instant`; None if none is left."""
        return self._first_from(floor_second(instant) + 1)

    def last_until(self, instant: datetime) -> datetime | None:
        """The last scheduled time at or before `instant`; None if there is none."""
        until = floor_second(instant)
        if until >= self._first:
            found = self._points.last_to(min(until, self._last))
            if found >= self._first:
                return to_datetime(found)
        if self._at_once is not None and until >= self._at_once:
            return to_datetime(self._at_once)
        return None

    def count_between(self, first: datetime, last: datetime) -> int:
        """How many scheduled times lie in [first, last]."""
        low, high = ceil_second(first), floor_second(last)
        total = int(self._at_once is not None and low <= self._at_once <= high)
        low, high = max(low, self._first), min(high, self._last)
        return total + (self._points.count(low, high) if low <= high else 0)

    def window(self, scheduled: datetime) -> tuple[datetime, datetime] | None:
        """Start and end of a sliding window (W1), end excluded; None for other triggers."""
        if self._delay is None:
            return None
        start = ceil_second(scheduled)
        end = self._points.first_from(start + 1)
        return (to_datetime(start), to_datetime(end)) if end <= LAST_INSTANT else None

    def due(self, scheduled: datetime) -> datetime:
        """When it should start: a window's start plus delay, not before creation (W3); else `scheduled`."""
        instant = ceil_second(scheduled)
        if self._delay is not None:
            instant = max(self._created, min(instant + self._delay, LAST_INSTANT))
        return to_datetime(instant)

    def offset(self, scheduled: datetime) -> int:
        """By how many seconds the clocks that `scheduled` is reckoned by are ahead of UTC."""
        if self._rule is None or ceil_second(scheduled) == self._at_once:
            return 0
        return self._points.offset(self._rule.zone, ceil_second(scheduled))

    def again(self, scheduled: datetime, offset: int | None) -> datetime | None:
        """What other time zone data put at `scheduled`, by that `offset`; None if nothing is left (L8).

        Of which the offset is not known, the nearest.
        """
        instant = ceil_second(scheduled)
        if self._rule is None or instant == self._at_once:
            return self.at_or_after(scheduled)
        if offset is not None:
            return self._first_from(self._points.moved(self._rule.zone, instant, offset))
        near = [point for point in (self.last_until(scheduled), self.at_or_after(scheduled)) if point]
        return min(near, key=lambda point: abs(point - scheduled), default=None)

    def local(self, scheduled: datetime) -> datetime:
        """The same instant in the schedule's zone, for display; in UTC if it has none or a Z overrides it."""
        return scheduled.astimezone(zone_info(self._rule.zone.key) if self._rule else UTC)

    def note(self, scheduled: datetime) -> str | None:
        """A remark if a gap moved this occurrence or if the clocks show its wall time twice (D1, D2)."""
        return note_on(self._points, ceil_second(scheduled))

    def same_as(self, other: "Schedule") -> bool:
        """Whether both mean the same scheduled times, however they are written (L4)."""
        return self._meaning() == other._meaning()

    def _meaning(self) -> tuple[object, ...]:
        return (self._points, self._first, self._last, self._at_once, self._delay, self.count)

    def least_gap(self) -> tuple[timedelta, str] | None:
        """The shortest time from one scheduled time to the next, and the property of the recurrence that brings
        two so near; None where there are no two."""
        first = self._first_from(self._first)
        if self._rule is None or self.count == 1 or first is None or self.after(first) is None:
            return None
        seconds, path = self._rule.least_gap()
        return timedelta(seconds=seconds), path

    def describe(self) -> str:
        """The schedule in plain English."""
        if self._rule is None:
            return describe_once(self._first)
        return describe_rule(self._rule, self._points, self._delay)

    def _first_from(self, instant: int) -> datetime | None:
        if instant < self._first:
            if self._at_once is not None and instant <= self._at_once:
                return to_datetime(self._at_once)
            instant = self._first
        found = self._points.first_from(instant)
        return EPOCH + timedelta(0, found) if found <= self._last else None
