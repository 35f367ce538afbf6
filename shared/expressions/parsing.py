"""Reading expressions: what a string holds, and whether it may."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Path = tuple[str, ...]

DEEPEST = 100
"""Names that may follow a call: no JSON value of a request is nested as deep."""
_NAME = r"([A-Za-z_]\w*)"
_TEXT = r"'((?:[^']|'')*)'"
_FUNCTION = re.compile(rf"\s*{_NAME}\s*\(\s*")
_ARGUMENT = re.compile(rf"(?:{_TEXT}\s*)?\)\s*")
_ACCESSOR = re.compile(rf"(\?)?\s*(?:\.\s*{_NAME}|\[\s*{_TEXT}\s*\])\s*")
_PIECE = re.compile(r"@@\{|@\{((?:[^'}]|'[^']*')*)\}|@\{")


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


def parse(text: str, signatures: Mapping[str, Signature]) -> Call | list[str | Call]:
    """A string that is wholly a call; or its pieces, plain texts and calls. Raises Refused."""
    if text.startswith("@") and not text.startswith(("@@", "@{")):
        return _call(text[1:], signatures)
    pieces: list[str | Call] = []
    calls: dict[str, Call] = {}
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
            of_call = match.group(1)
            if of_call not in calls:
                calls[of_call] = _call(of_call, signatures)
            pieces.append(calls[of_call])
    return [*pieces, text[position:]]


def shortened(text: str) -> str:
    """The beginning of a text that is quoted in a reason."""
    return text if len(text) <= 60 else f"{text[:60]}…"


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
    found: list[Accessor] = []
    while position < len(text):
        if len(found) == DEEPEST:
            raise Refused(f"the expression '{shortened(text)}' goes deeper than {DEEPEST} names")
        match = _ACCESSOR.match(text, position)
        if not match:
            raise Refused(
                f"the expression '{shortened(text)}' cannot be read from '{shortened(text[position:])}' on"
            )
        optional, name, quoted = match.groups()
        found.append(Accessor(name or _unquoted(quoted) or "", optional is not None))
        position = match.end()
    return tuple(found)


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
