"""The app in the genuine worker: what it indexes, and each kind of function on a real storage."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.storage.queue import QueueMessage, TextBase64DecodePolicy
from azure.storage.queue.aio import QueueClient

from shared.wiring import Store
from tests.harness import Receiver, http_job
from tests.runtime.worker import FAILURE, SUCCESS, Outcome, Worker, working

RETURN = {"type": "http", "direction": "OUT", "name": "$return"}
FAR = datetime.now(UTC).replace(microsecond=0) + timedelta(days=365)
NOWHERE = "http://127.0.0.1:9/"


def http(method: str, route: str, level: str = "FUNCTION") -> list[dict[str, Any]]:
    trigger = {"type": "httpTrigger", "direction": "IN", "name": "req"}
    return [trigger | {"methods": [method], "route": route, "authLevel": level}, RETURN]


def queue(name: str) -> list[dict[str, Any]]:
    return [{"type": "queueTrigger", "name": "msg", "queueName": name, "connection": "AzureWebJobsStorage"}]


FUNCTIONS = {
    "create_job": http("POST", "jobs"),
    "list_jobs": http("GET", "jobs"),
    "put_job": http("PUT", "jobs/{id}"),
    "get_job": http("GET", "jobs/{id}"),
    "delete_job": http("DELETE", "jobs/{id}"),
    "suspend_job": http("POST", "jobs/{id}/suspend"),
    "resume_job": http("POST", "jobs/{id}/resume"),
    "list_occurrences": http("GET", "jobs/{id}/occurrences"),
    "run_job": http("POST", "jobs/{id}/run"),
    "list_runs": http("GET", "jobs/{id}/runs"),
    "get_run": http("GET", "jobs/{id}/runs/{seq}"),
    "cancel_run": http("POST", "jobs/{id}/runs/{seq}/cancel"),
    "resubmit_run": http("POST", "jobs/{id}/runs/{seq}/resubmit"),
    "bulk_jobs": http("POST", "bulk/jobs"),
    "create_timer_job": http("POST", "CreateTimerJob"),
    "register_host": http("POST", "hosts"),
    "release_host": http("DELETE", "hosts/{host}"),
    "renew_host": http("POST", "hosts/{host}/renew"),
    "host_events": http("GET", "hosts/{host}/events"),
    "try_load_runnable": http("POST", "hosts/{host}/tryLoadRunnable"),
    "load_instance": http("POST", "hosts/{host}/load"),
    "save_instance": http("POST", "hosts/{host}/save"),
    "query_activatable": http("POST", "hosts/{host}/queryActivatable"),
    "preview": http("POST", "preview"),
    "health": http("GET", "health", "ANONYMOUS"),
    "openapi": http("GET", "openapi.json"),
    "dispatch": queue("%QUEUE_NAME%"),
    "poison": queue("%QUEUE_NAME%-poison"),
    "detect": [{"type": "timerTrigger", "name": "timer", "schedule": "%DETECTION_SCHEDULE%", "useMonitor": False}],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_indexed_with_its_bindings(worker: Worker, name: str) -> None:
    # Whether a trigger's direction is told is the library's choice: a trigger has but one.
    expected = [{"direction": "IN"} | binding for binding in FUNCTIONS[name]]
    assert [{"direction": "IN"} | binding for binding in worker.functions[name]] == expected


def test_no_other_function_is_indexed(worker: Worker) -> None:
    assert worker.functions.keys() == FUNCTIONS.keys()


def test_an_app_with_a_wrong_annotation_fails_to_index(python: Path, tmp_path: Path) -> None:
    (tmp_path / "function_app.py").write_text(
        "import azure.functions as func\n"
        "app = func.FunctionApp()\n"
        "@app.queue_trigger('msg', queue_name='q', connection='c')\n"
        "async def dispatch(msg: func.TimerRequest) -> None: ...\n"
    )
    with working(python, tmp_path, {}) as worker:
        assert "Python type annotation TimerRequest" in str(worker.error)


async def test_a_job_is_created(worker: Worker) -> None:
    made = await worker.request("create_job", "POST", "jobs", {"id": "made", **http_job(NOWHERE, start=FAR)})
    assert (made.status, made.code) == (SUCCESS, "201"), made
    assert made.headers["Content-Type"] == "application/json"
    assert made.headers["Location"] == "/api/jobs/made"
    assert datetime.fromisoformat(made.json["nextOccurrence"]) == FAR

    read = await worker.request("get_job", "GET", "jobs/made", id="made")
    assert (read.status, read.code) == (SUCCESS, "200")
    assert read.headers["ETag"] == made.headers["ETag"] != ""
    assert read.json["id"] == "made"


async def test_the_other_routes_answer(worker: Worker) -> None:
    job = http_job(NOWHERE, start=FAR)
    answers = [
        await worker.request("put_job", "PUT", "jobs/put", job, id="put"),
        await worker.request("list_jobs", "GET", "jobs?prefix=put"),
        await worker.request("list_runs", "GET", "jobs/put/runs", id="put"),
        await worker.request("preview", "POST", "preview", {"trigger": job["trigger"]}),
        await worker.request("suspend_job", "POST", "jobs/put/suspend", id="put"),
        await worker.request("run_job", "POST", "jobs/put/run", id="put"),
        await worker.request("get_run", "GET", "jobs/put/runs/1", id="put", seq="1"),
        await worker.request("cancel_run", "POST", "jobs/put/runs/1/cancel", id="put", seq="1"),
        await worker.request("resubmit_run", "POST", "jobs/put/runs/1/resubmit", id="put", seq="1"),
        await worker.request("resume_job", "POST", "jobs/put/resume", id="put"),
        await worker.request("list_occurrences", "GET", "jobs/put/occurrences?count=2", id="put"),
        await worker.request("delete_job", "DELETE", "jobs/put", id="put"),
    ]
    assert [(answer.status, answer.code) for answer in answers] == [
        (SUCCESS, code)
        for code in ["201", "200", "200", "200", "200", "202", "200", "202", "202", "200", "200", "204"]
    ], answers
    assert [job["id"] for job in answers[1].json["value"]] == ["put"]
    assert len(answers[-2].json["value"]) == 2
    assert answers[-1].body == ""


async def test_answers_of_other_types_are_handed_on_as_they_are(worker: Worker) -> None:
    line = json.dumps({"op": "put", "id": "bulk", "job": http_job(NOWHERE, start=FAR)}).encode()
    told = await worker.request("bulk_jobs", "POST", "bulk/jobs", line + b"\n{\n")
    assert (told.status, told.code, told.headers["Content-Type"]) == (SUCCESS, "200", "application/x-ndjson"), told
    assert [json.loads(answer)["status"] for answer in told.body.splitlines()] == [201, 400]

    timer = {"timerjobid": "t", "jobRecurrence": {"frequency": "day", "interval": 1}}
    action = {"type": "Http", "inputs": {"method": "GET", "uri": NOWHERE}}
    made = await worker.request("create_timer_job", "POST", "CreateTimerJob", timer | {"action": action})
    assert (made.status, made.code) == (SUCCESS, "201"), made
    assert made.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert made.body.startswith("Next execution time will be at ")
    assert made.headers["Location"].startswith("/api/jobs/timerjob-")


async def test_a_malformed_job_is_a_problem(worker: Worker) -> None:
    refused = await worker.request("create_job", "POST", "jobs", b'{"trigger": ')
    assert (refused.status, refused.code) == (SUCCESS, "400")
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert [fault["field"] for fault in refused.json["errors"]] == ["body"]


async def test_health_is_told(worker: Worker) -> None:
    told = await worker.request("health", "GET", "health")
    assert (told.status, told.code) == (SUCCESS, "200")
    assert told.json == {"status": "Healthy"}


async def test_a_ticket_leads_to_one_call(worker: Worker, settings: dict[str, str], target: Receiver) -> None:
    job = {"id": "now"} | http_job(target.url, every=3600)
    assert (await worker.request("create_job", "POST", "jobs", job)).code == "201"
    async with asyncio.timeout(30):
        while not target.hits:
            for outcome in await deliver(worker, settings):
                assert outcome.status == SUCCESS, outcome.error
    runs = await worker.request("list_runs", "GET", "jobs/now/runs", id="now")
    assert [run["status"] for run in runs.json["value"]] == ["Succeeded"]
    called = [(hit.job, hit.method, hit.start) for hit in target.hits]
    assert called == [("now", "POST", run["startTime"]) for run in runs.json["value"]]


async def deliver(worker: Worker, settings: Mapping[str, str]) -> list[Outcome]:
    """What the host does: takes the visible messages, undoes base64, and deletes what succeeded."""
    async with QueueClient.from_connection_string(
        settings["AzureWebJobsStorage"], settings["QUEUE_NAME"], message_decode_policy=TextBase64DecodePolicy()
    ) as client:
        outcomes = []
        async for message in client.receive_messages(visibility_timeout=600):
            outcome = await worker.invoke("dispatch", {"string": message.content}, metadata(message))
            if outcome.status == SUCCESS:
                await client.delete_message(message)
            outcomes.append(outcome)
        return outcomes


def metadata(message: QueueMessage) -> dict[str, dict[str, str]]:
    """What the host tells of a message beside its body."""
    times = {
        "InsertionTime": message.inserted_on,
        "ExpirationTime": message.expires_on,
        "NextVisibleTime": message.next_visible_on,
    }
    return {
        "Id": {"string": message.id},
        "PopReceipt": {"string": str(message.pop_receipt)},
        "DequeueCount": {"json": str(message.dequeue_count)},
    } | {name: {"json": json.dumps(time.isoformat())} for name, time in times.items() if time}


async def test_what_is_no_ticket_fails_so_that_it_becomes_poison(worker: Worker) -> None:
    outcome = await worker.invoke("dispatch", {"string": "no ticket"})
    assert outcome.status == FAILURE
    assert "read_ticket" in str(outcome.error)


async def test_poison_is_dropped(worker: Worker) -> None:
    outcome = await worker.invoke("poison", {"string": "no ticket"})
    assert outcome.status == SUCCESS, outcome.error


async def test_the_timer_runs_detection(worker: Worker, store: Store) -> None:
    began = datetime.now(UTC)
    timer = {
        "Schedule": {"AdjustForDST": True},
        "ScheduleStatus": {"Last": "0001-01-01T00:00:00", "Next": "2026-01-01T00:00:00+00:00"},
        "IsPastDue": False,
    }
    outcome = await worker.invoke("detect", {"json": json.dumps(timer)})
    assert outcome.status == SUCCESS, outcome.error
    progress = await store.ledger.progress()
    assert progress is not None
    assert progress.cycle_ended >= began
    assert progress.reach > began + timedelta(minutes=14)
