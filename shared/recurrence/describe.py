"""What a schedule says of itself, in plain English."""

from bisect import bisect_right
from collections.abc import Iterable

from shared.recurrence.days import MonthDays, Monthly, Weekly
from shared.recurrence.instants import DAY, LAST_INSTANT, to_datetime
from shared.recurrence.points import Calendar, Points
from shared.recurrence.rules import WEEKDAYS, Rule

_LISTED_TIMES = 6
_SUFFIXES = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
_UNITS = ((DAY, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def describe_once(instant: int) -> str:
    return f"Once at {_moment(instant)}, UTC"


def describe_rule(rule: Rule, points: Points, delay: int | None) -> str:
    """For example: Every 2 weeks on Monday at 08:30 and 16:30, Pacific Standard Time.

    `delay`, in seconds, is that of a sliding window; None for a recurrence.
    """
    text = f"{'Every' if delay is None else 'A window every'} {_period(rule.interval, rule.frequency)}"
    if isinstance(points, Calendar):
        text += f"{_on_days(points)} at {_at_times(points.times)}"
    parts = [text]
    if delay:
        parts.append(f"each due {_duration(delay)} after its start")
    if rule.start is not None:
        parts.append(f"from {_moment(rule.zone.wall_of(rule.start))}")
    if rule.end is not None:
        parts.append(f"until {_moment(rule.zone.wall_of(rule.end))}")
    if rule.count is not None:
        parts.append(f"at most {_number_of(rule.count, 'run')}")
    if isinstance(points, Calendar) or rule.start is not None or rule.end is not None:
        parts.append(rule.zone_name)
    return ", ".join(parts)


def note_on(points: Points, instant: int) -> str | None:
    """A remark on a calendar point that a gap moved, or whose wall reading comes twice (D1, D2)."""
    if not isinstance(points, Calendar):
        return None
    zone = points.zone.reaching(instant)
    stretch = bisect_right(zone.changes, instant)
    shown = instant + zone.offsets[stretch]
    if stretch and instant < zone.ends[stretch - 1]:
        meant = instant + zone.offsets[stretch - 1]
        if points.holds(meant):
            return f"the clocks skip {_clock(meant)} on {_date(meant)}; runs at {_clock(shown)} instead"
    repeats = stretch < len(zone.changes) and shown >= zone.changes[stretch] + zone.offsets[stretch + 1]
    if repeats and points.holds(shown):
        return f"the clocks show {_clock(shown)} twice on {_date(shown)}; runs the first time only"
    return None


def _on_days(points: Calendar) -> str:
    if isinstance(points.days, Weekly):
        return f" on {_and(WEEKDAYS[day] for day in points.days.weekdays)}"
    if isinstance(points.days, Monthly):
        return f" on {_month_days(points.days.rule)}"
    return ""


def _month_days(rule: MonthDays) -> str:
    if rule.clamped > 28:
        return f"day {rule.clamped} (or the last day of a shorter month)"
    if rule.clamped:
        return f"day {rule.clamped}"
    if rule.occurrences:
        return _and(f"{_nth(nth)} {WEEKDAYS[day]}" for day, nth in rule.occurrences)
    from_end = [f"{_nth(number)} day" for number in rule.numbers if number < 0]
    return _and([f"day {number}" for number in rule.numbers if number > 0] + from_end)


def _nth(number: int) -> str:
    if number == 0:
        return "every"
    ordinal = f"{abs(number)}{_SUFFIXES.get(abs(number), 'th')}"
    if number > 0:
        return f"the {ordinal}"
    return "the last" if number == -1 else f"the {ordinal} to last"


def _at_times(times: tuple[int, ...]) -> str:
    if len(times) <= _LISTED_TIMES:
        return _and(map(_clock, times))
    hours = sorted({time // 3600 for time in times})
    within_hour = _and(_clock(time)[2:] for time in times[: len(times) // len(hours)])
    return f"{within_hour} past the hours {_ranges(hours)}"


def _ranges(numbers: list[int]) -> str:
    """0, 1, 2, 5 as 0-2 and 5."""
    starts = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    return _and(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def _period(interval: int, frequency: str) -> str:
    unit = frequency.lower()
    return unit if interval == 1 else f"{interval} {unit}s"


def _number_of(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def _duration(seconds: int) -> str:
    texts = []
    for size, unit in _UNITS:
        number, seconds = divmod(seconds, size)
        if number:
            texts.append(_number_of(number, unit))
    return _and(texts)


def _and(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _clock(time: int) -> str:
    minutes, seconds = divmod(time % DAY, 60)
    text = f"{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{seconds:02}" if seconds else text


def _date(wall: int) -> str:
    return f"{to_datetime(wall):%Y-%m-%d}"


def _moment(wall: int) -> str:
    wall = min(wall, LAST_INSTANT)
    return f"{_date(wall)} {_clock(wall)}"
