"""What a definition may cost: budgets of expressions, sizes of what they make, how many faults are looked for."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.errors import MAX_TOLD, Fault, InvalidInput
from shared.expressions import Budget, Function, Lengths, check, evaluate
from shared.jobs.fields import MAX_HEADER, MAX_HEADERS, MAX_MESSAGE, MAX_SENT, MAX_URI
from shared.jobs.spec import parse_job
from tests.jobs.test_spec import NOON

STEPS = Budget().steps
CHARACTERS = Budget().characters


def value_of(name: str, **values: Any) -> dict[str, Function]:
    return {name: Function(arguments=values, paths=None, call=values.__getitem__)}


def told(value: Any, functions: dict[str, Function]) -> list[Fault]:
    """The faults of an evaluation."""
    with pytest.raises(InvalidInput) as refused:
        evaluate(value, functions, "f")
    return list(refused.value.faults)


def test_what_values_have_together_is_bounded_whole_values_too() -> None:
    functions = value_of("v", half=["x" * (CHARACTERS // 2 - 100)])
    assert len(evaluate(["@v('half')"] * 2, functions, "f")) == 2
    for third in ("@v('half')", "and @{v('half')}"):
        (fault,) = told(["@v('half')"] * 2 + [third, "@v('half')"], functions)
        assert fault == Fault("f.2", "the values of expressions are too large, with those before it")


@pytest.mark.parametrize(
    "value",
    [
        "x" * 2000,
        "ü" * 2000,
        [0] * 1000,
        [None] * 500,
        {f"name-{n}": True for n in range(200)},
        10**1990,
        [[]] * 1000,
    ],
    ids=["text", "umlauts", "numbers", "nulls", "members", "a number", "lists"],
)
def test_any_kind_of_value_has_a_size(value: Any) -> None:
    functions = value_of("v", one=value)
    evaluate(["@v('one')"] * 100, functions, "f")
    assert told(["@v('one')"] * 1100, functions)[-1].reason.startswith("the values of expressions are too large")


def test_steps_are_bounded_when_a_job_is_made_and_when_it_runs() -> None:
    functions = value_of("v", o={"a": {"b": 1}})
    most = ["@{v('o').a.b}" * (STEPS // 3)]
    assert check(most, functions, "f") == []
    evaluate(most, functions, "f")
    faults = [Fault("f.2", "there are too many expressions, with those before it")]
    beyond = [*most, "@v('o')", "@v('o').a", "@nothing()"]
    assert check(beyond, functions, "f") == told(beyond, functions) == faults


def test_no_more_faults_are_looked_for_than_are_told() -> None:
    functions = value_of("v", a=1)
    many = [f"@x{n}()" for n in range(10 * MAX_TOLD)]
    assert len(check(many, functions, "f")) == len(told(many, functions)) == MAX_TOLD


@pytest.mark.parametrize(
    ("value", "least"),
    [
        ("plain", 5),
        ("@v('text')", 4),
        ("a @{v('text')}-@{v('text')} b", 13),
        ("@{v('none')}", 0),
        ("@{later()}!", 1),
        ("@v('object').missing", 0),
        ({"name": ["@v('text')", 12, True]}, 13),
    ],
)
def test_of_lengths_what_is_known_is_told(value: Any, least: int) -> None:
    known = value_of("v", text="four", none=None, object={})
    lengths = Lengths({**known, "later": Function(call=str)}, known)
    assert lengths.least(value) == least


def action(**inputs: Any) -> dict[str, Any]:
    return {"type": "Http", "inputs": {"method": "POST", "uri": "https://example.org/", **inputs}}


def faults(made: Any, trigger: Any = None, **parameters: Any) -> list[tuple[str, str]]:
    """What is wrong with a job of one action; it runs once, unless another trigger is given."""
    try:
        parse_job({"trigger": trigger or {"type": "Once"}, "action": made, "parameters": parameters}, NOON)
    except InvalidInput as error:
        return [(fault.field, fault.reason) for fault in error.faults]
    return []


def beyond(length: int, most: int) -> str:
    return f"is sent with at least {length} characters; the limit is {most}"


def test_what_is_known_to_be_too_long_to_be_sent_is_refused_when_the_job_is_made() -> None:
    a = "x" * 1000
    nine = "@{parameters('a')}" * 9
    assert faults(action(headers={"h": nine}), a=a) == [("action.inputs.headers.h", beyond(9000, MAX_HEADER))]
    five = {f"h{n}": nine for n in range(5)}
    assert faults(action(headers=five), a="x" * 900) == [("action.inputs.headers", beyond(5 * 8102, MAX_HEADERS))]
    assert faults(action(uri=f"https://example.org/{nine}"), a=a) == [("action.inputs.uri", beyond(9020, MAX_URI))]
    assert faults(action(queries={"q": nine}), a=a) == [("action.inputs.uri", beyond(9021, MAX_URI))]
    body = ["@parameters('a')"] * 12
    assert faults(action(body=body), a="x" * 100_000) == [("action.inputs.body", beyond(1_200_000, MAX_SENT))]
    message = {"type": "Queue", "inputs": {"queue": "orders", "message": "@{parameters('a')}" * 50}}
    assert faults(message, a=a) == [("action.inputs.message", beyond(50_000, MAX_MESSAGE))]
    fitting = {
        "headers": {"h": "@{parameters('a')}" * 8},
        "body": "@parameters('a')",
        "queries": {"q": "@trigger()"},
    }
    assert faults(action(**fitting), a=a) == []


def test_plain_texts_are_bounded_too() -> None:
    assert faults(action(headers={"h": "x" * MAX_HEADER})) == []
    too_long = [("action.inputs.headers.h", f"must be at most {MAX_HEADER} characters long")]
    assert faults(action(headers={"h": "x" * (MAX_HEADER + 1)})) == too_long


def test_so_is_what_is_plain_but_too_long_together() -> None:
    five = {f"h{n}": "x" * 7000 for n in range(5)}
    assert faults(action(headers=five)) == [("action.inputs.headers", beyond(5 * 7002, MAX_HEADERS))]
    queries = {f"q{n}": "x" * 1000 for n in range(9)}
    assert faults(action(queries=queries)) == [("action.inputs.uri", beyond(20 + 9 * 1002, MAX_URI))]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda each: st.lists(each) | st.dictionaries(st.text(), each),
    )
)
def test_nothing_is_told_to_be_longer_than_it_is(value: Any) -> None:
    known = value_of("v", it=value)
    least = Lengths(known, known).least(["@v('it')"])
    written = len(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
    assert least <= written
    assert 30 * (least + 1) >= written


def test_a_long_list_of_digits_is_no_longer_than_it_is_sent() -> None:
    message = {"type": "Queue", "inputs": {"queue": "orders", "message": {"l": "@parameters('l')", "x": "y"}}}
    assert faults(message, l=[1] * 12_000) == []
    functions = value_of("v", half=[1] * 60_000)
    assert len(evaluate(["@v('half')"] * 4, functions, "f")) == 4


MANY = 10 * MAX_TOLD


@pytest.mark.parametrize(
    ("made", "first"),
    [
        ({f"x{n}": n for n in range(MANY)}, ("x0", "is not a property of this version")),
        ({"tags": {f"x{n}": n for n in range(MANY)}}, ("tags", "has too many members: the limit is 50")),
        ({"actions": {f"x{n}": {} for n in range(MANY)}}, ("actions", "has too many members: the limit is 100")),
        (
            {"action": action(headers={f"x{n}": n for n in range(MANY)})},
            ("action.inputs.headers", "the limit is 50"),
        ),
        (
            {"action": action(queries={f"x{n}": [] for n in range(MANY)})},
            ("action.inputs.queries", "the limit is 100"),
        ),
        ({"action": action(**{f"x{n}": n for n in range(MANY)})}, ("action.inputs.x0", "is not a property")),
        (
            {"actions": {"a": action() | {"runAfter": {f"x{n}": ["Failed"] for n in range(MANY)}}}},
            ("actions.a.runAfter", "has too many members: the limit is 100"),
        ),
        (
            {"actions": {"a": action(), "b": action() | {"runAfter": {"a": ["x"] * MANY}}}},
            ("actions.b.runAfter.a.0", "must be 'Succeeded'"),
        ),
        (
            {"action": action(body=[f"@x{n}()" for n in range(MANY)])},
            ("action.inputs.body.0", "the function 'x0'"),
        ),
    ],
    ids=lambda made: None if isinstance(made, tuple) else next(iter(made)),
)
def test_what_is_wrong_many_times_is_told_up_to_a_hundred_times(made: Any, first: tuple[str, str]) -> None:
    body = {"trigger": {"type": "Once"}, **({} if "actions" in made else {"action": action()}), **made}
    with pytest.raises(InvalidInput) as refused:
        parse_job(body, NOON)
    found = refused.value.faults
    assert found[0].field == first[0]
    assert first[1] in found[0].reason
    assert len(found) <= 2 * MAX_TOLD


def recurrence(**more: Any) -> dict[str, Any]:
    return {"type": "Recurrence", "recurrence": {"frequency": "Month", "interval": 1, **more}}


@pytest.mark.parametrize(
    ("trigger", "field"),
    [
        (recurrence(**{f"x{n}": n for n in range(MANY)}), "trigger.recurrence.x0"),
        (recurrence(schedule={f"x{n}": n for n in range(MANY)}), "trigger.recurrence.schedule.x0"),
        (recurrence(schedule={"hours": ["x"] * MANY}), "trigger.recurrence.schedule.hours"),
        (recurrence(schedule={"hours": [f"@x{n}()" for n in range(MANY)]}), "trigger.recurrence.schedule.hours"),
        (recurrence(schedule={"monthlyOccurrences": [{"x": 1}] * MANY}), "trigger.recurrence.schedule"),
        (
            {"type": "SlidingWindow", **recurrence(), "inputs": {f"x{n}": n for n in range(MANY)}},
            "trigger.inputs.x0",
        ),
        (
            {"type": "Once", "runtimeConfiguration": {f"x{n}": n for n in range(MANY)}},
            "trigger.runtimeConfiguration",
        ),
    ],
)
def test_a_triggers_faults_are_told_up_to_a_hundred_times(trigger: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_job({"trigger": trigger, "action": action()}, NOON)
    assert refused.value.faults[0].field.startswith(field)
    assert len(refused.value.faults) <= 2 * MAX_TOLD


def test_a_recurrence_has_a_small_budget() -> None:
    assert faults(action(), recurrence(schedule={"hours": ["@parameters('h')"] * 1000}), h=8) == []
    too_many = [("trigger.recurrence", "there are too many expressions, with those before it")]
    assert faults(action(), recurrence(schedule={"hours": ["@parameters('h')"] * 1001}), h=8) == too_many
    too_large = [("trigger.recurrence", "the values of expressions are too large, with those before it")]
    assert faults(action(), recurrence(startTime="@{parameters('a')}" * 100), a="x" * 1000) == too_large
    assert faults(action(), recurrence(schedule="@parameters('a')"), a={"hours": [0] * 40_000}) == too_large


def test_hours_that_are_named_again_say_nothing_more() -> None:
    asked = parse_job(
        {"trigger": recurrence(schedule={"hours": [8, "8", 8, 17] * 5000}), "action": action()}, NOON
    )
    once = parse_job({"trigger": recurrence(schedule={"hours": [8, 17]}), "action": action()}, NOON)
    assert asked.schedule.same_as(once.schedule)
    days = [{"day": "Monday", "occurrence": 1}, {"day": "Friday"}]
    asked = parse_job(
        {"trigger": recurrence(schedule={"monthlyOccurrences": days * 5000}), "action": action()}, NOON
    )
    once = parse_job({"trigger": recurrence(schedule={"monthlyOccurrences": days}), "action": action()}, NOON)
    assert asked.schedule.same_as(once.schedule)
    assert asked.schedule._rule
    assert asked.schedule._rule.schedule
    assert len(asked.schedule._rule.schedule.monthly_occurrences or ()) == 2
    with pytest.raises(InvalidInput):
        parse_job({"trigger": recurrence(schedule={"hours": [1, True]}), "action": action()}, NOON)
