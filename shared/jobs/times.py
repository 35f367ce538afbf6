"""Instants and durations as text.

An instant is an aware `datetime` in UTC. Three texts are used: in row keys, whole seconds
(`20260908T130000Z`); in row properties, microseconds of fixed width, so that text order is time order;
in JSON, ISO 8601 with milliseconds only where there are any.
"""

from datetime import UTC, datetime, timedelta

import isodate

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def floor_second(instant: datetime) -> datetime:
    """The whole second at or before `instant`."""
    return instant.replace(microsecond=0)


def ceil_second(instant: datetime) -> datetime:
    """The whole second at or after `instant`."""
    return floor_second(instant) if instant.microsecond == 0 else floor_second(instant) + SECOND


def key_text(instant: datetime) -> str:
    """`20260908T130000Z`: a whole second, for row keys and stamps."""
    return instant.strftime("%Y%m%dT%H%M%SZ")


def from_key_text(text: str) -> datetime:
    """The instant of a `key_text`. Raises ValueError for any other text."""
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def row_text(instant: datetime) -> str:
    """`2026-09-08T13:00:00.000000Z`: fixed width, for row properties."""
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_row_text(text: str) -> datetime:
    """The instant of a `row_text`. Raises ValueError for any other text."""
    return datetime.fromisoformat(text)


def json_text(instant: datetime) -> str:
    """`2026-09-08T13:00:00Z` or `…00.123Z`, for answers and headers (truncated to milliseconds)."""
    spec = "milliseconds" if instant.microsecond // 1000 else "seconds"
    return instant.isoformat(timespec=spec).replace("+00:00", "Z")


def duration_text(duration: timedelta) -> str:
    """The ISO 8601 text of a duration."""
    return str(isodate.duration_isoformat(duration)) if duration else "PT0S"
