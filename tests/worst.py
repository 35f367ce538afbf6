"""Bodies that cost as much as they can, and what is done for them between two turns of the event loop."""

import asyncio
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from shared import giving_way

LARGEST = 256 * 1024
Part = Callable[[dict[str, Any], int], None]


def _inputs(body: dict[str, Any]) -> dict[str, Any]:
    inputs: dict[str, Any] = body["actions"]["Call"]["inputs"]
    return inputs


def _schedule(body: dict[str, Any], name: str, value: Any) -> None:
    body["trigger"]["recurrence"].setdefault("schedule", {})[name] = value


def _names(count: int) -> dict[str, Any]:
    return {f"n{n}": n for n in range(count)}


def _put(path: str, made: Callable[[int], Any]) -> Part:
    """What puts a value of some size at a path in the body."""

    def put(body: dict[str, Any], count: int) -> None:
        owner = body
        *parents, last = path.split(".")
        for name in parents:
            owner = owner.setdefault(name, {})
        if isinstance(owner, dict):
            owner[last] = made(count)

    return put


def _more(path: str) -> Part:
    """What puts many members beside those that an object has."""

    def put(body: dict[str, Any], count: int) -> None:
        owner = body
        for name in path.split(".") if path else ():
            owner = owner.setdefault(name, {})
        owner.update(_names(count))

    return put


CALL = "actions.Call.inputs"
RECURRENCE = "trigger.recurrence"
# By name: what fills a body with as many pieces as it is told.
PARTS: dict[str, Part] = {
    "members": _more(""),
    "members of an action": _more("actions.Call"),
    "members of inputs": _more(CALL),
    "members of a recurrence": _more(RECURRENCE),
    "members of a schedule": _more(f"{RECURRENCE}.schedule"),
    "actions": _put("actions", lambda n: {f"n{i}": {"type": "Http"} for i in range(n)}),
    "empty actions": _put("actions", lambda n: {f"n{i}": {} for i in range(n)}),
    "headers": _put(f"{CALL}.headers", _names),
    "header": _put(f"{CALL}.headers", lambda n: {"h": "@{parameters('a')}" * n}),
    "queries": _put(f"{CALL}.queries", lambda n: {f"n{i}": [] for i in range(n)}),
    "tags": _put("tags", _names),
    "values": _put(f"{CALL}.body", lambda n: ["@parameters('a')"] * n),
    "text": _put(f"{CALL}.body", lambda n: "@{parameters('a')}" * n),
    "objects": _put(f"{CALL}.body", lambda n: "@{parameters('o')}" * n),
    "events": _put(f"{CALL}.body", lambda n: "@{trigger()}" * n),
    "wrong calls": _put(f"{CALL}.body", lambda n: ["@x()"] * n),
    "wrong text": _put(f"{CALL}.body", lambda n: "@{parameters('a')}" * n + "@{"),
    "accessors": _put(f"{CALL}.body", lambda n: "@parameters('o')" + "?.a" * n),
    "quotes": _put(f"{CALL}.body", lambda n: "@{'" * n),
    "lists": _put(f"{CALL}.body", lambda n: [[]] * n),
    "numbers": _put(f"{CALL}.body", lambda n: [1] * n),
    "controls": _put(f"{CALL}.body", lambda n: "\x01" * n),
    "parameter": _put("parameters.a", lambda n: "x" * n),
    "parameters": _put("parameters.o", lambda n: [None] * n),
    "order": _put("actions.Call.runAfter", lambda n: {f"n{i}": ["Failed"] for i in range(n)}),
    "outcomes": _put("actions.Call.runAfter", lambda n: {"Call": ["x"] * n}),
    "options": _put("actions.Call.operationOptions", lambda n: ",x" * n),
    "hours": _put(f"{RECURRENCE}.schedule.hours", lambda n: [8] * n),
    "texts of hours": _put(f"{RECURRENCE}.schedule.hours", lambda n: [f"{i % 24:018}" for i in range(n)]),
    "wrong hours": _put(f"{RECURRENCE}.schedule.hours", lambda n: ["x"] * n),
    "hours by expression": _put(f"{RECURRENCE}.schedule.hours", lambda n: ["@parameters('a')"] * n),
    "hours by wrong expression": _put(f"{RECURRENCE}.schedule.hours", lambda n: ["@x()"] * n),
    "days": _put(f"{RECURRENCE}.schedule.monthlyOccurrences", lambda n: [{"day": "Monday"}] * n),
    "wrong days": _put(f"{RECURRENCE}.schedule.monthlyOccurrences", lambda n: [{}] * n),
    "zone": _put(f"{RECURRENCE}.timeZone", lambda n: "x" * n),
    "start": _put(f"{RECURRENCE}.startTime", lambda n: "@{parameters('a')}" * n),
    "recurrence": _put(RECURRENCE, lambda n: {"frequency": "@parameters('o')", "interval": "1" * n}),
    "inputs of a trigger": _put("trigger.inputs", _names),
}


def filled(parts: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """A body of up to 256 KiB with these parts, each with its share of that."""
    body: dict[str, Any] = {
        "trigger": {"type": "Recurrence", "recurrence": {"frequency": "Month", "interval": 1}},
        "actions": {"Call": {"type": "Http", "inputs": {"method": "POST", "uri": "https://example.org/"}}},
        "parameters": {"a": "x", "o": {"a": 1}},
    }
    whole = sum(share for _, share in parts)
    for name, share in parts:
        one, more = _length(name, 1), _length(name, 1001)
        each = (more - one) / 1000
        room = (LARGEST - 1000) * share / whole
        try:
            PARTS[name](body, max(1, int(room / each * 0.98)))
        except (KeyError, AttributeError, TypeError):
            continue  # where it would stand another part has put something else
    return body


def _length(name: str, count: int) -> int:
    body = {"trigger": {"recurrence": {}}, "actions": {"Call": {"inputs": {}}}}
    PARTS[name](body, count)
    return len(json.dumps(body))


@dataclass
class Work:
    """The most that was done between two turns of the loop: calls of functions, and bytes of JSON or packed."""

    steps: int = 0
    bytes: int = 0
    turns: int = 0


@contextmanager
def counting() -> Iterator[Work]:
    """Counts what is done between two turns while work gives way whenever it may, whatever the clock says."""
    work, steps, size = Work(), 0, 0
    loop = asyncio.get_running_loop()
    is_over = False

    def turn() -> None:
        nonlocal steps, size
        work.steps, work.bytes, work.turns = max(work.steps, steps), max(work.bytes, size), work.turns + 1
        steps = size = 0
        if not is_over:
            loop.call_soon(turn)

    def count(_frame: Any, event: str, _of: Any) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    def sized(made: Callable[..., Any], is_result: bool) -> Callable[..., Any]:
        def sizing(given: Any, *more: Any, **options: Any) -> Any:
            nonlocal size
            result = made(given, *more, **options)
            size += len(result if is_result else given)
            return result

        return sizing

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(giving_way, "WORKING", 0)
        for owner, name, is_result in (
            (json, "dumps", True),
            (json, "loads", False),
            (zlib, "compress", False),
            (zlib, "decompress", True),
        ):
            patched.setattr(owner, name, sized(getattr(owner, name), is_result))
        loop.call_soon(turn)
        sys.setprofile(count)
        try:
            yield work
        finally:
            sys.setprofile(None)
            is_over = True
            turn()
