"""The clock, read once at each entry point; below that, `now` is an argument."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The present instant, aware, in UTC."""
    return datetime.now(UTC)
