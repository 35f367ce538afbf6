"""Jobs that use what a job may have: taken, answered as they were given, and put back without a change."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from devhost.azurite import Azurite
from tests.harness import Bench, bench
from tests.web.support import ask, daily, every_row, put, put_in, swept, tag_of, valid

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOURLY = {"frequency": "Hour", "interval": 1, "startTime": "2026-09-08T06:00:00Z"}
WINDOW = {"type": "SlidingWindow", "recurrence": HOURLY}
CALL = valid()["action"]
STATUSES = ["Succeeded", "Failed", "Skipped", "TimedOut"]


def trigger(**more: Any) -> dict[str, Any]:
    return valid(trigger={"type": "Recurrence", "recurrence": HOURLY} | more)


def wait(**inputs: Any) -> dict[str, Any]:
    return valid(action={"type": "Wait", "inputs": inputs})


def interval(count: Any, unit: Any) -> dict[str, Any]:
    return wait(interval={"count": count, "unit": unit})


def retry(**policy: Any) -> dict[str, Any]:
    return put_in("action.inputs.retryPolicy", policy)


def authenticated(uri: str, **authentication: Any) -> dict[str, Any]:
    inputs = {"method": "GET", "uri": uri, "authentication": authentication}
    return put_in("action.inputs", inputs)


def sent(message: Any, queue: str = "orders") -> dict[str, Any]:
    return valid(action={"type": "Queue", "inputs": {"queue": queue, "message": message}})


IDENTITY = {"type": "ManagedServiceIdentity", "audience": "api://reports"}
SECRET = {"type": "Raw", "value": {"setting": "SECRET_REPORTS"}}

JOBS: dict[str, dict[str, Any]] = {
    "window": valid(trigger=WINDOW),
    "window-with-a-delay": valid(trigger=WINDOW | {"inputs": {"delay": "P2DT1H"}}),
    "window-without-a-delay": valid(trigger=WINDOW | {"inputs": {}}),
    "window-one-by-one": valid(trigger=WINDOW | {"runtimeConfiguration": {"concurrency": {"runs": 1}}}),
    "once": valid(trigger={"type": "Once", "runAt": "2026-12-24T18:00:00Z", "jitter": "PT5M"}),
    "no-jitter": trigger(jitter="PT0S"),
    "most-jitter": trigger(jitter="PT24H"),
    "least-concurrency": trigger(runtimeConfiguration={"concurrency": {"runs": 1, "maximumWaitingRuns": 0}}),
    "most-concurrency": trigger(runtimeConfiguration={"concurrency": {"runs": 50, "maximumWaitingRuns": 100}}),
    "no-concurrency": trigger(runtimeConfiguration={}),
    "single-instance": trigger(operationOptions="SingleInstance"),
    "least-delete-after": valid(deleteAfter="PT1S"),
    "most-delete-after": valid(deleteAfter="P3660D"),
    "steps": valid(
        action=None,
        actions={
            "Call": CALL | {"operationOptions": "DisableAsyncPattern", "runAfter": {}},
            "Pause": {"type": "Wait", "inputs": {"interval": {"count": 5, "unit": "Minute"}}},
            "Send": {
                "type": "Queue",
                "inputs": {"queue": "orders", "message": "go"},
                "limit": {"timeout": "PT5M"},
            },
            "Last": CALL
            | {"runAfter": {"Call": STATUSES, "Pause": ["Succeeded"], "Send": ["Failed", "TimedOut"]}},
        },
    ),
    "hundred-steps": valid(
        action=None,
        actions={f"A{n}": CALL | ({"runAfter": {f"A{n - 1}": ["Succeeded"]}} if n else {}) for n in range(100)},
    ),
    "secured": put_in("action.runtimeConfiguration", {"secureData": {"properties": ["inputs", "outputs"]}}),
    "not-secured": put_in("action.runtimeConfiguration", {}),
    "no-wait": interval(0, "Second"),
    "longest-wait": interval(90, "Day"),
    "longest-wait-in-seconds": interval(90 * 86400, "Second"),
    "longest-wait-in-months": interval(2, "Month"),
    "wait-in-lower-case": interval(1, "week"),
    "wait-by-expressions": interval("@parameters('n')", "@{parameters('n')}"),
    "wait-until": wait(until={"timestamp": "2026-12-07T12:00:00Z"}),
    "wait-until-without-seconds": wait(until={"timestamp": "2026-10-01T08:00Z"}),
    "wait-until-what-is-past": wait(until={"timestamp": "2020-01-01T00:00:00Z"}),
    "wait-until-by-expression": wait(until={"timestamp": "@trigger().scheduledTime"}),
    "message-of-text": sent("go"),
    "message-of-json": sent({"due": "@trigger().scheduledTime", "n": [1, None]}),
    "message-false": sent(False),
    "queue-of-a-short-name": sent("go", "a-b"),
    "queue-of-a-long-name": sent("go", "q" * 63),
    "fixed-retry": retry(type="fixed", count=1, interval="PT1S"),
    "most-fixed-retry": retry(type="fixed", count=90, interval="P1D"),
    "exponential-retry": retry(type="exponential", count=4, interval="PT7S"),
    "bounded-retry": retry(
        type="exponential", count=90, interval="PT1H", minimumInterval="PT1S", maximumInterval="PT1S"
    ),
    "short-retry": retry(type="exponential", count=2, interval="PT2S", maximumInterval="PT2S"),
    "identity": authenticated("https://reports.example.org/x", **IDENTITY),
    "identity-by-id": authenticated("https://reports.example.org./", **IDENTITY, identity="0a-1B"),
    "identity-path-by-expression": authenticated("https://reports.example.org/@{parameters('n')}", **IDENTITY),
    "identity-address-by-expression": authenticated("@parameters('n')", **IDENTITY),
    "secret": authenticated("https://a.b.example.net:8443/", **SECRET),
    "secret-to-this-machine": authenticated("http://localhost:7072/", **SECRET),
    "expressions": put_in(
        "action.inputs",
        {
            "method": "POST",
            "uri": "https://example.org/@{parameters('n')}?run=@{workflow().run.name}",
            "headers": {"x-n": "@{parameters('n')}", "x-at": "@trigger().startTime"},
            "queries": {"at": "@trigger().scheduledTime"},
            "body": ["@trigger()", {"n": "@parameters('n')", "plain": "@@parameters('n')"}],
        },
    ),
    "expressions-of-windows": put_in(
        "action.inputs.body", ["@trigger().outputs.windowStartTime", "@{trigger()?.outputs?.windowEndTime}"]
    )
    | {"trigger": WINDOW},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_bench(azurite: Azurite) -> AsyncIterator[Bench]:
    """One app for all jobs of this module, whose operator allows them what they ask for."""
    allowed = {
        "QUEUE_TARGETS": f'["orders", "a-b", "{"q" * 63}"]',
        "IDENTITY_TARGETS": '{"api://reports": ["reports.example.org"]}',
        "SECRET_HOSTS": '["localhost", "*.example.net"]',
    }
    async with bench(azurite.connection_string, None, PARTITIONS="1", **allowed) as made:
        yield made


@pytest.mark.parametrize("body", JOBS.values(), ids=JOBS)
async def test_a_job_is_answered_as_it_was_given_and_can_be_put_back(shared_bench: Bench, body: Any) -> None:
    made = await ask(shared_bench, "create", body | {"id": "a"})
    try:
        assert made.status == 201, made.body
        given = {name: value for name, value in body.items() if name != "action"}
        given |= {"actions": {"Action": body["action"]}} if "action" in body else {}
        assert given.items() <= made.body.items()
        before = await every_row(shared_bench)
        again = await put(shared_bench, "a", made.body)
        assert (again.status, again.body, tag_of(again)) == (200, made.body, tag_of(made))
        assert await every_row(shared_bench) == before
    finally:
        await ask(shared_bench, "delete", job="a")
        assert await swept(shared_bench) == []


@pytest.mark.parametrize(
    ("given", "answered"), [("Enabled", "Enabled"), ("Suspended", "Suspended"), ("Disabled", "Suspended")]
)
async def test_a_job_is_made_in_the_state_that_is_asked_for(
    shared_bench: Bench, given: str, answered: str
) -> None:
    made = await ask(shared_bench, "create", daily() | {"id": "a", "state": given})
    await ask(shared_bench, "delete", job="a")
    assert (made.status, made.body["state"]) == (201, answered)
    assert (made.body["nextOccurrence"] is None) is (answered == "Suspended")
    assert [warning["code"] for warning in made.body["warnings"]] == (
        ["InitialRun"] if answered == "Enabled" else []
    )
