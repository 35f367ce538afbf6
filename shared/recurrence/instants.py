"""Instants as whole seconds since 1970-01-01T00:00:00Z, and the texts that mean times and durations."""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import isodate
from dateutil.relativedelta import relativedelta

DAY = 86_400
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_INSTANT = 253_402_300_799
"""9999-12-31T23:59:59Z, the last second a `datetime` can say."""
NEVER = 1 << 60
"""Later than any instant; `-NEVER` is earlier than any."""

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,7}))?)?(Z?)", re.ASCII)
_OFFSET = re.compile(r".*T.*[+-]\d\d(:?\d\d)?", re.ASCII)
_DURATION = re.compile(
    r"P(?:\d+W|(?=\d|T\d)(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)",
    re.ASCII,
)
_LONGEST_AHEAD = 49  # years, Z6


def floor_second(instant: datetime) -> int:
    """The last whole second at or before `instant`."""
    since = instant - EPOCH
    return since.days * DAY + since.seconds


def ceil_second(instant: datetime) -> int:
    """The first whole second at or after `instant`."""
    since = instant - EPOCH
    return since.days * DAY + since.seconds + (since.microseconds > 0)


def to_datetime(instant: int) -> datetime:
    return EPOCH + timedelta(0, instant)


def latest_start(created: int) -> int:
    """49 calendar years after `created` (Z6); 29 February becomes the 28th."""
    start = to_datetime(created)
    return floor_second(start + relativedelta(year=min(start.year + _LONGEST_AHEAD, 9999)))


class WrittenTime(NamedTuple):
    """A time as written: a wall reading in whole seconds, whether a fraction follows, whether Z does."""

    wall: int
    fraction: bool
    utc: bool

    @property
    def rounded_up(self) -> int:
        return self.wall + self.fraction


def parse_time(text: str) -> WrittenTime:
    """Read `YYYY-MM-DDThh:mm[:ss[.f]][Z]` (Z1 to Z5); ValueError says what is wrong with it."""
    match = _TIME.fullmatch(text)
    if match is None:
        if _OFFSET.fullmatch(text):
            raise ValueError("an offset is not accepted; end it with Z, or leave Z out and give a timeZone")
        raise ValueError("must look like 2026-01-31T08:30:00Z, or without Z beside a timeZone")
    minute, second, fraction, zulu = match.groups()
    try:
        wall = datetime.fromisoformat(f"{minute}:{second or '00'}+00:00")
    except ValueError:
        raise ValueError("there is no such date or time of day") from None
    if wall.year < EPOCH.year:
        raise ValueError("years before 1970 are not accepted")
    return WrittenTime(floor_second(wall), bool(fraction and int(fraction)), bool(zulu))


def parse_duration(text: str) -> timedelta:
    """Read an ISO 8601 duration in whole weeks, or whole days, hours, minutes, seconds (W4).

    ValueError says what is wrong; years, months, fractions and signs are.
    """
    if not _DURATION.fullmatch(text):
        raise ValueError("must be an ISO 8601 duration of whole weeks, days, hours, minutes or seconds: PT5M")
    try:
        duration: timedelta = isodate.parse_duration(text)
    except (OverflowError, ValueError):
        raise ValueError("is too long a time") from None
    return duration
