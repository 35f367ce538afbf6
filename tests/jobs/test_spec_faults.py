"""What is wrong with a request, and how it is told."""

from typing import Any

import pytest

from shared.errors import Fault, InvalidInput
from shared.jobs.faults import read_model
from shared.jobs.request import JobRequest
from shared.jobs.spec import parse_job, parse_trigger
from tests.jobs.test_spec import NOON, TRIGGER, body, inputs_of


def faults(given: Any) -> list[Fault]:
    with pytest.raises(InvalidInput) as refused:
        parse_job(given, NOON)
    return list(refused.value.faults)


def test_only_a_sliding_window_has_windows() -> None:
    given = body(inputs={"body": "@trigger().outputs.windowStartTime"})
    recurrence = TRIGGER["recurrence"]
    assert inputs_of(given | {"trigger": {"type": "SlidingWindow", "recurrence": recurrence}})
    for trigger in (TRIGGER, {"type": "Once"}):
        (fault,) = faults(given | {"trigger": trigger})
        assert fault.field == "action.inputs.body"
        assert "only a trigger of type SlidingWindow has windows" in fault.reason
    assert [fault.field for fault in faults(given | {"trigger": {"type": "Window"}})] == ["trigger.type"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("@", "''"),
        ("@x", "'x'"),
        ("@parameters('n')", "parameters('n')"),
        ("@{x}", "'x'"),
        ("a@{utcNow()}", "'utcNow'"),
        ("@{", "'@{'"),
    ],
)
def test_an_expression_that_cannot_be_used_is_told_of_by_name(text: str, named: str) -> None:
    (fault,) = faults(body(inputs={"body": {"a": [text]}}))
    assert fault.field == "action.inputs.body.a.0"
    assert named in fault.reason


def test_a_header_named_type_hides_no_fault_beside_it() -> None:
    told = faults(body(inputs={"headers": {"type": 1, "x": 2}}, tags={"type": 1, "x": 2}))
    assert {f.field for f in told} == {
        "action.inputs.headers.type",
        "action.inputs.headers.x",
        "tags.type",
        "tags.x",
    }


def test_a_wrong_type_of_one_thing_hides_no_fault_of_another() -> None:
    given = body(trigger={"type": "x", "y": 1}, colour="red")
    given["action"] = given["action"] | {"limit": {"timeout": "x"}}
    assert {f.field for f in faults(given)} == {"trigger.type", "colour", "action.limit.timeout"}


def test_of_a_field_one_check_at_a_time_tells() -> None:
    told = faults(body(inputs={"uri": "@parameters('uri')", "method": "@x"}, parameters=[]))
    assert [f.field for f in told] == ["action.inputs.method", "action.inputs.uri", "parameters"]
    unknown = TRIGGER | {"recurrence": {"frequency": "@parameters('a')", "interval": "@parameters('b')"}}
    told = faults(body(trigger=unknown))
    assert [f.field for f in told] == ["parameters", "parameters"]
    assert "'a'" in told[0].reason
    assert "'b'" in told[1].reason


def test_faults_of_a_calendar_come_in_the_order_of_its_rules() -> None:
    recurrence = {
        "count": 0,
        "endTime": "x",
        "schedule": {"minutes": [60], "hours": [24]},
        "startTime": "x",
        "timeZone": "x",
        "interval": 0,
        "frequency": "x",
        "extra": 1,
    }
    order = ["extra", "frequency", "interval", "timeZone", "startTime"]
    order += ["schedule.hours", "schedule.minutes", "endTime", "count"]
    told = faults(body(trigger=TRIGGER | {"recurrence": recurrence}))
    assert [f.field for f in told] == [f"trigger.recurrence.{name}" for name in order]


def test_a_name_in_a_path_is_cut_and_never_empty() -> None:
    assert {f.field for f in faults(body() | {"x" * 1000: 1, "": 2})} == {"x" * 80 + "…", '""'}


@pytest.mark.parametrize("given", [None, [], "job", 5, True])
def test_what_is_no_object_is_told_of_the_body(given: Any) -> None:
    assert faults(given) == [Fault("body", "must be a JSON object")]


def test_names_of_kinds_are_no_steps_of_a_path_and_names_like_them_are() -> None:
    retry = {"type": "none", "none": 1}
    given = body(action=None, actions={"Http": {"type": "Http", "Http": 1}, "none": body()["action"]})
    given["actions"]["none"]["inputs"] |= {"retryPolicy": retry, "Raw": 1}
    assert {f.field for f in faults(given)} == {
        "actions.Http.Http",
        "actions.Http.inputs",
        "actions.none.inputs.Raw",
        "actions.none.inputs.retryPolicy.none",
    }


def test_an_empty_object_is_told_what_it_needs() -> None:
    assert faults({}) == [Fault("trigger", "is required"), Fault("actions", "is required")]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (body(historyLimit=0), "historyLimit must be an integer from 1 to 1000"),
        (body(colour="red"), "colour is not a property of this version"),
        (body(description=5), "description must be text"),
        (body(description="x" * 4097), "description must be at most 4096 characters long"),
        (body(tags=[]), "tags must be an object"),
        (body(tags={str(n): "" for n in range(51)}), "tags has too many members: the limit is 50"),
        (body(state="Paused"), "state must be 'Enabled', 'Suspended', 'Disabled' or 'Completed'"),
        (body(action={"type": "Sleep"}), "action.type must be 'Http', 'Queue', 'Wait'"),
        (body(deleteAfter="PT0S"), "deleteAfter must last from PT1S to P3660D"),
        (
            body(trigger=TRIGGER | {"operationOptions": "x"}),
            "trigger.operationOptions must be SingleInstance, not",
        ),
        (
            body(action={"type": "Queue", "inputs": {"queue": "x", "message": 1}}),
            "action.inputs.queue must be a queue's name: 3 to 63 of",
        ),
        (body(action={"type": "Wait", "inputs": {}}), "action.inputs must have either interval or until"),
        (
            body(inputs={"authentication": {"type": "ManagedServiceIdentity", "audience": ""}}),
            "action.inputs.authentication.audience is too short: it needs 1",
        ),
        (
            body(inputs={"retryPolicy": {"type": "fixed", "count": 0, "interval": "PT1S"}}),
            "action.inputs.retryPolicy.count must be an integer from 1 to 90",
        ),
        (body(action=5), "action must be an object"),
        (
            body(trigger={"type": "Once", "maxLateness": "P3661D"}),
            "trigger.maxLateness must last from PT0S to P3660D",
        ),
        (body(inputs={"queries": {"q": None}}), "action.inputs.queries.q must be text, a number, true or false"),
        (body(inputs={"headers": {"Host": "x"}}), "action.inputs.headers.Host is set by the scheduler"),
        (body(inputs={"uri": "https://a:b@c/"}), "action.inputs.uri must not hold credentials"),
        (body(trigger=None, triggers={}), "triggers must be an object with exactly one member"),
        (body(action=None, actions={}), "actions has too few members: it needs 1"),
    ],
)
def test_reasons_are_plain_sentences(given: dict[str, Any], reason: str) -> None:
    assert [f"{f.field} {f.reason}"[: len(reason)] for f in faults(given)] == [reason]


def test_a_trigger_by_itself_is_told_of_by_its_own_path() -> None:
    for wrong, field in (
        (None, "trigger"),
        ("Once", "trigger"),
        ({}, "trigger.type"),
        ({"type": "Once", "x": 1}, "trigger.x"),
        ({"type": "Recurrence"}, "trigger.recurrence"),
    ):
        with pytest.raises(InvalidInput) as refused:
            parse_trigger(wrong, None, NOON)
        assert [fault.field for fault in refused.value.faults] == [field]


def test_a_model_is_told_of_by_the_path_it_stands_at() -> None:
    model, told = read_model(JobRequest, 5, "job.3")
    assert model is None
    assert told == [Fault("job.3", "must be an object")]
