"""The calendar: which instants a trigger means. Pure: no clock, no I/O but the zone data of `tzdata`."""

from shared.recurrence.compiling import compile_trigger
from shared.recurrence.expressions import evaluate
from shared.recurrence.instants import parse_duration
from shared.recurrence.models import MonthlyOccurrence, Recurrence, RecurrenceSchedule
from shared.recurrence.schedule import Schedule
from shared.recurrence.zones import TZDATA_VERSION, resolve_zone

__all__ = [
    "TZDATA_VERSION",
    "MonthlyOccurrence",
    "Recurrence",
    "RecurrenceSchedule",
    "Schedule",
    "compile_trigger",
    "evaluate",
    "parse_duration",
    "resolve_zone",
]
