"""What the calendar's tests share."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest

from shared.errors import InvalidInput
from shared.recurrence import Schedule, compile_trigger

LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
FAULTS_CREATED = "2024-05-01T00:00:00Z"
FAULTS_START = "2024-05-02T08:00:00Z"
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


def faults(trigger: dict[str, Any], parameters: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as refused:
        compile_trigger({"type": "Recurrence"} | trigger, at(FAULTS_CREATED), parameters)
    return [(fault.field, fault.reason) for fault in refused.value.faults]


def fields(trigger: dict[str, Any], parameters: dict[str, Any] | None = None) -> list[str]:
    return [field for field, _ in faults(trigger, parameters)]


def recurrence_fields(**changed: Any) -> list[str]:
    """Fields at fault in a daily recurrence with these properties, without `recurrence.` before them."""
    found = fields({"recurrence": {"frequency": "Day", "interval": 1} | changed})
    return [field.removeprefix("recurrence.") for field in found]


def schedule_fields(frequency: str = "Day", /, **schedule: Any) -> list[str]:
    return recurrence_fields(frequency=frequency, startTime=FAULTS_START, schedule=schedule)
