"""Puts a raw recurrence into its model, keeping what is right of one that is partly wrong."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from shared.recurrence.models import Recurrence, RecurrenceSchedule, names_of

_STAND_INS = {"frequency": "Day", "interval": 1}
_REASONS = {
    "extra_forbidden": "there is no such property (names are case-sensitive)",
    "missing": "is required",
    "model_type": "must be an object",
    "tuple_type": "must be a list",
    "string_type": "must be text",
    "too_short": "must not be empty",
}
UNKNOWN_NAME = _REASONS["extra_forbidden"]


def shape(raw: Mapping[str, Any]) -> tuple[Recurrence, dict[str, str]]:
    """The model, and what is wrong with properties taken by themselves: path (`schedule.hours`) to reason.

    A property at fault is absent from the model, or has a stand-in if it is required: whoever reads it must
    look first whether it is at fault.
    """
    try:
        return Recurrence.model_validate(raw), {}
    except ValidationError as error:
        faults = _by_path(error)
    return Recurrence.model_validate(_STAND_INS | _without(raw, faults)), faults


def _by_path(error: ValidationError) -> dict[str, str]:
    faults: dict[str, str] = {}
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        reason = _REASONS.get(detail["type"]) or detail["msg"].replace("Input should", "must")
        faults.setdefault(_path(detail["loc"]), reason)
    return faults


def _path(location: tuple[int | str, ...]) -> str:
    """Names down to the first list: what is wrong within a list is told of the list."""
    names = []
    for step in location:
        if isinstance(step, int):
            break
        names.append(step)
    return ".".join(names)


def _without(raw: Mapping[str, Any], faults: Mapping[str, str]) -> dict[str, Any]:
    sound = {name: raw[name] for name in names_of(Recurrence) & raw.keys() if name not in faults}
    schedule = sound.get("schedule")
    if isinstance(schedule, Mapping):
        names = names_of(RecurrenceSchedule) & schedule.keys()
        sound["schedule"] = {name: schedule[name] for name in names if f"schedule.{name}" not in faults}
    return sound
