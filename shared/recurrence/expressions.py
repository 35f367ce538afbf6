"""The expressions a recurrence may hold: references to the job's parameters, nothing else (X1).

A whole string `@parameters('name')` becomes the parameter's value with its type; `@{parameters('name')}`
inside a text becomes text; `@@` at the start stands for a plain `@`, and so does `@@{` for `@{` within.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from shared.errors import Fault
from shared.expressions import Function, Refused, UnknownArgument, render, shortened

_JSON = partial(json.dumps, ensure_ascii=False)


@dataclass(slots=True)
class Evaluation:
    """What became of a value: `value` with each failed string replaced by None, what failed, and where.

    A fault about a parameter has the path `parameters`; `failed` holds the paths of the strings themselves.
    """

    value: Any = None
    faults: list[Fault] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def fail(self, path: str, fault: Fault) -> None:
        self.faults.append(fault)
        self.failed.append(path)


def evaluate(value: Any, parameters: Mapping[str, Any], path: str) -> Evaluation:
    """Replace the expressions in a JSON value; paths in faults start at `path` and stop at a list.

    The value itself is left as it is; what holds no expression comes back equal.
    """
    functions = {"parameters": Function(arguments=parameters, call=parameters.__getitem__)}
    result = Evaluation()
    result.value = _walk(value, functions, path, result)
    return result


def _walk(
    value: Any, functions: Mapping[str, Function], path: str, result: Evaluation, listed: bool = False
) -> Any:
    """`listed`: within a list, where whatever fails does so at the list's own path."""
    if isinstance(value, str):
        return _text(value, functions, path, result)
    if isinstance(value, Mapping):
        return {
            k: _walk(v, functions, path if listed else f"{path}.{k}", result, listed) for k, v in value.items()
        }
    if isinstance(value, list):
        return [_walk(item, functions, path, result, listed=True) for item in value]
    return value


def _text(text: str, functions: Mapping[str, Function], path: str, result: Evaluation) -> Any:
    if "@" not in text:
        return text
    try:
        return render(text, functions, _JSON)
    except UnknownArgument as unknown:
        result.fail(path, Fault("parameters", f"there is no parameter '{shortened(unknown.argument)}'"))
    except Refused as refused:
        result.fail(path, Fault(path, str(refused)))
    return None
