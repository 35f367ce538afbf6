"""Reads the offset changes of a zone out of its TZif data (RFC 9636), as plain numbers."""

import re
import struct
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from shared.recurrence.instants import DAY, EPOCH

_EPOCH_ORDINAL = EPOCH.toordinal()
_HEADER = struct.Struct(">20x6l")
_NAME = r"(?:[A-Za-z]+|<[^>]+>)"
_CLOCK = r"[+-]?\d+(?::\d\d){0,2}"
_FOOTER = re.compile(rf"{_NAME}({_CLOCK})(?:{_NAME}({_CLOCK})?,([^,]+),([^,]+))?")


class Changes(NamedTuple):
    """`offsets[0]` holds before `instants[0]`, `offsets[i + 1]` from `instants[i]` on. Seconds east of UTC.

    `cut`: more changes come after the last one here.
    """

    instants: list[int]
    offsets: list[int]
    cut: bool


def read_changes(data: bytes, last_year: int) -> Changes:
    """All changes in `data`, some of them of the name only; those of its closing rule up to `last_year`."""
    instants, offsets, footer = _explicit(data)
    base, daylight = _closing_rule(footer)
    if not instants and daylight is None:
        offsets = [base]
    if daylight is not None:
        first_year = 1970 if not instants else date.fromordinal(instants[-1] // DAY + _EPOCH_ORDINAL).year
        for instant, offset in _ruled(base, daylight, first_year, last_year):
            if not instants or instant > instants[-1]:
                instants.append(instant)
                offsets.append(offset)
    return Changes(instants, offsets, cut=daylight is not None)


def _explicit(data: bytes) -> tuple[list[int], list[int], str]:
    """The 64-bit block: instants of change, offsets (one more, the first for before them), closing rule."""
    isut, isstd, leap, times, types, chars = _HEADER.unpack_from(data)
    start = _HEADER.size + times * 5 + types * 6 + chars + leap * 8 + isstd + isut
    isut, isstd, leap, times, types, chars = _HEADER.unpack_from(data, start)
    start += _HEADER.size
    instants = list(struct.unpack_from(f">{times}q", data, start))
    start += times * 8
    kinds = data[start : start + times]
    start += times
    by_kind = [struct.unpack_from(">l", data, start + 6 * kind)[0] for kind in range(types)]
    start += types * 6 + chars + leap * 12 + isstd + isut
    return instants, [by_kind[0], *(by_kind[kind] for kind in kinds)], data[start:].decode().strip("\n")


class _Daylight(NamedTuple):
    offset: int
    begins: str
    ends: str


def _closing_rule(footer: str) -> tuple[int, _Daylight | None]:
    """The POSIX TZ text that holds after the last explicit change: base offset, and yearly change if any."""
    match = _FOOTER.fullmatch(footer)
    if match is None:
        raise ValueError(f"not a POSIX TZ rule: {footer!r}")
    base_text, daylight_text, begins, ends = match.groups()
    base = -_seconds(base_text)
    if begins is None:
        return base, None
    offset = -_seconds(daylight_text) if daylight_text else base + 3600
    return base, _Daylight(offset, begins, ends)


def _ruled(base: int, daylight: _Daylight, first_year: int, last_year: int) -> Iterator[tuple[int, int]]:
    for year in range(first_year, last_year + 1):
        # The instants are UTC, the rule's clock readings are in the offset that is about to end.
        begins = _rule_wall(daylight.begins, year) - base, daylight.offset
        ends = _rule_wall(daylight.ends, year) - daylight.offset, base
        yield from sorted((begins, ends))


def _rule_wall(rule: str, year: int) -> int:
    """The wall reading, in seconds, that a rule such as `M3.2.0/2:30`, `J60` or `59` names in `year`."""
    day, _, clock = rule.partition("/")
    return _rule_day(day, year) * DAY + (_seconds(clock) if clock else 7200)


def _rule_day(rule: str, year: int) -> int:
    january_first = date(year, 1, 1).toordinal() - _EPOCH_ORDINAL
    if rule[0] == "M":
        month, week, weekday = map(int, rule[1:].split("."))
        first = date(year, month, 1).toordinal()
        day = first + (weekday - first) % 7 + 7 * (week - 1)  # ordinal 0 is a Sunday, as weekday 0 is
        if date.fromordinal(day).month != month:  # week 5 means the last one
            day -= 7
        return day - _EPOCH_ORDINAL
    if rule[0] == "J":  # 1 to 365, 29 February never counted
        counted = int(rule[1:])
        leap_day = counted >= 60 and date(year, 12, 31).timetuple().tm_yday == 366
        return january_first + counted - 1 + leap_day
    return january_first + int(rule)


def _seconds(clock: str) -> int:
    sign = -1 if clock.startswith("-") else 1
    parts = [int(part) for part in clock.lstrip("+-").split(":")]
    hours, minutes, seconds = [*parts, 0, 0][:3]
    return sign * (hours * 3600 + minutes * 60 + seconds)
