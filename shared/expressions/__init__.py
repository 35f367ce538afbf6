"""The expressions of the workflow definition language, as far as this app knows them.

A string that is wholly `@call` becomes the call's value with its type. `@{call}` inside a text becomes text:
nothing for null, compact JSON for what is not text. `@@` at the start of a string stands for a plain `@`,
`@@{` within for `@{`. A call is `name()` or `name('text')`, `''` standing for `'`, followed by accessors `.name`,
`['name']` and, null where there is no such member, `?.name`, `?['name']`. White space may stand between tokens.
Keys of objects hold no expressions. Which functions there are, the caller says.
"""

from shared.expressions.evaluating import Budget, Enough, Lengths, Overspent, check, evaluate, render, step
from shared.expressions.parsing import (
    Accessor,
    Call,
    Function,
    Path,
    Refused,
    Signature,
    UnknownArgument,
    Whole,
    parse,
    shortened,
)

__all__ = [
    "Accessor",
    "Budget",
    "Call",
    "Enough",
    "Function",
    "Lengths",
    "Overspent",
    "Path",
    "Refused",
    "Signature",
    "UnknownArgument",
    "Whole",
    "check",
    "evaluate",
    "parse",
    "render",
    "shortened",
    "step",
]
