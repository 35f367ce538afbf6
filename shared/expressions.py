"""The expressions of the workflow definition language, as far as this app knows them.

A string that is wholly `@call` becomes the call's value with its type. `@{call}` inside a text becomes text:
nothing for null, compact JSON for what is not text. `@@` at the start of a string stands for a plain `@`,
`@@{` within for `@{`. A call is `name()` or `name('text')`, `''` standing for `'`, followed by accessors `.name`,
`['name']` and, null where there is no such member, `?.name`, `?['name']`. White space may stand between tokens.
Keys of objects hold no expressions. Which functions there are, the caller says.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from shared.errors import Fault, InvalidInput

Path = tuple[str, ...]

_NAME = r"([A-Za-z_]\w*)"
_TEXT = r"'((?:[^']|'')*)'"
_FUNCTION = re.compile(rf"\s*{_NAME}\s*\(\s*")
_ARGUMENT = re.compile(rf"(?:{_TEXT}\s*)?\)\s*")
_ACCESSOR = re.compile(rf"(\?)?\s*(?:\.\s*{_NAME}|\[\s*{_TEXT}\s*\])\s*")
_PIECE = re.compile(r"@@\{|@\{((?:[^'}]|'[^']*')*)\}|@\{")
_compact = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """How a function may be used.

    `arguments`: the texts it takes; None: it takes no argument. `paths`: the accessors that may follow it, `()`
    for none; None: any. `note` is added to what is said of a path that may not follow it.
    """

    arguments: Collection[str] | None = None
    paths: Collection[Path] | None = ((),)
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function(Signature):
    """A function that can be called: `call` is given the argument, if it takes one."""

    call: Callable[..., Any] = field(repr=False)


class Whole(NamedTuple):
    """What a function gives that is `value` where nothing follows it, while accessors see `properties`."""

    value: Any
    properties: Mapping[str, Any]


class Accessor(NamedTuple):
    """`.name`, or `?.name` if optional."""

    name: str
    optional: bool


class Call(NamedTuple):
    """A call that has been read and is allowed; `argument` is None if it takes none."""

    function: str
    argument: str | None
    accessors: tuple[Accessor, ...]

    def __str__(self) -> str:
        return _call_text(self.function, self.argument, tuple(a.name for a in self.accessors))


class Refused(ValueError):
    """A string holds an expression that cannot be used, or has no value; str() is the reason."""


class UnknownArgument(Refused):
    """A function is called with an argument that it does not take."""

    def __init__(self, function: str, argument: str) -> None:
        self.argument = argument
        super().__init__(f"{_call_text(function, argument)} does not exist")


def check(value: Any, signatures: Mapping[str, Signature], path: str) -> list[Fault]:
    """What is wrong with the expressions in a JSON value that stands at `path`: at most one fault a string."""
    faults: list[Fault] = []
    _replace(value, path, lambda text: parse(text, signatures), faults)
    return faults


def evaluate(value: Any, functions: Mapping[str, Function], path: str) -> Any:
    """A JSON value with its expressions replaced; the value itself is left as it is.

    What a function gives is not evaluated again. Raises InvalidInput with all faults, paths starting at `path`.
    """
    faults: list[Fault] = []
    result = _replace(value, path, lambda text: render(text, functions), faults)
    if faults:
        raise InvalidInput(faults)
    return result


def render(text: str, functions: Mapping[str, Function], dumps: Callable[[Any], str] = _compact) -> Any:
    """What one string stands for; `dumps` writes, within a text, what is not text. Raises Refused."""
    parsed = parse(text, functions)
    if isinstance(parsed, Call):
        return _value(parsed, functions)
    values = (p if isinstance(p, str) else _value(p, functions) for p in parsed)
    return "".join(v if isinstance(v, str) else "" if v is None else dumps(v) for v in values)


def parse(text: str, signatures: Mapping[str, Signature]) -> Call | list[str | Call]:
    """A string that is wholly a call; or its pieces, plain texts and calls. Raises Refused."""
    if text.startswith("@") and not text.startswith(("@@", "@{")):
        return _call(text[1:], signatures)
    pieces: list[str | Call] = []
    if text.startswith("@@") and not text.startswith("@@{"):
        pieces, text = ["@"], text[2:]
    position = 0
    for match in _PIECE.finditer(text):
        pieces.append(text[position : match.start()])
        position = match.end()
        if match.group() == "@@{":
            pieces.append("@{")
        elif match.group(1) is None:
            raise Refused("'@{' is never closed; write '@@{' for the plain characters")
        else:
            pieces.append(_call(match.group(1), signatures))
    return [*pieces, text[position:]]


def step(name: str) -> str:
    """A member's name as it stands in the path of a fault."""
    return (name if len(name) <= 80 else f"{name[:80]}…") or '""'


def shortened(text: str) -> str:
    """The beginning of a text that is quoted in a reason."""
    return text if len(text) <= 60 else f"{text[:60]}…"


def _replace(value: Any, path: str, replaced: Callable[[str], Any], faults: list[Fault]) -> Any:
    """The value with each of its strings replaced; a string that is refused leaves a fault."""
    if isinstance(value, str):
        try:
            return replaced(value) if "@" in value else value
        except Refused as refused:
            faults.append(Fault(path, str(refused)))
            return None
    if isinstance(value, Mapping):
        return {k: _replace(item, f"{path}.{step(k)}", replaced, faults) for k, item in value.items()}
    if isinstance(value, list):
        return [_replace(item, f"{path}.{n}", replaced, faults) for n, item in enumerate(value)]
    return value


def _call(text: str, signatures: Mapping[str, Signature]) -> Call:
    opened = _FUNCTION.match(text)
    if not opened:
        raise Refused(f"the expression '{shortened(text)}' cannot be used here, {_only(signatures)}")
    name = opened.group(1)
    if name not in signatures:
        raise Refused(f"the function '{shortened(name)}' cannot be used here, {_only(signatures)}")
    signature = signatures[name]
    closed = _ARGUMENT.match(text, opened.end())
    if not closed or (closed.group(1) is None) is not (signature.arguments is None):
        takes = "no argument" if signature.arguments is None else "one text in single quotes"
        raise Refused(f"the function '{name}' takes {takes}: '{shortened(text)}'")
    argument = _unquoted(closed.group(1))
    if signature.arguments is not None and argument not in signature.arguments:
        raise UnknownArgument(name, argument or "")
    call = Call(name, argument, _accessors(text, closed.end()))
    if signature.paths is not None and tuple(a.name for a in call.accessors) not in signature.paths:
        raise Refused(f"'{shortened(str(call))}' cannot be used here, {_only(signatures)}{signature.note}")
    return call


def _accessors(text: str, position: int) -> tuple[Accessor, ...]:
    found = []
    while position < len(text):
        match = _ACCESSOR.match(text, position)
        if not match:
            raise Refused(
                f"the expression '{shortened(text)}' cannot be read from '{shortened(text[position:])}' on"
            )
        optional, name, quoted = match.groups()
        found.append(Accessor(name or _unquoted(quoted) or "", optional is not None))
        position = match.end()
    return tuple(found)


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


def _only(signatures: Mapping[str, Signature]) -> str:
    """What can be used, as the second half of a sentence."""
    calls = (
        _call_text(name, None if signature.arguments is None else "name", path)
        for name, signature in signatures.items()
        for path in (signature.paths or ((),))
    )
    return f"only {', '.join(calls)}; '@@' stands for a plain '@'"


def _call_text(function: str, argument: str | None, path: Path = ()) -> str:
    quoted = "" if argument is None else f"'{shortened(argument)}'"
    return f"{function}({quoted})" + "".join(f".{name}" for name in path)


def _unquoted(text: str | None) -> str | None:
    return text and text.replace("''", "'")
