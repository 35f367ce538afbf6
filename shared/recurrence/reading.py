"""Reads a recurrence: all that can be wrong with it, in the order of V13, and the rule it means."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from shared.errors import Fault, InvalidInput
from shared.recurrence.instants import LAST_INSTANT, WrittenTime, latest_start, parse_time
from shared.recurrence.models import RecurrenceSchedule
from shared.recurrence.rules import Rule
from shared.recurrence.shapes import UNKNOWN_NAME, shape
from shared.recurrence.zones import Zone, load_zone, resolve_name

LONGEST = {"Second": 9_999_999, "Minute": 72_000, "Hour": 12_000, "Day": 500, "Week": 71, "Month": 16}  # V3
_ON_DAYS = ("Day", "Week", "Month")
USABLE_WITH = {  # V5 to V8
    "hours": _ON_DAYS,
    "minutes": _ON_DAYS,
    "weekDays": ("Week",),
    "monthDays": ("Month",),
    "monthlyOccurrences": ("Month",),
}
_UTC = "UTC"


class _NamedZone(NamedTuple):
    name: str  # as properly written
    zone: Zone


def read_recurrence(
    raw: Mapping[str, Any], created: int, *, sliding: bool, failed: frozenset[str] = frozenset()
) -> tuple[Rule | None, list[Fault]]:
    """The rule, and what is wrong, with paths relative to the recurrence. Without faults there is a rule.

    `raw` is free of expressions; `failed` holds the paths whose expression failed, of which nothing is said.
    `created` is C, in seconds.
    """
    reader = _Reader(raw, created, failed)
    rule = reader.read(sliding)
    return rule, reader.faults


class _Reader:
    """One method for each step of V13; `read` calls them in that order.

    `_alone` holds what is wrong with properties taken by themselves, until their turn to be told comes.
    """

    def __init__(self, raw: Mapping[str, Any], created: int, failed: frozenset[str]) -> None:
        self._model, self._alone = shape(raw)
        self._raw, self._created, self._failed = raw, created, failed
        self.faults: list[Fault] = []

    def read(self, sliding: bool) -> Rule | None:
        self._unknown_names()
        self._frequency_and_interval()
        named = self._time_zone()
        written, start = self._start_time(named)
        schedule = self._schedule(sliding)
        end = self._end_time(named, start)
        self._is_right("count")
        if not self._sound("frequency", "interval", "timeZone", "startTime", "schedule"):
            return None
        if named is None or (written and written.utc):  # Z1, Z8
            named = _NamedZone(_UTC, load_zone(_UTC))
        return Rule(
            frequency=self._model.frequency,
            interval=self._model.interval,
            zone=named.zone,
            zone_name=named.name,
            anchor=written.rounded_up if written else named.zone.wall_of(self._created),
            start=start,
            schedule=schedule,
            end=end,
            count=self._model.count,
        )

    def _unknown_names(self) -> None:
        for path, reason in self._alone.items():
            if reason == UNKNOWN_NAME and path != "schedule.monthlyOccurrences":
                self._fault(path, reason)

    def _frequency_and_interval(self) -> None:
        frequency, interval = self._model.frequency, self._model.interval
        if self._is_right("frequency") & self._is_right("interval") and interval > LONGEST[frequency]:
            self._fault("interval", f"must be 1 to {LONGEST[frequency]} with frequency {frequency}")

    def _time_zone(self) -> _NamedZone | None:
        name = self._model.time_zone
        if not self._is_right("timeZone") or name is None:
            return None
        try:
            canonical, key = resolve_name(name)
        except InvalidInput as unknown:
            self.faults += unknown.faults
            return None
        return _NamedZone(canonical, load_zone(key))

    def _start_time(self, named: _NamedZone | None) -> tuple[WrittenTime | None, int | None]:
        written = self._written("startTime", self._model.start_time, named)
        start = written and self._instant(written, written.rounded_up, named)
        if start is not None and start > latest_start(self._created):
            self._fault("startTime", "must be at most 49 years ahead")  # Z6
        return written, start

    def _refuse_schedule(self) -> None:
        """A sliding window has none (V11); what else may be wrong with it does not matter."""
        schedule = self._raw.get("schedule")
        if not isinstance(schedule, Mapping):
            self._is_right("schedule")
        elif any(schedule.get(name) is not None for name in USABLE_WITH):
            self._fault("schedule", "a sliding window cannot have one")

    def _schedule(self, sliding: bool) -> RecurrenceSchedule | None:
        if sliding:
            self._refuse_schedule()
            return None
        if not self._is_right("schedule") or self._model.schedule is None:
            return None
        given = self._raw["schedule"]
        present = [name for name in USABLE_WITH if given.get(name) is not None]
        for name in present:
            self._usable(name)
        both = {"monthDays", "monthlyOccurrences"}
        if both.issubset(present) and self._sound(*(f"schedule.{name}" for name in both)):
            self._fault("schedule.monthlyOccurrences", "cannot stand beside monthDays")  # V9
        return self._model.schedule

    def _usable(self, name: str) -> None:
        path, frequency = f"schedule.{name}", self._model.frequency
        if self._is_right(path) and self._sound("frequency") and frequency not in USABLE_WITH[name]:
            usable = ", ".join(USABLE_WITH[name])
            self._fault(path, f"cannot be used with frequency {frequency}, only with {usable}")

    def _end_time(self, named: _NamedZone | None, start: int | None) -> int | None:
        written = self._written("endTime", self._model.end_time, named)
        end = written and self._instant(written, written.wall, named)
        if end is None:
            return None
        if end < self._created:
            self._fault("endTime", "is already past")
        elif start is not None and end < start:
            self._fault("endTime", "is before startTime")
        return end

    def _written(self, path: str, text: str | None, named: _NamedZone | None) -> WrittenTime | None:
        if not self._is_right(path) or text is None:
            return None
        try:
            written = parse_time(text)
        except ValueError as wrong:
            self._fault(path, str(wrong))
            return None
        if not written.utc and named is None and self._sound("timeZone"):
            self._fault(path, "must end with Z, or a timeZone must be given")  # Z3
        return written

    def _instant(self, written: WrittenTime, wall: int, named: _NamedZone | None) -> int | None:
        """The instant of a time as written; None while the zone that it needs is not known."""
        if written.utc:
            return wall
        return min(named.zone.instant_of(wall), LAST_INSTANT) if named else None

    def _fault(self, path: str, reason: str) -> None:
        self.faults.append(Fault(path, reason))

    def _is_right(self, path: str) -> bool:
        """Whether the property by itself is; if not, it is told now."""
        wrong = path in self._alone
        if wrong and path not in self._failed:
            self._fault(path, self._alone[path])
        return not wrong

    def _sound(self, *wanted: str) -> bool:
        """Whether nothing is wrong with these properties or within them, so that a check may build on them."""
        bad = {*self._alone, *self._failed, *(fault.field for fault in self.faults)}
        return not any(path == name or path.startswith(f"{name}.") for path in bad for name in wanted)
