"""How faults are told: all at once, in short, and nothing of what concerns the operator."""

from typing import Any

import pytest

from tests.harness import Bench
from tests.web.support import NOON_TEXT, ask, fields, put, put_in, valid


async def test_all_independent_faults_are_told_at_once(at: Bench) -> None:
    body = {
        "id": "a b",
        "colour": "red",
        "description": 5,
        "tags": {"a": 1, "b": 2},
        "state": "Paused",
        "parameters": [],
        "historyLimit": 0,
        "deleteAfter": "soon",
        "trigger": {
            "type": "Recurrence",
            "jitter": "PT25H",
            "operationOptions": "Twice",
            "runtimeConfiguration": {"concurrency": {"runs": 0, "maximumWaitingRuns": -1}},
            "inputs": {"delay": "PT1H"},
            "maxLateness": "1h",
            "skipInitialRun": "yes",
            "runAt": NOON_TEXT,
            "recurrence": {
                "frequency": "Fortnight",
                "interval": 0,
                "timeZone": "Atlantis",
                "startTime": "today",
                "endTime": "tomorrow",
                "count": -1,
                "extra": 1,
                "schedule": {"hours": [25], "minutes": [], "weekDays": ["Mon"], "other": 1},
            },
        },
        "actions": {
            "Call": {
                "type": "Http",
                "runAfter": {"Pause": ["Done"], "Nothing": ["Succeeded"]},
                "operationOptions": "Twice",
                "runtimeConfiguration": {"secureData": {"properties": ["all"]}},
                "limit": {"timeout": "PT1H"},
                "inputs": {
                    "method": "get",
                    "uri": "ftp://x",
                    "headers": {"Host": "x", "a b": "c", "d": "\n"},
                    "queries": {"a": []},
                    "body": ["@now()", {"b": "@{x}"}],
                    "retryPolicy": {"type": "fixed", "count": 91},
                    "authentication": {"type": "Raw", "value": {"setting": "PASSWORD"}},
                },
            },
            "Pause": {"type": "Wait", "inputs": {}, "runAfter": {"Pause": ["Succeeded"]}},
            "Send": {"type": "Queue", "inputs": {"queue": "x"}},
        },
    }
    response = await ask(at, "create", body)
    assert response.status == 400
    assert sorted(fields(response)) == sorted(
        [
            "id",
            "colour",
            "description",
            "tags.a",
            "tags.b",
            "state",
            "parameters",
            "historyLimit",
            "deleteAfter",
            "trigger.jitter",
            "trigger.operationOptions",
            "trigger.runtimeConfiguration.concurrency.runs",
            "trigger.runtimeConfiguration.concurrency.maximumWaitingRuns",
            "trigger.inputs.delay",
            "trigger.maxLateness",
            "trigger.skipInitialRun",
            "trigger.runAt",
            "trigger.recurrence.frequency",
            "trigger.recurrence.interval",
            "trigger.recurrence.timeZone",
            "trigger.recurrence.startTime",
            "trigger.recurrence.endTime",
            "trigger.recurrence.count",
            "trigger.recurrence.extra",
            "trigger.recurrence.schedule.hours",
            "trigger.recurrence.schedule.minutes",
            "trigger.recurrence.schedule.weekDays",
            "trigger.recurrence.schedule.other",
            "actions.Call.runAfter.Pause.0",
            "actions.Call.runAfter.Nothing",
            "actions.Call.operationOptions",
            "actions.Call.runtimeConfiguration.secureData.properties.0",
            "actions.Call.limit.timeout",
            "actions.Call.inputs.method",
            "actions.Call.inputs.uri",
            "actions.Call.inputs.headers.Host",
            "actions.Call.inputs.headers.a b",
            "actions.Call.inputs.headers.d",
            "actions.Call.inputs.queries.a",
            "actions.Call.inputs.body.0",
            "actions.Call.inputs.body.1.b",
            "actions.Call.inputs.retryPolicy.count",
            "actions.Call.inputs.retryPolicy.interval",
            "actions.Call.inputs.authentication.value.setting",
            "actions.Pause.inputs",
            "actions.Pause.runAfter",
            "actions.Send.inputs.queue",
            "actions.Send.inputs.message",
        ]
    )


async def test_the_detail_sums_up_the_first_faults(at: Bench) -> None:
    response = await ask(at, "create", put_in("historyLimit", 0) | {"tags": 5})
    assert response.body["detail"] == "tags must be an object; historyLimit must be an integer from 1 to 1000"


async def test_of_a_thing_of_an_unknown_type_nothing_but_that_is_told(at: Bench) -> None:
    wait = {"type": "Sleep", "inputs": {"interval": {"count": 5, "unit": "@parameters('unit')"}}, "runAfter": []}
    window = {"type": "Window", "inputs": {"delay": "PT1H"}, "recurrence": {"frequency": "x"}}
    response = await ask(at, "create", valid(action=wait, trigger=window))
    assert sorted(fields(response)) == ["action.type", "trigger.type"]


async def test_all_query_faults_are_told_at_once(at: Bench) -> None:
    response = await ask(at, "list", query={"a": "1", "b": "2"})
    assert fields(response) == ["a", "b"]
    assert fields(await ask(at, "list", query={"state": "x", "tag": "y"})) == ["state", "tag"]


async def test_ten_thousand_faults_make_no_endless_answer(at: Bench) -> None:
    response = await ask(at, "create", valid() | {f"unknown-{n}": 1 for n in range(10_000)})
    assert response.status == 400
    assert len(fields(response)) == 100


async def test_storage_that_does_not_answer_makes_routes_unavailable(
    at: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def at_once(*_: Any) -> None: ...

    monkeypatch.setattr("azure.core.pipeline.transport.AioHttpTransport.sleep", at_once)
    at.wire.lose_answer = lambda line: True
    for response in (await ask(at, "get", job="a"), await ask(at, "list"), await put(at, "a", valid())):
        assert response.status == 503
        assert response.headers["Content-Type"] == "application/problem+json"
        assert response.body["detail"] == "storage does not answer; try again later"
    at.wire.lose_answer = lambda line: False


async def test_a_fault_of_the_apps_own_is_told_by_a_number_only(
    at: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(job_id: str) -> None:
        raise KeyError("secret")

    monkeypatch.setattr(at.app.admin, "get", fail)
    response = await ask(at, "get", job="a")
    assert response.status == 500
    assert response.headers["Content-Type"] == "application/problem+json"
    assert "secret" not in response.content().decode()
    number = response.body["detail"].split()[-1]
    assert number in caplog.text
    assert "secret" in caplog.text
