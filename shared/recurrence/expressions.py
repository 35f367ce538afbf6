"""The expressions a recurrence may hold: references to the job's parameters, nothing else (X1).

A whole string `@parameters('name')` becomes the parameter's value with its type; `@{parameters('name')}`
inside a text becomes text; `@@` at the start stands for a plain `@`, and so does `@@{` for `@{` within.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.errors import Fault

_CALL = re.compile(r"\s*parameters\(\s*'((?:[^']|'')*)'\s*\)\s*")
_FUNCTION = re.compile(r"\s*([A-Za-z_]\w*)\s*\(")
_ALLOWED = "only parameters('name'); '@@' stands for a plain '@'"
_LONGEST_SHOWN = 64
_PIECE = re.compile(r"@@\{|@\{((?:[^'}]|'[^']*')*)\}|@\{")


@dataclass(slots=True)
class Evaluation:
    """What became of a value: `value` with each failed string replaced by None, what failed, and where.

    A fault about a parameter has the path `parameters`; `failed` holds the paths of the strings themselves.
    """

    value: Any = None
    faults: list[Fault] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


class _Refused(Exception):
    def __init__(self, reason: str, path: str | None = None) -> None:
        self.reason, self.path = reason, path


def evaluate(value: Any, parameters: Mapping[str, Any], path: str) -> Evaluation:
    """Replace the expressions in a JSON value; paths in faults start at `path` and stop at a list.

    The value itself is left as it is; what holds no expression comes back equal.
    """
    result = Evaluation()
    result.value = _walk(value, parameters, path, result)
    return result


def _walk(value: Any, parameters: Mapping[str, Any], path: str, result: Evaluation) -> Any:
    if isinstance(value, str):
        if "@" not in value:
            return value
        try:
            return _text(value, parameters)
        except _Refused as refused:
            result.faults.append(Fault(refused.path or path, refused.reason))
            result.failed.append(path)
            return None
    if isinstance(value, Mapping):
        return {key: _walk(item, parameters, f"{path}.{key}", result) for key, item in value.items()}
    if isinstance(value, list):
        return [_walk_item(item, parameters, path, result) for item in value]
    return value


def _walk_item(item: Any, parameters: Mapping[str, Any], path: str, result: Evaluation) -> Any:
    """An element of a list: whatever fails in it fails at the list's own path."""
    if isinstance(item, int):
        return item
    inner = evaluate(item, parameters, path)
    result.faults += [f if f.field == "parameters" else Fault(path, f.reason) for f in inner.faults]
    result.failed += [path] * len(inner.failed)
    return inner.value


def _text(text: str, parameters: Mapping[str, Any]) -> Any:
    if text.startswith("@") and not text.startswith(("@@", "@{")):
        return _call(text[1:], parameters)
    if text.startswith("@@") and not text.startswith("@@{"):
        return "@" + _interpolate(text[2:], parameters)
    return _interpolate(text, parameters)


def _interpolate(text: str, parameters: Mapping[str, Any]) -> str:
    def piece(match: re.Match[str]) -> str:
        if match.group() == "@@{":
            return "@{"
        if match.group(1) is None:
            raise _Refused("'@{' is never closed; write '@@{' for the plain characters")
        return _as_text(_call(match.group(1), parameters))

    return _PIECE.sub(piece, text)


def _call(call: str, parameters: Mapping[str, Any]) -> Any:
    match = _CALL.fullmatch(call)
    if match:
        name = match.group(1).replace("''", "'")
        if name not in parameters:
            raise _Refused(f"there is no parameter '{name[:_LONGEST_SHOWN]}'", "parameters")
        return parameters[name]
    function = _FUNCTION.match(call)
    if function and function.group(1) != "parameters":
        raise _Refused(f"the function '{function.group(1)[:_LONGEST_SHOWN]}' cannot be used here, {_ALLOWED}")
    raise _Refused(f"the expression '{call[:_LONGEST_SHOWN]}' cannot be used here, {_ALLOWED}")


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
