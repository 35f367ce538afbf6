"""What a request may say of a job, and the definition it gives."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.jobs.definition import DEFAULT_TIMEOUT, Definition, action_timeout
from shared.jobs.model import State
from shared.jobs.request import JobRequest
from shared.jobs.spec import READ_ONLY, parse_job, parse_trigger

NOON = datetime(2026, 9, 8, 12, tzinfo=UTC)
TRIGGER = {"type": "Recurrence", "recurrence": {"frequency": "Day", "interval": 1}}


def body(*, inputs: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A valid job; `inputs` goes into its action's, `more` to the top."""
    given = {"method": "GET", "uri": "https://example.org/"} | (inputs or {})
    return {"trigger": TRIGGER, "action": {"type": "Http", "inputs": given}} | more


def definition(given: dict[str, Any]) -> dict[str, Any]:
    return parse_job(given, NOON).definition


def inputs_of(given: dict[str, Any]) -> Any:
    return definition(given)["actions"]["Action"]["inputs"]


def test_the_definition_holds_what_was_given_and_the_defaults_that_reading_needs() -> None:
    given = body(id="a", state="Enabled", description="d")
    asked = parse_job(given, NOON)
    assert asked.definition == {
        "serviceType": "TimerJob",
        "historyLimit": 100,
        "description": "d",
        "trigger": TRIGGER,
        "actions": {"Action": given["action"]},
    }
    assert (asked.id, asked.state, asked.trigger_at, asked.short) == ("a", State.ENABLED, "trigger", True)
    assert asked.schedule.same_as(parse_trigger(TRIGGER, None, NOON))


@pytest.mark.parametrize(
    ("given", "state"),
    [
        (None, None),
        ("Enabled", State.ENABLED),
        ("Suspended", State.SUSPENDED),
        ("Disabled", State.SUSPENDED),
        ("Completed", None),
    ],
)
def test_a_state_is_no_part_of_the_definition(given: str | None, state: State | None) -> None:
    asked = parse_job(body(state=given), NOON)
    assert (asked.state, asked.definition) == (state, definition(body()))


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
    assert action_timeout(Definition(definition(given)).actions["Action"]) == DEFAULT_TIMEOUT


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


@pytest.mark.parametrize(
    "text",
    [
        "@parameters('n')",
        "n is @{parameters('n')}",
        "@trigger()",
        "@trigger().scheduledTime",
        "@trigger().startTime",
        "@workflow().run.name",
        "@@ and @{workflow().run.name}",
    ],
)
def test_an_expression_in_an_action_is_kept_as_it_is_written(text: str) -> None:
    assert inputs_of(body(inputs={"body": {"a": [text]}}, parameters={"n": 1}))["body"] == {"a": [text]}


def test_what_a_thing_is_named_is_no_expression() -> None:
    assert inputs_of(body(inputs={"body": {"@a": 1}}))["body"] == {"@a": 1}


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
