"""Thousands of requests nobody would send: never an error of the app's own, and never a row left."""

import base64
import copy
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from devhost.azurite import Azurite
from shared.web.exchange import Response
from tests.harness import Bench, bench
from tests.web import test_bulk, test_template
from tests.web.support import ask, swept, valid
from tests.web.test_arbitrary import names, spoilt, texts, values

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACTION = json.dumps({"type": "Http", "inputs": {"method": "GET", "uri": "https://example.org/"}})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_bench(azurite: Azurite) -> AsyncIterator[Bench]:
    """One app for all; what some requests do make is deleted in the end, and then nothing may be left."""
    async with bench(azurite.connection_string, PARTITIONS="1", TEMPLATE_ACTION=ACTION) as at:
        yield at
        made = await listed(at)
        deleted = await test_bulk.sent(at, [{"op": "delete", "id": name} for name in made])
        assert {answer["status"] for answer in deleted} == {204}
        assert await swept(at) == []


async def listed(at: Bench) -> list[str]:
    found: list[str] = []
    query = {"pageSize": "1000"}
    while True:
        page = (await ask(at, "list", query=query)).body
        found += [job["id"] for job in page["value"]]
        if page["continuation"] is None:
            return found
        query["continuation"] = page["continuation"]


def is_right(response: Response, *good: int) -> bool:
    """Whether it is an answer of the contract: one of those, or a problem that is the caller's."""
    if response.status in good:
        return True
    return 400 <= response.status < 500 and response.body["status"] == response.status


def cases(count: int) -> settings:
    return settings(max_examples=count, deadline=None, database=None)


headers = st.dictionaries(
    st.sampled_from(["If-Match", "If-None-Match", "Idempotency-Key", "Content-Type", "x-functions-key"]) | texts,
    st.sampled_from(["*", '"x"', 'W/"x"', '"x", *', "application/json", "text/plain; charset=x", ""])
    | st.text(max_size=300),
    max_size=4,
)


@cases(600)
@given(body=spoilt(least=1), key=st.none() | st.text(max_size=20) | st.sampled_from(["k", "l"]))
async def test_any_definition_with_any_key(shared_bench: Bench, body: Any, key: str | None) -> None:
    sent = {} if key is None else {"Idempotency-Key": key}
    response = await ask(shared_bench, "create", body, headers=sent)
    assert is_right(response, 200, 201), response.body


TOKENS: list[Any] = [0, 1, -1, 2**70, 0.5, True, None, "0", [], {}]
token = st.sampled_from(TOKENS) | values
key = st.sampled_from(["", "job:a", "job:", "job:..", "job:a'", "timer:", "job:\x7f", "job:" + "a" * 200]) | texts
tokens = (
    st.lists(token | key, max_size=3).map(lambda value: json.dumps(value).encode())
    | st.tuples(st.sampled_from([0, 0, 1]), key).map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=40)
)
encoded = tokens.map(lambda raw: base64.urlsafe_b64encode(raw).decode()) | st.text(max_size=60)


@cases(1000)
@given(continuation=encoded, more=st.dictionaries(st.sampled_from(["prefix", "state", "tag", "pageSize"]), texts))
async def test_any_continuation(shared_bench: Bench, continuation: str, more: dict[str, str]) -> None:
    response = await ask(shared_bench, "list", query=more | {"continuation": continuation})
    assert is_right(response, 200), response.body


ROUTES = [
    "get",
    "put",
    "delete",
    "suspend",
    "resume",
    "occurrences",
    "runs",
    "run_now",
    "run",
    "cancel",
    "resubmit",
]


@cases(800)
@given(
    route=st.sampled_from(ROUTES),
    job=texts | st.sampled_from(["a", ".", "..", "a" * 129, "a:b", "%00", "a;b"]) | st.text(max_size=200),
    seq=texts | st.sampled_from(["1", "0", "9999999999", "99999999999"]),
    sent=headers,
)
async def test_any_id_number_and_header(
    shared_bench: Bench, route: str, job: str, seq: str, sent: dict[str, str]
) -> None:
    body = {"trigger": {"type": "Once", "runAt": "2030-01-01T00:00:00Z"}} if route == "put" else None
    response = await ask(shared_bench, route, body, job=job, seq=seq, headers=sent)
    assert is_right(response), (route, response.status, response.body)


@cases(300)
@given(sent=headers, body=st.sampled_from([valid(), {}, []]) | spoilt(least=3))
async def test_any_header_of_a_creation(shared_bench: Bench, sent: dict[str, str], body: Any) -> None:
    response = await ask(shared_bench, "create", body, headers=sent)
    assert is_right(response, 200, 201), response.body


operation = st.sampled_from(["put", "delete", "suspend", "resume", "run", "PUT", None, 5, ""])
ids = st.sampled_from(["a", "b", "c", None, "a b"]) | texts
lines = (
    st.fixed_dictionaries({"op": operation}, optional={"id": ids, "job": spoilt(least=2), "x": values})
    | st.dictionaries(names, values, max_size=3)
    | values
).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=30)


@cases(120)
@given(body=st.lists(lines, max_size=8).map(b"\n".join))
async def test_any_lines(shared_bench: Bench, body: bytes) -> None:
    response = await test_bulk.post(shared_bench, body)
    assert response.status == 200, response.body
    answers = test_bulk.read(response)
    # A line is what ends with a line feed; blank ones are passed over.
    asked = [number for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    assert [answer["line"] for answer in answers] == asked
    for answer in answers:
        assert 200 <= answer["status"] < 500, answer
        assert ("problem" in answer) == (answer["status"] >= 400)


PARTS = [
    "timerjobid",
    "startTime",
    "jobRecurrence",
    "jobStatus",
    "action",
    "frequency",
    "interval",
    "count",
    "endTime",
]
moments = st.sampled_from(
    ["2026-09-08T12:00:00Z", "2026-09-08T12:00:00.9999999+14:00", "0001-01-01T00:00:00Z", ""]
)
timer_values = values | moments | st.integers() | st.sampled_from(["second", "MONTH", "day", "year", "-1"])


@st.composite
def timers(draw: st.DrawFn) -> Any:
    """A request of the template with up to three of its parts changed."""
    body = copy.deepcopy(test_template.timer({"count": 2, "endTime": "2027-01-01T00:00:00+01:00"}))
    for _ in range(draw(st.integers(1, 3))):
        owner: Any = draw(st.sampled_from([body, body.get("jobRecurrence")]))
        if isinstance(owner, dict):
            owner[draw(st.sampled_from(PARTS) | texts)] = draw(timer_values)
    return body


@cases(600)
@given(body=timers() | values, unique=st.sampled_from(["true", "false", "", "x"]))
async def test_any_timer_of_the_template(shared_bench: Bench, body: Any, unique: str) -> None:
    response = await test_template.post(shared_bench, body, unique=unique)
    assert response.status in (201, 400, 409), response.content()
    assert test_template.text_of(response)
