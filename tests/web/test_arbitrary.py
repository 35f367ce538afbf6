"""Whatever a body, a query or a path holds: no error of the app's own, and what is refused leaves nothing."""

import copy
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from devhost.azurite import Azurite
from tests.audit import audit
from tests.harness import Bench, bench
from tests.web.support import ask, swept, tag_of, valid

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Names and values that mean something to the app, among which a change is more telling than one by chance.
NAMES = [
    *(
        "id",
        "tags",
        "state",
        "trigger",
        "triggers",
        "action",
        "actions",
        "parameters",
        "type",
        "recurrence",
        "runAt",
    ),
    *("skipInitialRun", "maxLateness", "frequency", "interval", "timeZone", "startTime", "endTime", "count"),
    *(
        "schedule",
        "hours",
        "minutes",
        "weekDays",
        "monthDays",
        "monthlyOccurrences",
        "day",
        "occurrence",
        "inputs",
    ),
    *(
        "method",
        "uri",
        "headers",
        "queries",
        "body",
        "retryPolicy",
        "limit",
        "timeout",
        "historyLimit",
        "createdAt",
    ),
    *("runAfter", "interval", "unit", "until", "timestamp", "queue", "message", "authentication", "audience"),
    *("value", "setting", "delay", "jitter", "runtimeConfiguration", "concurrency", "runs", "maximumWaitingRuns"),
    *("operationOptions", "secureData", "properties", "deleteAfter", "minimumInterval", "maximumInterval"),
    *("A", "B", "C", "none", "Http"),
]
ROUTES = ["get", "delete", "suspend", "resume", "occurrences", "runs", "run_now"]
VALUES: list[Any] = [
    *("", "@", "@@", "@{", "@@{", "@parameters('n')", "@{parameters('n')}", "@parameters('no')", "a'b", "\0", "é"),
    *("Once", "Recurrence", "Second", "Minute", "Hour", "Week", "Month", "Monday", "GET", "Enabled", "Completed"),
    *("SlidingWindow", "SingleInstance", "DisableAsyncPattern", "Suspended", "Succeeded", "Wait", "Queue", "Raw"),
    *("fixed", "exponential", "@trigger()", "@trigger().outputs.windowStartTime", "orders", "SECRET_A", "x@{"),
    *("PT0S", "PT1H", "P1M", "UTC", "Asia/Kathmandu", "Central Standard Time", "2026-09-08T12:00:00Z"),
    *(
        "2026-10-25T02:30:00",
        "9999-12-31T23:59:59Z",
        "1970-01-01T00:00:00Z",
        "2075-09-08T12:00",
        "http://h:1/?q#f",
    ),
    *(None, True, False, 0, 1, -1, 2, 5, 23, 31, 59, 60, 1000, 2**63, 10**400, -(10**30), 0.1, 1.0, -0.0, 1e300),
    *([], {}, [None], [1, 2], ["1", 30], [[]], {"": None}, [{"day": "Monday", "occurrence": -1}]),
]

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.sampled_from(NAMES) | texts
values = st.recursive(
    st.sampled_from(VALUES) | scalars | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


def bodies_to_spoil() -> list[dict[str, Any]]:
    monthly: dict[str, Any] = {"frequency": "Month", "interval": 3}
    hourly = {"frequency": "Hour", "interval": 1, "startTime": "2026-09-08T06:00:00Z"}
    window = {"type": "SlidingWindow", "recurrence": hourly, "inputs": {"delay": "PT1H"}, "jitter": "PT5M"}
    call = valid()["action"]
    growing = {"type": "exponential", "count": 4, "interval": "PT7S", "minimumInterval": "PT5S"}
    steps = {
        "A": call
        | {"inputs": call["inputs"] | {"retryPolicy": growing}, "operationOptions": "DisableAsyncPattern"},
        "B": {
            "type": "Wait",
            "inputs": {"interval": {"count": 5, "unit": "Minute"}},
            "runAfter": {"A": ["Failed"]},
        },
        "C": {
            "type": "Queue",
            "inputs": {"queue": "orders", "message": "@trigger()"},
            "runAfter": {"B": ["Skipped"]},
        },
        "D": {"type": "Wait", "inputs": {"until": {"timestamp": "2026-09-10T08:00:00Z"}}},
    }
    bound = {"concurrency": {"runs": 1, "maximumWaitingRuns": 0}}
    by_day = {"monthlyOccurrences": [{"day": "Friday", "occurrence": -1}], "hours": ["6", 18]}
    return [
        valid(),
        valid(trigger={"type": "Once", "runAt": "2026-12-24T18:00:00Z"}),
        valid(trigger={"type": "Recurrence", "recurrence": monthly | {"schedule": by_day}}),
        valid(trigger={"type": "Recurrence", "recurrence": monthly | {"schedule": {"monthDays": [1, -1]}}}),
        valid(trigger={"type": "Recurrence", "recurrence": {"frequency": "Week", "interval": "@parameters('n')"}}),
        valid(trigger=window, action=None, actions=steps, deleteAfter="P1D", state="Suspended"),
        valid(trigger=valid()["trigger"] | {"runtimeConfiguration": bound}, action=None, actions=steps),
        valid(trigger=None, action=None, triggers={"T": valid()["trigger"]}, actions={"A": valid()["action"]}),
    ]


def paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything in a JSON value, itself left out."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield (*above, step)
        yield from paths(item, (*above, step))


@st.composite
def spoilt(draw: st.DrawFn, least: int = 0) -> Any:
    """A valid body in which up to three things were dropped, replaced or added; copies, since it is changed on."""
    body = copy.deepcopy(draw(st.sampled_from(bodies_to_spoil())))
    for _ in range(draw(st.integers(least, 3))):
        places = list(paths(body))
        if not places:
            break
        *above, last = draw(st.sampled_from(places))
        owner: Any = body
        for step in above:
            owner = owner[step]
        change = draw(st.sampled_from(["drop", "replace", "add"]))
        if change == "drop":
            del owner[last]
        elif change == "replace":
            owner[last] = copy.deepcopy(draw(values))
        elif isinstance(owner, dict):
            owner[draw(names)] = copy.deepcopy(draw(values))
        else:
            owner.append(copy.deepcopy(draw(values)))
    return body


objects = st.dictionaries(names, values, max_size=8)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_bench(azurite: Azurite) -> AsyncIterator[Bench]:
    async with bench(azurite.connection_string, PARTITIONS="1", QUEUE_TARGETS='["orders"]') as made:
        yield made


async def check(at: Bench, route: str, job: str | None, raw: bytes) -> int:
    """The status of a request to create a job; what is made reads well and can be put back."""
    response = await ask(at, route, raw=raw, job=job)
    if response.status == 201:
        made = response.body["id"]
        assert await audit(at.app.store) == []
        read = await ask(at, "get", job=made)
        assert (read.status, read.body, tag_of(read)) == (200, response.body, tag_of(response))
        again = await ask(at, "put", read.body, job=made)
        assert (again.status, again.body, tag_of(again)) == (200, read.body, tag_of(read))
        assert (await ask(at, "delete", job=made)).status == 204
    else:
        assert response.status in (400, 413), response.body
        assert response.body["errors"]
    left = await swept(at)
    assert left == []
    return response.status


@settings(max_examples=100, deadline=None, database=None)
@given(body=values | objects)
async def test_any_json_is_answered(shared_bench: Bench, body: Any) -> None:
    await check(shared_bench, "create", None, json.dumps(body).encode())


@settings(max_examples=150, deadline=None, database=None)
@given(body=spoilt())
async def test_any_change_of_a_valid_job_is_answered(shared_bench: Bench, body: Any) -> None:
    await check(shared_bench, "create", None, json.dumps(body).encode())


@settings(max_examples=100, deadline=None, database=None)
@given(body=spoilt(), job=st.sampled_from(["a", "b"]) | texts)
async def test_any_change_of_a_valid_job_is_answered_by_put(shared_bench: Bench, body: Any, job: str) -> None:
    await check(shared_bench, "put", job, json.dumps(body).encode())


@settings(max_examples=100, deadline=None, database=None)
@given(data=st.data())
async def test_any_bytes_are_answered(shared_bench: Bench, data: st.DataObject) -> None:
    whole = json.dumps(valid(), ensure_ascii=False).encode()
    at = data.draw(st.integers(0, len(whole)))
    other = data.draw(
        st.binary(max_size=4) | st.sampled_from([b'"', b"{", b"}", b"[", b",", b":", b"e9", b"\\u", b"-"])
    )
    await check(shared_bench, "create", None, whole[:at] + other + whole[at + data.draw(st.integers(0, 3)) :])


@settings(max_examples=100, deadline=None, database=None)
@given(body=spoilt(), more=objects, count=values)
async def test_any_preview_is_answered(shared_bench: Bench, body: Any, more: Any, count: Any) -> None:
    asked = {"trigger": body.get("trigger"), "parameters": body.get("parameters"), "count": count} | more
    for wanted in (asked, {"trigger": body.get("trigger"), "parameters": body.get("parameters")}):
        response = await ask(shared_bench, "preview", wanted)
        assert response.status in (200, 400), response.body


@settings(max_examples=100, deadline=None, database=None)
@given(
    query=st.dictionaries(st.sampled_from(["prefix", "state", "tag", "pageSize", "continuation"]) | texts, texts)
)
async def test_any_query_is_answered(shared_bench: Bench, query: dict[str, str]) -> None:
    response = await ask(shared_bench, "list", query=query)
    assert response.status in (200, 400), response.body


@settings(max_examples=60, deadline=None, database=None)
@given(route=st.sampled_from(ROUTES), job=texts, tag=st.text(max_size=20))
async def test_any_id_and_condition_are_answered(shared_bench: Bench, route: str, job: str, tag: str) -> None:
    response = await ask(shared_bench, route, job=job, headers={"If-Match": tag})
    assert response.status in (400, 404), response.body


@settings(max_examples=60, deadline=None, database=None)
@given(route=st.sampled_from(["run", "cancel", "resubmit"]), job=texts | st.just("a"), seq=texts)
async def test_any_number_of_a_run_is_answered(shared_bench: Bench, route: str, job: str, seq: str) -> None:
    response = await ask(shared_bench, route, job=job, seq=seq)
    assert response.status in (400, 404), response.body
