"""What a request may say of a job, and the definition it gives."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.errors import Fault, InvalidInput
from shared.jobs.definition import Definition
from shared.jobs.spec import READ_ONLY, JobRequest, parse_job, parse_trigger, read_model

NOON = datetime(2026, 9, 8, 12, tzinfo=UTC)
TRIGGER = {"type": "Recurrence", "recurrence": {"frequency": "Day", "interval": 1}}


def body(*, inputs: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A valid job; `inputs` goes into its action's, `more` to the top."""
    given = {"method": "GET", "uri": "https://example.org/"} | (inputs or {})
    return {"trigger": TRIGGER, "action": {"type": "Http", "inputs": given}} | more


def definition(given: dict[str, Any]) -> dict[str, Any]:
    return parse_job(given, NOON)[1]


def inputs_of(given: dict[str, Any]) -> Any:
    return definition(given)["actions"]["Action"]["inputs"]


def faults(given: Any) -> list[Fault]:
    with pytest.raises(InvalidInput) as refused:
        parse_job(given, NOON)
    return list(refused.value.faults)


def test_the_definition_holds_what_was_given_and_the_defaults_that_reading_needs() -> None:
    given = body(id="a", state="Enabled", description="d")
    assert parse_job(given, NOON) == (
        "a",
        {
            "serviceType": "TimerJob",
            "historyLimit": 100,
            "description": "d",
            "trigger": TRIGGER,
            "actions": {"Action": given["action"]},
        },
    )


def test_a_request_is_left_as_it_was() -> None:
    given = body(id="a", describe="x", tags=None, triggers=None)
    before = copy.deepcopy(given)
    parse_job(given, NOON)
    assert given == before


def test_short_and_long_forms_in_any_order_give_the_same_definition() -> None:
    short = body(historyLimit=100, serviceType="TimerJob", tags={"a": "b"})
    long = {"tags": {"a": "b"}, "triggers": {"T": TRIGGER}, "actions": {"Action": short["action"]}}
    assert list(definition(short).items()) == list(definition(long).items())


@pytest.mark.parametrize("name", sorted(READ_ONLY))
def test_a_read_only_property_is_dropped(name: str) -> None:
    assert definition(body(**{name: {"any": ["thing"]}})) == definition(body())


def test_nulls_are_dropped_where_properties_are_known_and_kept_where_they_are_values() -> None:
    nulls = body(inputs={"headers": None, "queries": None, "retryPolicy": None, "body": None}, tags=None)
    nulls["action"] = nulls["action"] | {"limit": None}
    nulls["trigger"] = TRIGGER | {"maxLateness": None}
    assert definition(nulls) == definition(body())
    kept = {"a": None, "b": [None, {"c": None}]}
    assert inputs_of(body(inputs={"body": kept}))["body"] == kept
    assert definition(body(parameters=kept))["parameters"] == kept


def test_a_limit_of_null_leaves_a_definition_that_can_be_read() -> None:
    given = body()
    given["action"] = given["action"] | {"limit": None}
    assert Definition(definition(given)).is_short


def test_values_keep_their_types() -> None:
    queries = {"text": "1", "int": 1, "float": 1.0, "true": True}
    kept = inputs_of(body(inputs={"queries": queries, "body": [1, 1.0, True, "1", 10**30]}))
    assert [type(value) for value in kept["queries"].values()] == [str, int, float, bool]
    assert [type(value) for value in kept["body"]] == [int, float, bool, str, int]


@pytest.mark.parametrize(
    "uri",
    [
        "http://localhost",
        "HTTPS://Example.ORG:8443/a%20b/?q=1&r=%C3%A9#part",
        "https://example.org.",
        "https://my_host-1.example/",
        "http://192.0.2.1:1/",
        "http://[2001:db8::1]:65535/",
        "http://[::ffff:192.0.2.1]/",
        "https://example.org:/",
        "https://xn--exmple-cua.org/",
        "https://example.org/user@example.org",
        f"https://example.org/{'a' * 8172}",
    ],
)
def test_a_uri_that_can_be_called_is_taken_as_it_is_written(uri: str) -> None:
    assert inputs_of(body(inputs={"uri": uri}))["uri"] == uri


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain", "Authorization": "Bearer x", "User-Agent": "", "X": "a\tb ~"},
        {"!#$%&'*+.^_`|~0-9A-Za-z": "x"},
        {"x-timerjob": "a", "hosts": "b", "tea": "c", "idempotency-key-2": "d"},
        {f"x-{n}": "y" for n in range(50)},
    ],
)
def test_headers_that_can_be_sent_are_taken(headers: dict[str, str]) -> None:
    assert inputs_of(body(inputs={"headers": headers}))["headers"] == headers


@pytest.mark.parametrize("timeout", ["PT1S", "PT5M", "PT300S", "P0DT0H5M"])
def test_a_timeout_within_its_bounds_is_taken(timeout: str) -> None:
    given = body()
    given["action"] = given["action"] | {"limit": {"timeout": timeout}}
    assert definition(given)["actions"]["Action"]["limit"] == {"timeout": timeout}


@pytest.mark.parametrize("lateness", ["PT0S", "P1W", "P3660D"])
def test_a_max_lateness_within_its_bounds_is_taken(lateness: str) -> None:
    assert definition(body(trigger=TRIGGER | {"maxLateness": lateness}))["trigger"]["maxLateness"] == lateness


@pytest.mark.parametrize(
    ("name", "value"), [("historyLimit", 1), ("historyLimit", 1000), ("description", "x" * 4096)]
)
def test_a_bound_itself_is_taken(name: str, value: Any) -> None:
    assert definition(body(**{name: value}))[name] == value


def test_tags_and_action_names_up_to_their_bounds_are_taken() -> None:
    tags = {f"{n:0128}": "v" * 256 for n in range(50)}
    given = body(tags=tags, action=None)
    given["actions"] = {"a" * 80: body()["action"]}
    assert definition(given)["tags"] == tags


@pytest.mark.parametrize("text", ["me@example.org", "@@", "@@parameters('n')", "a @ b", "{@}", "", "5@"])
def test_text_with_an_at_sign_that_is_no_expression_is_taken(text: str) -> None:
    assert inputs_of(body(inputs={"body": [text]}))["body"] == [text]


@pytest.mark.parametrize("text", ["@", "@x", "@parameters('n')", "@{x}", "a@{x}", "@{"])
def test_an_expression_in_an_action_is_told_with_its_text(text: str) -> None:
    (fault,) = faults(body(inputs={"body": {"a": [text]}}))
    assert fault.field == "action.inputs.body.a.0"
    assert repr(text) in fault.reason


def test_what_a_thing_is_named_is_no_expression() -> None:
    assert inputs_of(body(inputs={"body": {"@a": 1}}))["body"] == {"@a": 1}


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
        (body(state="Paused"), "state must be 'Enabled' or 'Completed'"),
        (body(action={"type": "Wait"}), "action.type must be 'Http'"),
        (body(action=5), "action must be an object"),
        (
            body(trigger={"type": "Once", "maxLateness": "P3661D"}),
            "trigger.maxLateness must last from P0D to P3660D",
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


def test_a_trigger_by_itself_gives_its_schedule() -> None:
    schedule = parse_trigger(TRIGGER | {"skipInitialRun": None}, None, NOON)
    assert schedule.at_or_after(NOON) == NOON


def test_all_models_have_a_json_schema() -> None:
    schema = JobRequest.model_json_schema()
    assert schema["additionalProperties"] is False
    assert schema["properties"]["historyLimit"] == {
        "default": 100,
        "maximum": 1000,
        "minimum": 1,
        "title": "Historylimit",
        "type": "integer",
    }


def test_a_model_is_told_of_by_the_path_it_stands_at() -> None:
    model, told = read_model(JobRequest, 5, "job.3")
    assert model is None
    assert told == [Fault("job.3", "must be an object")]
