"""What the calendar's tests share."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from shared.recurrence import Schedule, compile_trigger

LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
SHAPE = "%Y-%m-%dT%H:%M:%SZ"


def at(text: str) -> datetime:
    """An instant as written, ending in Z."""
    return datetime.fromisoformat(text)


def compiled(
    recurrence: object,
    created: str,
    *,
    kind: str = "Recurrence",
    parameters: dict[str, Any] | None = None,
    **trigger: Any,
) -> Schedule:
    return compile_trigger({"type": kind, "recurrence": recurrence, **trigger}, at(created), parameters)


def occurrences(schedule: Schedule, since: datetime = LONG_AGO) -> Iterator[datetime]:
    """All scheduled times from `since` on, by the public interface."""
    instant = schedule.at_or_after(since)
    while instant is not None:
        yield instant
        instant = schedule.after(instant)


def first(schedule: Schedule, wanted: int, since: datetime = LONG_AGO) -> list[str]:
    """The first scheduled times as texts; `count` (N2) applied as a dispatcher would."""
    if schedule.count is not None:
        wanted = min(wanted, schedule.count)
    return [f"{instant:{SHAPE}}" for instant in islice(occurrences(schedule, since), wanted)]
