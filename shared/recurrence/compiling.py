"""From a job's trigger to its Schedule, or to all that is wrong with it."""

from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from shared.errors import MAX_TOLD, Fault, InvalidInput
from shared.recurrence.expressions import evaluate
from shared.recurrence.instants import (
    DAY,
    LAST_INSTANT,
    floor_second,
    latest_start,
    parse_duration,
    parse_time,
    to_datetime,
)
from shared.recurrence.points import Single
from shared.recurrence.reading import read_recurrence
from shared.recurrence.rules import Rule
from shared.recurrence.schedule import Schedule

_KINDS = ("Recurrence", "SlidingWindow", "Once")


def compile_trigger(
    trigger: Mapping[str, Any], created: datetime, parameters: Mapping[str, Any] | None = None
) -> Schedule:
    """Compile the API's trigger object for a job created, or reset, at `created` (aware; cut to the second).

    Reads type, recurrence, skipInitialRun, inputs.delay and runAt; other properties are not looked at.
    `parameters` are the values that expressions in the recurrence may name (X1).

    Raises InvalidInput with all independent faults in the order of V13, paths relative to the trigger
    (`recurrence.schedule.hours`, `inputs.delay`); a parameter that does not exist is told of `parameters`.
    """
    stamp = floor_second(created)
    kind = trigger.get("type")
    if kind == "Once":
        return _once(trigger, stamp)
    if kind not in _KINDS:
        raise InvalidInput([Fault("type", "must be Recurrence, SlidingWindow or Once")])
    return _recurring(trigger, stamp, parameters or {}, sliding=kind == "SlidingWindow")


def _once(trigger: Mapping[str, Any], created: int) -> Schedule:
    faults: list[Fault] = []
    _refuse(trigger, "recurrence", "Once", faults)
    _delay(trigger, "Once", faults)
    _skips_initial_run(trigger, faults)
    instant = max(created, _run_at(trigger, created, faults) or created)
    if faults:
        raise InvalidInput(faults)
    return Schedule(
        count=None,
        evaluated={},
        initial_run=None,
        _created=created,
        _points=Single(instant),
        _first=instant,
        _last=instant,
    )


def _recurring(
    trigger: Mapping[str, Any], created: int, parameters: Mapping[str, Any], *, sliding: bool
) -> Schedule:
    kind = "SlidingWindow" if sliding else "Recurrence"
    faults: list[Fault] = []
    evaluated, rule = _recurrence(trigger, created, parameters, sliding, faults)
    delay = _delay(trigger, kind, faults)
    if rule is not None and not rule.can_match():
        faults.append(Fault("recurrence.schedule", "there is no day that it matches"))  # V12
    _refuse(trigger, "runAt", kind, faults)
    skip = _skips_initial_run(trigger, faults)
    if rule is None or faults:
        raise InvalidInput(faults)
    return _bounded(rule, evaluated, created, skip, delay if sliding else None)


def _bounded(rule: Rule, evaluated: dict[str, Any], created: int, skip: bool, delay: int | None) -> Schedule:
    """The rule's points within the bounds of F1 and N1. `delay` is None if it is not a sliding window.

    Without a start it fires at creation, whether that is a point or not (F2), and then at the points after.
    With one, a Recurrence discards the points before creation; a sliding window has them all.
    """
    points = rule.points(created)
    at_once = created if rule.start is None and not skip else None
    first = created + 1 if rule.start is None else rule.start
    last = LAST_INSTANT if rule.end is None else rule.end
    if delay is None:
        first = max(first, created)
    elif rule.end is not None:  # a window must end by then (N1)
        last_bound = points.last_to(rule.end)
        at_once = at_once if last_bound >= first else None
        last = points.last_to(last_bound - 1)
    return Schedule(
        count=rule.count,
        evaluated=evaluated,
        initial_run=None if at_once is None or delay else to_datetime(at_once),
        _created=created,
        _points=points,
        _first=first,
        _last=last,
        _at_once=at_once,
        _rule=rule,
        _delay=delay,
    )


def _recurrence(
    trigger: Mapping[str, Any],
    created: int,
    parameters: Mapping[str, Any],
    sliding: bool,
    faults: list[Fault],
) -> tuple[dict[str, Any], Rule | None]:
    """The recurrence after expressions, and the rule it means if nothing important is wrong with it."""
    evaluation = evaluate(trigger.get("recurrence"), parameters, "recurrence")
    faults += evaluation.faults
    if isinstance(evaluation.value, dict):
        failed = frozenset(path.removeprefix("recurrence.") for path in evaluation.failed)
        rule, wrong = read_recurrence(evaluation.value, created, sliding=sliding, failed=failed)
        faults += [fault.under("recurrence") for fault in wrong]
        return evaluation.value, rule
    if not evaluation.failed:
        given = evaluation.value is not None
        faults.append(Fault("recurrence", "must be an object" if given else "is required"))
    return {}, None


def _delay(trigger: Mapping[str, Any], kind: str, faults: list[Fault]) -> int:
    """Seconds by which a sliding window is due after its start (W4); other kinds have no inputs."""
    inputs = trigger.get("inputs")
    if inputs is None:
        return 0
    if not isinstance(inputs, Mapping):
        faults.append(Fault("inputs", "must be an object"))
        return 0
    unknown = (n for n, v in inputs.items() if v is not None and (n != "delay" or kind != "SlidingWindow"))
    reason = f"a trigger of type {kind} has no such input"
    faults += [Fault(f"inputs.{name}", reason) for name in islice(unknown, MAX_TOLD)]
    delay = inputs.get("delay") if kind == "SlidingWindow" else None
    if delay is None:
        return 0
    try:
        if not isinstance(delay, str):
            raise ValueError("must be text such as PT5M")
        duration = parse_duration(delay)
    except ValueError as wrong:
        faults.append(Fault("inputs.delay", str(wrong)))
        return 0
    return duration.days * DAY + duration.seconds


def _run_at(trigger: Mapping[str, Any], created: int, faults: list[Fault]) -> int | None:
    """The instant a Once trigger asks for (X5)."""
    value = trigger.get("runAt")
    if value is None:
        return None
    try:
        if not isinstance(value, str):
            raise ValueError("must be text such as 2026-01-31T08:30:00Z")
        written = parse_time(value)
        if not written.utc:
            raise ValueError("must end with Z")
        if written.rounded_up > latest_start(created):
            raise ValueError("must be at most 49 years ahead")
    except ValueError as wrong:
        faults.append(Fault("runAt", str(wrong)))
        return None
    return written.rounded_up


def _skips_initial_run(trigger: Mapping[str, Any], faults: list[Fault]) -> bool:
    skip = trigger.get("skipInitialRun")
    if skip is not None and not isinstance(skip, bool):
        faults.append(Fault("skipInitialRun", "must be true or false"))
    return skip is True


def _refuse(trigger: Mapping[str, Any], name: str, kind: str, faults: list[Fault]) -> None:
    if trigger.get(name) is not None:
        faults.append(Fault(name, f"cannot be used with a trigger of type {kind}"))
