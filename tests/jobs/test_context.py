"""What action inputs may use of their run, and the events of a job's life."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import Fault, InvalidInput
from shared.expressions import evaluate
from shared.jobs.context import TOLD, Completion, RunContext, check_inputs, job_event
from shared.jobs.model import Ended, Run, Status, Stretch
from shared.jobs.times import row_text

SCHEDULED = datetime(2026, 9, 8, 13, 0, tzinfo=UTC)
STARTED = SCHEDULED + timedelta(milliseconds=250)
WINDOW = (SCHEDULED, SCHEDULED + timedelta(hours=1))
BOUNDS = {"windowStartTime": "2026-09-08T13:00:00Z", "windowEndTime": "2026-09-08T14:00:00Z"}
PARAMETERS: dict[str, Any] = {"n": 6, "it's": "x", "none": None, "o": {"a": [1]}}

POINT = RunContext(
    job_id="cust-42.nightly",
    seq=7,
    stamp="s1",
    scheduled=SCHEDULED,
    started=STARTED,
    window=None,
    parameters=PARAMETERS,
)
SLIDING = replace(POINT, window=WINDOW)

EVENT = {
    "specversion": "1.0",
    "id": "cust-42.nightly:s1:20260908T130000Z",
    "source": "/jobs/cust-42.nightly",
    "type": "timerjobs.occurrence",
    "subject": "7",
    "time": "2026-09-08T13:00:00.250Z",
    "datacontenttype": "application/json",
    "data": {
        "jobId": "cust-42.nightly",
        "run": 7,
        "scheduledTime": "2026-09-08T13:00:00Z",
        "startTime": "2026-09-08T13:00:00.250Z",
    },
}
SLIDING_EVENT = EVENT | {"data": {**EVENT["data"], **BOUNDS}}  # type: ignore[dict-item]

ALWAYS = {
    "@parameters('n')": 6,
    "@parameters('it''s')": "x",
    "@parameters('none')": None,
    "@parameters('o')": {"a": [1]},
    "@{parameters('o')}": '{"a":[1]}',
    "@trigger().scheduledTime": "2026-09-08T13:00:00Z",
    "@trigger().startTime": "2026-09-08T13:00:00.250Z",
    "@trigger()?['startTime']": "2026-09-08T13:00:00.250Z",
    "@workflow().run.name": "cust-42.nightly-7",
    "@workflow()?['run']?['name']": "cust-42.nightly-7",
    "run @{workflow().run.name} of @{trigger().scheduledTime}": "run cust-42.nightly-7 of 2026-09-08T13:00:00Z",
    "@@trigger()": "@trigger()",
    "a@@{trigger()}": "a@{trigger()}",
}
WITH_WINDOWS = {
    "@trigger().outputs.windowStartTime": "2026-09-08T13:00:00Z",
    "@trigger().outputs.windowEndTime": "2026-09-08T14:00:00Z",
    "@trigger()?.outputs?['windowEndTime']": "2026-09-08T14:00:00Z",
    "@{trigger().outputs.windowStartTime}/@{trigger().outputs.windowEndTime}": (
        "2026-09-08T13:00:00Z/2026-09-08T14:00:00Z"
    ),
}
NEVER = {
    "@parameters('N')": "parameters('N')",
    "@parameters()": "parameters",
    "@parameters('o').a": "parameters('o').a",
    "@trigger('x')": "trigger",
    "@trigger().outputs": "trigger().outputs",
    "@trigger().time": "trigger().time",
    "@trigger().data.run": "trigger().data.run",
    "@trigger().outputs.body": "trigger().outputs.body",
    "@workflow()": "workflow()",
    "@workflow().run": "workflow().run",
    "@workflow().name": "workflow().name",
    "@triggerBody()": "triggerBody",
    "@utcNow()": "utcNow",
    "@{body('Call')}": "body",
    "@actions('Call').outputs": "actions",
    "@concat('a', trigger().startTime)": "concat",
    "@{trigger()": "@{",
}


def http(body: object, **inputs: object) -> dict[str, Any]:
    return {"Call": {"type": "Http", "inputs": {"uri": "https://example.org/", "body": body, **inputs}}}


def reasons(text: str, has_windows: bool = True) -> list[str]:
    return [fault.reason for fault in check_inputs(http(text), PARAMETERS, has_windows)]


# At creation.


@pytest.mark.parametrize("text", ["@trigger()", "@{trigger()}", *ALWAYS])
@pytest.mark.parametrize("has_windows", [True, False])
def test_what_every_job_may_use_is_accepted(text: str, has_windows: bool) -> None:
    assert reasons(text, has_windows) == []


@pytest.mark.parametrize("text", WITH_WINDOWS)
def test_windows_are_there_for_a_sliding_window_only(text: str) -> None:
    assert reasons(text) == []
    (reason,) = reasons(text, has_windows=False)
    assert reason.startswith("'trigger().outputs.window")
    assert reason.endswith("; only a trigger of type SlidingWindow has windows")
    assert "outputs" not in reason.split("only", 1)[1]


@pytest.mark.parametrize(("text", "named"), NEVER.items())
@pytest.mark.parametrize("has_windows", [True, False])
def test_anything_else_is_refused_and_named(text: str, named: str, has_windows: bool) -> None:
    (reason,) = reasons(text, has_windows)
    assert named in reason


def test_all_that_may_be_used_is_told() -> None:
    assert reasons("@utcNow()") == [
        "the function 'utcNow' cannot be used here, only parameters('name'), trigger(), trigger().scheduledTime,"
        " trigger().startTime, trigger().outputs.windowStartTime, trigger().outputs.windowEndTime,"
        " workflow().run.name; '@@' stands for a plain '@'"
    ]


def test_faults_name_the_field_they_are_in() -> None:
    actions = http({"day": "@x()", "list": [0, {"b": "@{y()}"}]}, uri="https://example.org/@{z()}")
    actions["Pause"] = {"type": "Wait", "inputs": {"interval": {"count": "@parameters('m')"}}}
    assert sorted(fault.field for fault in check_inputs(actions, PARAMETERS, False)) == [
        "actions.Call.inputs.body.day",
        "actions.Call.inputs.body.list.1.b",
        "actions.Call.inputs.uri",
        "actions.Pause.inputs.interval.count",
    ]


def test_an_unknown_parameter_is_told_at_the_field() -> None:
    assert check_inputs(http("@parameters('m')"), PARAMETERS, False) == [
        Fault("actions.Call.inputs.body", "parameters('m') does not exist")
    ]


def test_only_inputs_hold_expressions() -> None:
    action = {"type": "@x()", "limit": {"timeout": "@x()"}, "runAfter": {"@x()": ["@x()"]}, "inputs": {"@x()": 1}}
    assert check_inputs({"@x()": action}, {}, False) == []


@pytest.mark.parametrize(
    "actions", [None, 1, "@x()", ["@x()"], {"a": None}, {"a": "@x()"}, {"a": {"inputs": None}}]
)
def test_what_has_not_the_shape_of_actions_is_left_to_others(actions: object) -> None:
    assert check_inputs(actions, {}, False) == []


@pytest.mark.parametrize("parameters", [None, [], ["n"], "n", 1])
def test_what_is_no_object_has_no_parameters(parameters: object) -> None:
    assert len(check_inputs(http("@parameters('n')"), parameters, False)) == 1
    assert check_inputs(http("plain"), parameters, False) == []


# At run time.


def value_of(text: object, context: RunContext) -> Any:
    return evaluate(text, context.functions(), "actions.Call.inputs")


@pytest.mark.parametrize(("text", "value"), ALWAYS.items())
def test_every_run_gives_what_it_knows(text: str, value: object) -> None:
    assert value_of(text, POINT) == value
    assert value_of(text, SLIDING) == value


@pytest.mark.parametrize(("text", "value"), WITH_WINDOWS.items())
def test_a_run_of_a_sliding_window_gives_its_bounds(text: str, value: object) -> None:
    assert value_of(text, SLIDING) == value


def test_the_trigger_as_a_whole_is_an_event() -> None:
    assert value_of("@trigger()", POINT) == EVENT == POINT.event()
    assert value_of({"body": ["@trigger()"]}, SLIDING) == {"body": [SLIDING_EVENT]}
    assert json.loads(value_of("@{trigger()}", SLIDING)) == SLIDING_EVENT


def test_a_run_without_a_window_has_no_bounds_to_give() -> None:
    by_hand = replace(POINT, by_hand=True)
    with pytest.raises(InvalidInput) as refused:
        value_of({"body": ["@trigger().outputs.windowEndTime"]}, by_hand)
    assert list(refused.value.faults) == [
        Fault(
            "actions.Call.inputs.body.0",
            "'trigger().outputs.windowEndTime' has no value: there is no 'windowEndTime'",
        )
    ]
    assert value_of("@trigger().outputs?.windowEndTime", by_hand) is None


@pytest.mark.parametrize("text", NEVER)
@pytest.mark.parametrize("context", [POINT, SLIDING], ids=["point", "sliding"])
def test_what_the_check_refuses_has_no_value(text: str, context: RunContext) -> None:
    with pytest.raises(InvalidInput):
        value_of(text, context)


calls = st.tuples(
    st.sampled_from(["parameters", "trigger", "workflow", "utcNow"]),
    st.sampled_from(["", "'n'", "'m'", "n", " "]),
    st.lists(
        st.tuples(
            st.sampled_from([".{}", "['{}']", " [ '{}' ] "]),
            st.sampled_from(
                ["scheduledTime", "startTime", "outputs", "windowStartTime", "windowEndTime", "run", "name", "id"]
            ),
        ).map(lambda pair: pair[0].format(pair[1])),
        max_size=3,
    ).map("".join),
).map(lambda parts: f"{parts[0]}({parts[1]}){parts[2]}")
texts = st.tuples(
    st.sampled_from(["@{}", "@{{{}}}", "a @{{{}}} b", "@@{}", "@@{{{}}}", "{}", "@{{{}"]), calls
).map(lambda pair: pair[0].format(pair[1]))


@settings(deadline=None)
@given(texts | st.sampled_from([*ALWAYS, *WITH_WINDOWS, *NEVER]), st.booleans())
def test_what_is_accepted_at_creation_has_a_value_in_every_run_and_nothing_else_has(
    text: str, has_windows: bool
) -> None:
    context = SLIDING if has_windows else POINT
    accepted = check_inputs(http(text), PARAMETERS, has_windows) == []
    try:
        value_of(text, context)
    except InvalidInput:
        assert not accepted
    else:
        assert accepted or "?" in text


# Events of occurrences.


def assert_cloud_event(event: dict[str, Any]) -> None:
    """What CloudEvents 1.0 asks of any event, and what makes it JSON."""
    assert all(re.fullmatch(r"[a-z0-9]{1,20}", name) for name in event)
    assert event["specversion"] == "1.0"
    assert all(isinstance(event[name], str) and event[name] for name in ("id", "source", "type", "subject"))
    assert re.fullmatch(r"/jobs/[A-Za-z0-9._~-]+", event["source"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", event["time"])
    assert event["datacontenttype"] == "application/json"
    assert json.loads(json.dumps(event)) == event


@pytest.mark.parametrize("context", [POINT, SLIDING, replace(POINT, by_hand=True)])
def test_the_event_of_an_occurrence_is_a_cloud_event(context: RunContext) -> None:
    assert_cloud_event(context.event())


def test_an_occurrence_has_one_id_whatever_is_tried() -> None:
    again = replace(POINT, seq=8, started=STARTED + timedelta(minutes=5))
    assert again.event()["id"] == POINT.event()["id"]


def test_different_occurrences_have_different_ids() -> None:
    contexts = [
        POINT,
        replace(POINT, scheduled=SCHEDULED + timedelta(seconds=1)),
        replace(POINT, stamp="s2"),
        replace(POINT, job_id="cust-42"),
        replace(POINT, by_hand=True),
        replace(POINT, by_hand=True, seq=8),
    ]
    assert len({context.event()["id"] for context in contexts}) == len(contexts)


def test_runs_made_by_hand_are_known_by_their_number() -> None:
    assert replace(POINT, by_hand=True).event()["id"] == "cust-42.nightly:s1:run-7"


@settings(deadline=None)
@given(st.tuples(*[st.tuples(st.from_regex(r"[a-z0-9._~-]{1,4}", fullmatch=True), st.integers(1, 99))] * 2))
def test_no_two_runs_have_one_name(pair: tuple[tuple[str, int], tuple[str, int]]) -> None:
    one, other = (replace(POINT, job_id=job_id, seq=seq).run_name for job_id, seq in pair)
    assert (one == other) is (pair[0] == pair[1])


@pytest.mark.parametrize("by_hand", [True, False])
@pytest.mark.parametrize("window", [None, WINDOW])
def test_a_stored_run_gives_its_context(by_hand: bool, window: tuple[datetime, datetime] | None) -> None:
    run = Run(
        job_id=POINT.job_id,
        seq=7,
        stamp="s1",
        definition=b"",
        scheduled=SCHEDULED,
        fired_at=STARTED,
        window=window,
        by_hand=by_hand,
        takeovers=3,
    )
    context = RunContext.of(run, PARAMETERS)
    assert context == replace(POINT, by_hand=by_hand, window=window)
    assert run.idempotency_key("Call") == f"{context.event()['id']}:Call"


# Events of a job's life.

ENDED = Ended(
    seq=7,
    status=Status.FAILED,
    scheduled=SCHEDULED,
    started=STARTED,
    ended=STARTED + timedelta(seconds=2),
    attempts=4,
    reason="the target answered 500",
)
STRETCH = Stretch(
    seq=9, status=Status.MISSED, first=SCHEDULED, last=SCHEDULED + timedelta(hours=2), count=3, reason="too late"
)
COMPLETION = Completion(seq=9, at=STARTED)
RECORDS: list[Ended | Stretch | Completion] = [
    *(replace(ENDED, status=status) for status in sorted(TOLD - {Status.MISSED, Status.SKIPPED})),
    *(replace(STRETCH, status=status) for status in (Status.MISSED, Status.SKIPPED)),
    replace(STRETCH, last=STRETCH.last + timedelta(hours=1), count=4),
    COMPLETION,
    COMPLETION._replace(seq=10),  # revived, and completed again
]


def event_of(record: Ended | Stretch | Completion) -> dict[str, Any]:
    return job_event("nightly", "s1", record)


def test_a_run_that_failed_is_told() -> None:
    assert event_of(ENDED) == {
        "specversion": "1.0",
        "id": "nightly:s1:7:failed",
        "source": "/jobs/nightly",
        "type": "timerjobs.run.failed",
        "subject": "7",
        "time": "2026-09-08T13:00:02.250Z",
        "datacontenttype": "application/json",
        "data": {
            "jobId": "nightly",
            "run": 7,
            "status": "Failed",
            "reason": "the target answered 500",
            "scheduledTime": "2026-09-08T13:00:00Z",
            "startTime": "2026-09-08T13:00:00.250Z",
            "endTime": "2026-09-08T13:00:02.250Z",
            "attempts": 4,
        },
    }


def test_a_stretch_of_missed_occurrences_is_told_as_one() -> None:
    event = event_of(STRETCH)
    assert (event["type"], event["subject"], event["time"]) == (
        "timerjobs.run.missed",
        "9",
        "2026-09-08T15:00:00Z",
    )
    assert event["data"] == {
        "jobId": "nightly",
        "run": 9,
        "status": "Missed",
        "reason": "too late",
        "from": "2026-09-08T13:00:00Z",
        "to": "2026-09-08T15:00:00Z",
        "count": 3,
    }


def test_that_a_job_is_completed_is_told() -> None:
    event = event_of(COMPLETION)
    assert event["type"] == "timerjobs.job.completed"
    assert event["time"] == "2026-09-08T13:00:00.250Z"
    assert event["data"] == {"jobId": "nightly", "run": 9}


def test_the_window_of_a_run_is_told() -> None:
    record = replace(ENDED, window=(row_text(WINDOW[0]), row_text(WINDOW[1])))
    assert event_of(record)["data"] == event_of(ENDED)["data"] | BOUNDS


def test_a_reason_is_told_only_if_there_is_one() -> None:
    assert "reason" not in event_of(replace(ENDED, reason=""))["data"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (Status.FAILED, "timerjobs.run.failed"),
        (Status.MISSED, "timerjobs.run.missed"),
        (Status.SKIPPED, "timerjobs.run.skipped"),
        (Status.CANCELLED, "timerjobs.run.cancelled"),
        (Status.TIMED_OUT, "timerjobs.run.timedout"),
    ],
)
def test_the_type_says_how_it_ended(status: Status, kind: str) -> None:
    assert event_of(replace(ENDED, status=status))["type"] == kind
    assert event_of(replace(STRETCH, status=status))["type"] == kind


@pytest.mark.parametrize("status", sorted(set(Status) - TOLD))
def test_nothing_is_told_of_other_statuses(status: Status) -> None:
    with pytest.raises(ValueError, match=status):
        event_of(replace(ENDED, status=status))


def test_events_of_a_jobs_life_are_cloud_events() -> None:
    for record in RECORDS:
        assert_cloud_event(event_of(record))


def test_the_same_record_has_the_same_event_and_others_have_other_ids() -> None:
    assert [event_of(record) for record in RECORDS] == [event_of(record) for record in RECORDS]
    ids = {event_of(record)["id"] for record in RECORDS}
    ids |= {job_event("nightly", "s2", record)["id"] for record in RECORDS}
    ids |= {job_event("daily", "s1", record)["id"] for record in RECORDS}
    assert len(ids) == 3 * len(RECORDS)


def test_an_event_of_the_jobs_life_is_no_occurrence() -> None:
    contexts = [replace(POINT, job_id="nightly"), replace(POINT, job_id="nightly", by_hand=True)]
    ids = {context.event()["id"] for context in contexts}
    assert not ids & {event_of(record)["id"] for record in RECORDS}
