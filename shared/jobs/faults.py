"""What a model finds wrong with a value, as faults in plain words."""

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from shared.errors import MAX_TOLD, Fault

# What the models' own checks find; the fields in braces are the error's context.
_REASONS = {
    "missing": "is required",
    "extra_forbidden": "is not a property of this version",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be an array",
    "string_type": "must be text",
    "string_too_short": "is too short: it needs {min_length}",
    "string_too_long": "must be at most {max_length} characters long",
    "too_short": "has too few members: it needs {min_length}",
    "too_long": "has too many members: the limit is {max_length}",
    "literal_error": "must be {expected}",
    "union_tag_invalid": "must be {expected_tags}",
    "union_tag_not_found": "is required",
    "value_error": "{error}",
}
# Where a `type` decides what else there may be: while it is wrong, nothing is said of the rest.
TYPE = re.compile(r"(trigger\.|actions\.[^.]+\.(inputs\.(retryPolicy|authentication)\.)?)type")

M = TypeVar("M", bound=BaseModel)


def read_model(model: type[M], value: Any, path: str = "") -> tuple[M | None, list[Fault]]:
    """The value, which stands at `path` of the body, as a model; or what is wrong with it, up to what is told."""
    try:
        return model.model_validate(value), []
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        return None, [_fault_of(details, path) for details in found[:MAX_TOLD]]


def and_faults(told: list[Fault], later: list[Fault]) -> list[Fault]:
    """Both, without what a later check finds wrong with a field of which something has been told already."""
    fields = {fault.field for fault in told}
    return told + [fault for fault in later if fault.field not in fields]


def renamed(fault: Fault, ours: str, theirs: str) -> Fault:
    """The fault, its path beginning with `theirs` where it begins with `ours`."""
    if fault.field != ours and not fault.field.startswith(f"{ours}."):
        return fault
    return Fault(theirs + fault.field.removeprefix(ours), fault.reason)


def step_name(name: str | int) -> str:
    """A name as it stands in a field's path."""
    text = str(name) or '""'
    return text if len(text) <= 80 else f"{text[:80]}…"


def _fault_of(details: Any, path: str) -> Fault:
    location = _without_tags(details["loc"])
    if details["type"].startswith("union_tag"):
        location.append("type")
    steps = [step_name(part) for part in location if part != "[key]"]
    known = _REASONS.get(details["type"])
    reason = known.format(**details.get("ctx", {})) if known else details["msg"]
    return Fault(".".join([path, *steps] if path else steps) or "body", reason)


def _without_tags(location: Any) -> list[str | int]:
    """An error's location without the names of union members: behind an action's name and two of its inputs."""
    kept = list(location)
    if kept[:1] == ["actions"] and kept[2:3] != ["[key]"]:
        del kept[2:3]
        if kept[2:4] in (["inputs", "retryPolicy"], ["inputs", "authentication"]):
            del kept[4:5]
    return kept
