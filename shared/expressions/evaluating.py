"""What expressions come to: their faults, their values, and how long these are.

An evaluation has a budget: however often a value is referred to, and however large it is, what is made of it is
bounded before it is made.
"""

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from shared.errors import MAX_TOLD, Fault, InvalidInput
from shared.expressions.parsing import Call, Function, Refused, Signature, Whole, parse, shortened

_DEEP = (str, dict, list)
_compact = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))


@dataclass(slots=True)
class Budget:
    """What is left for one evaluation: of steps, which calls and accessors are, and of the characters that values
    have as JSON, about."""

    steps: int = 10_000
    characters: int = 1024 * 1024

    def take(self, call: Call) -> None:
        """Takes off the steps of a call. Raises Overspent."""
        self.steps -= 1 + len(call.accessors)
        if self.steps < 0:
            raise Overspent("there are too many expressions, with those before it")

    def spend(self, value: Any) -> None:
        """Takes off what a call has given. Raises Overspent."""
        self.characters -= _size(value, self.characters)
        if self.characters < 0:
            raise Overspent("the values of expressions are too large, with those before it")


class Overspent(Refused):
    """The budget of the evaluation does not suffice; there is no use in going on."""


class Enough(Exception):
    """As many faults have been found as are told."""


def check(value: Any, signatures: Mapping[str, Signature], path: str) -> list[Fault]:
    """What is wrong with the expressions in a JSON value that stands at `path`: at most one fault a string, and no
    more than are told."""
    faults: list[Fault] = []
    budget = Budget()

    def parsed(text: str) -> None:
        for call in _calls(parse(text, signatures)):
            budget.take(call)

    with suppress(Enough):
        _replace(value, path, parsed, faults)
    return faults


def evaluate(value: Any, functions: Mapping[str, Function], path: str) -> Any:
    """A JSON value with its expressions replaced; the value itself is left as it is.

    What a function gives is not evaluated again. Raises InvalidInput with the faults that are told, paths starting
    at `path`; the one of a string for which the budget does not suffice is the last.
    """
    faults: list[Fault] = []
    budget = Budget()
    result = None
    with suppress(Enough):
        result = _replace(value, path, lambda text: render(text, functions, budget), faults)
    if faults:
        raise InvalidInput(faults)
    return result


def render(
    text: str, functions: Mapping[str, Function], budget: Budget, dumps: Callable[[Any], str] = _compact
) -> Any:
    """What one string stands for; `dumps` writes, within a text, what is not text. Raises Refused, Overspent where
    the budget does not suffice."""

    def spent(call: Call) -> Any:
        budget.take(call)
        value = _value(call, functions)
        budget.spend(value)
        return value

    parsed = parse(text, functions)
    if isinstance(parsed, Call):
        return spent(parsed)
    values = (p if isinstance(p, str) else spent(p) for p in parsed)
    return "".join(v if isinstance(v, str) else "" if v is None else dumps(v) for v in values)


class Lengths:
    """How long texts get by what is known of their expressions before they are evaluated.

    `known` are the functions that give what they always will. The texts have been checked.
    """

    def __init__(self, signatures: Mapping[str, Signature], known: Mapping[str, Function]) -> None:
        self._signatures = signatures
        self._known = known
        self._of_calls: dict[Call, int] = {}

    def least(self, value: Any) -> int:
        """How many characters a JSON value has at least, as it is sent."""
        if isinstance(value, str):
            if "@" not in value:
                return len(value)
            parsed = parse(value, self._signatures)
            pieces = [parsed] if isinstance(parsed, Call) else parsed
            return sum(len(piece) if isinstance(piece, str) else self._of_call(piece) for piece in pieces)
        if isinstance(value, dict):
            return sum(len(name) + self.least(item) for name, item in value.items())
        if isinstance(value, list):
            return sum(map(self.least, value))
        return 0 if value is None else _size(value, sys.maxsize)

    def _of_call(self, call: Call) -> int:
        if call.function not in self._known:
            return 0
        if call not in self._of_calls:
            try:
                value = _value(call, self._known)
            except Refused:
                value = None
            self._of_calls[call] = 0 if value is None else _size(value, sys.maxsize)
        return self._of_calls[call]


def _calls(parsed: Call | list[str | Call]) -> list[Call]:
    return [parsed] if isinstance(parsed, Call) else [piece for piece in parsed if isinstance(piece, Call)]


def step(name: str) -> str:
    """A member's name as it stands in the path of a fault."""
    return (name if len(name) <= 80 else f"{name[:80]}…") or '""'


def _replace(value: Any, path: str, replaced: Callable[[str], Any], faults: list[Fault]) -> Any:
    """The value with each of its strings replaced; a string that is refused leaves a fault."""
    if isinstance(value, str):
        try:
            return replaced(value) if "@" in value else value
        except Refused as refused:
            faults.append(Fault(path, str(refused)))
            if len(faults) == MAX_TOLD or isinstance(refused, Overspent):
                raise Enough from None
            return None
    if isinstance(value, dict):
        return {
            k: _replace(item, f"{path}.{step(k)}", replaced, faults) if item and type(item) in _DEEP else item
            for k, item in value.items()
        }
    if isinstance(value, list):
        return [
            _replace(item, f"{path}.{n}", replaced, faults) if item and type(item) in _DEEP else item
            for n, item in enumerate(value)
        ]
    return value


def _value(call: Call, functions: Mapping[str, Function]) -> Any:
    function = functions[call.function].call
    value = function() if call.argument is None else function(call.argument)
    if isinstance(value, Whole):
        value = value.properties if call.accessors else value.value
    for name, optional in call.accessors:
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif optional and (value is None or isinstance(value, Mapping)):
            value = None
        else:
            raise Refused(f"'{shortened(str(call))}' has no value: there is no '{shortened(name)}'")
    return value


def _size(value: Any, most: int) -> int:
    """How many characters a JSON value has at least when it is written; what is over `most` is not looked at."""
    size, left = 0, [value]
    while left and size <= most:
        item = left.pop()
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, dict):
            size += 1 + sum(len(name) + 4 for name in item)
            left += item.values()
        elif isinstance(item, list):
            size += 1 + len(item)
            left += item
        elif item is None or isinstance(item, bool):
            size += 4
        else:
            size += max(1, item.bit_length() * 3 // 10) if isinstance(item, int) else 3
    return size
