"""Expressions in a recurrence (section 10)."""

from typing import Any

import pytest

from shared.errors import Fault, InvalidInput
from shared.recurrence import compile_trigger, evaluate
from tests.recurrence.support import at, compiled, first

CREATED = "2024-05-01T00:00:00Z"
PARAMETERS: dict[str, Any] = {
    "n": 6,
    "name": "Day",
    "hours": [8, "16"],
    "none": None,
    "yes": True,
    "it's": "quoted",
    "brace}": "closed",
    "object": {"a": [1]},
    "looks like one": "@parameters('n')",
}


def value_of(text: object) -> Any:
    evaluation = evaluate(text, PARAMETERS, "field")
    assert evaluation.faults == []
    assert evaluation.failed == []
    return evaluation.value


def faults_of(value: object) -> list[Fault]:
    return evaluate(value, PARAMETERS, "field").faults


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("@parameters('n')", 6),
        ("@parameters('hours')", [8, "16"]),
        ("@parameters('none')", None),
        ("@parameters('yes')", True),
        ("@parameters('object')", {"a": [1]}),
        ("@parameters('it''s')", "quoted"),
        ("@ parameters( 'n' ) ", 6),
    ],
)
def test_a_whole_string_keeps_the_type_of_the_parameter(text: str, value: object) -> None:
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("@{parameters('n')}", "6"),
        ("2024-05-0@{parameters('n')}T08:00:00Z", "2024-05-06T08:00:00Z"),
        ("@{parameters('n')}@{parameters('name')}", "6Day"),
        ("@{parameters('none')}", ""),
        ("@{parameters('yes')}", "true"),
        ("@{parameters('object')}", '{"a": [1]}'),
        ("@{parameters('brace}')}", "closed"),
    ],
)
def test_within_a_text_a_parameter_becomes_text(text: str, value: str) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("@@parameters('n')", "@parameters('n')"),
        ("@@", "@"),
        ("@@{parameters('n')}", "@{parameters('n')}"),
        ("a @@{b} @{parameters('n')}", "a @{b} 6"),
        ("someone@example.org", "someone@example.org"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_a_doubled_sign_stands_for_a_plain_one(text: str, value: str) -> None:
    assert value_of(text) == value


def test_the_value_of_a_parameter_is_not_evaluated_again() -> None:
    assert value_of("@parameters('looks like one')") == "@parameters('n')"
    assert value_of("@{parameters('looks like one')}") == "@parameters('n')"


def test_objects_and_lists_are_evaluated_throughout_and_left_as_they_were() -> None:
    given = {"a": ["@parameters('n')", {"b": "@{parameters('name')}"}], "c": 5, "d": None}
    assert value_of(given) == {"a": [6, {"b": "Day"}], "c": 5, "d": None}
    assert given["a"] == ["@parameters('n')", {"b": "@{parameters('name')}"}]


@pytest.mark.parametrize(
    ("text", "function"),
    [("@utcNow()", "utcNow"), ("@add(parameters('n'), 1)", "add"), ("a @{concat('b')}", "concat")],
)
def test_any_other_function_is_refused_by_name(text: str, function: str) -> None:
    (fault,) = faults_of(text)
    assert fault.field == "field"
    assert f"'{function}'" in fault.reason


@pytest.mark.parametrize(
    "text",
    [
        "@",
        "@n",
        "@parameters(n)",
        '@parameters("n")',
        "@parameters('n').a",
        "@parameters('n')@parameters('n')",
        "@parameters('n'",
        "@{parameters('n')",
        "@{",
        "@{}",
        "@{'}",
    ],
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    (fault,) = faults_of(text)
    assert fault.field == "field"


@pytest.mark.parametrize("text", ["@" + "x" * 10**5, f"@{'f' * 10**5}()", f"@parameters('{'x' * 10**5}')"])
def test_a_fault_shows_only_the_beginning_of_what_is_long(text: str) -> None:
    assert len(faults_of(text)[0].reason) < 200


def test_text_full_of_signs_takes_no_time() -> None:
    assert len(faults_of("@{" * 100_000)) == 1
    assert value_of("@@{" * 100_000) == "@{" * 100_000
    assert value_of("a@" * 100_000) == "a@" * 100_000


def test_an_unknown_parameter_is_told_of_the_parameters() -> None:
    assert faults_of("@parameters('N')") == [Fault("parameters", "there is no parameter 'N'")]


def test_faults_name_the_path_down_to_the_first_list() -> None:
    value = {"a": {"b": "@x()"}, "c": [{"d": "@y()"}, "@parameters('z')"]}
    evaluation = evaluate(value, PARAMETERS, "field")
    assert [fault.field for fault in evaluation.faults] == ["field.a.b", "field.c", "parameters"]
    assert evaluation.failed == ["field.a.b", "field.c", "field.c"]


# In a recurrence.


def test_a_recurrence_is_evaluated_before_it_is_validated() -> None:
    recurrence = {
        "frequency": "@parameters('name')",
        "interval": "@{parameters('n')}",
        "startTime": "2024-05-0@{parameters('n')}T00:00:00Z",
        "schedule": {"hours": "@parameters('hours')", "minutes": ["@parameters('n')"]},
    }
    schedule = compiled(recurrence, CREATED, parameters=PARAMETERS)
    assert schedule.evaluated == {
        "frequency": "Day",
        "interval": "6",
        "startTime": "2024-05-06T00:00:00Z",
        "schedule": {"hours": [8, "16"], "minutes": [6]},
    }
    assert first(schedule, 3) == ["2024-05-06T08:06:00Z", "2024-05-06T16:06:00Z", "2024-05-12T08:06:00Z"]


def test_without_expressions_the_evaluated_recurrence_is_equal() -> None:
    recurrence = {"frequency": "day", "interval": "1", "schedule": {"hours": 8}, "timeZone": None}
    assert compiled(recurrence, CREATED).evaluated == recurrence


def test_a_whole_recurrence_may_be_a_parameter() -> None:
    parameters = {"r": {"frequency": "Hour", "interval": 2}}
    schedule = compiled("@parameters('r')", CREATED, parameters=parameters)
    assert schedule.evaluated == parameters["r"]


def failing(recurrence: object, parameters: dict[str, Any] | None = None) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        compile_trigger({"type": "Recurrence", "recurrence": recurrence}, at(CREATED), parameters)
    return [fault.field for fault in refused.value.faults]


def test_unknown_parameters_come_first_and_independent_faults_beside_them() -> None:
    recurrence = {"frequency": "Day", "interval": "@parameters('x')", "schedule": {"hours": [24]}, "count": 0}
    assert failing(recurrence) == ["parameters", "recurrence.schedule.hours", "recurrence.count"]


@pytest.mark.parametrize(
    "recurrence",
    [
        "@parameters('x')",
        {"frequency": "@parameters('x')", "interval": 99_999},
        {"frequency": "Day", "interval": 1, "timeZone": "@parameters('x')", "startTime": "2024-06-01T00:00:00"},
        {"frequency": "Day", "interval": 1, "startTime": "@{parameters('x')}Z", "endTime": "2024-06-01T00:00:00Z"},
        {"frequency": "Week", "interval": 1, "schedule": {"weekDays": ["Monday", "@parameters('x')"]}},
        {"frequency": "Day", "interval": 1, "schedule": "@parameters('x')"},
        {
            "frequency": "Month",
            "interval": 1,
            "schedule": {"monthDays": [1], "monthlyOccurrences": [{"day": "@parameters('x')"}]},
        },
    ],
)
def test_nothing_is_said_of_what_an_unknown_parameter_leaves_open(recurrence: object) -> None:
    assert failing(recurrence, {}) == ["parameters"]


def test_another_function_is_told_of_the_property_it_stands_in() -> None:
    recurrence = {"frequency": "Day", "interval": 1, "startTime": "@utcNow()", "schedule": {"hours": ["@x()"]}}
    assert failing(recurrence) == ["recurrence.startTime", "recurrence.schedule.hours"]


def test_a_delay_holds_no_expressions() -> None:
    trigger = {
        "type": "SlidingWindow",
        "recurrence": {"frequency": "Hour", "interval": 1},
        "inputs": {"delay": "@parameters('d')"},
    }
    with pytest.raises(InvalidInput) as refused:
        compile_trigger(trigger, at(CREATED), {"d": "PT5M"})
    assert [fault.field for fault in refused.value.faults] == ["inputs.delay"]
