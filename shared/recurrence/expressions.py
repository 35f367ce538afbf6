"""The expressions a recurrence may hold: references to the job's parameters, nothing else (X1).

A whole string `@parameters('name')` becomes the parameter's value with its type; `@{parameters('name')}`
inside a text becomes text; `@@` at the start stands for a plain `@`, and so does `@@{` for `@{` within.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from shared.errors import MAX_TOLD, Fault
from shared.expressions import Budget, Enough, Function, Overspent, Refused, UnknownArgument, render, shortened

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

    The value itself is left as it is; what holds no expression comes back equal. What has more expressions than a
    schedule has use for, or larger values, is at fault as a whole.
    """
    functions = {"parameters": Function(arguments=parameters, call=parameters.__getitem__)}
    result = Evaluation()
    budget = Budget(steps=1000, characters=64 * 1024)

    def rendered(text: str) -> Any:
        return render(text, functions, budget, _JSON)

    try:
        result.value = _walk(value, rendered, path, result)
    except Overspent as overspent:
        result.fail(path, Fault(path, str(overspent)))
    except Enough:
        result.failed.append(path)
    return result


def _walk(value: Any, rendered: Callable[[str], Any], path: str, result: Evaluation, listed: bool = False) -> Any:
    """`listed`: within a list, where whatever fails does so at the list's own path."""
    if isinstance(value, str):
        return _text(value, rendered, path, result)
    if isinstance(value, dict):
        return {k: _walk(v, rendered, path if listed else f"{path}.{k}", result, listed) for k, v in value.items()}
    if isinstance(value, list):
        return [_walk(item, rendered, path, result, listed=True) for item in value]
    return value


def _text(text: str, rendered: Callable[[str], Any], path: str, result: Evaluation) -> Any:
    if "@" not in text:
        return text
    try:
        return rendered(text)
    except Overspent:
        raise
    except UnknownArgument as unknown:
        result.fail(path, Fault("parameters", f"there is no parameter '{shortened(unknown.argument)}'"))
    except Refused as refused:
        result.fail(path, Fault(path, str(refused)))
    if len(result.faults) == MAX_TOLD:
        raise Enough
    return None
