"""Requests that are wrong, each in one way: a 4xx that names the field as its caller wrote it, nothing stored."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from shared.web.exchange import Response
from tests.harness import Bench, bench
from tests.web.malformed import Bad
from tests.web.malformed_actions import ACTION
from tests.web.malformed_calendars import CALENDAR
from tests.web.malformed_inputs import CREDENTIALS, EXPRESSION, POLICY
from tests.web.malformed_jobs import JOB, ONCE, UNKNOWN
from tests.web.malformed_requests import PATHS, PREVIEWS, QUERIES
from tests.web.malformed_steps import ORDER, QUEUE, WAIT
from tests.web.malformed_text import NOT_JSON
from tests.web.malformed_triggers import JOB_FIELDS, TRIGGER
from tests.web.support import ask, fields, swept, valid

pytestmark = pytest.mark.asyncio(loop_scope="module")

IN_BODIES = [*NOT_JSON, *UNKNOWN, *JOB, *JOB_FIELDS, *ONCE, *TRIGGER, *CALENDAR]
IN_BODIES += [*ACTION, *ORDER, *WAIT, *QUEUE, *POLICY, *CREDENTIALS, *EXPRESSION]
EVERY = [*IN_BODIES, *QUERIES, *PATHS, *PREVIEWS]
JARGON = ("Input ", "input should", "Value error", "validation", "dictionary", "pattern", "instance of", "sys.")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_bench(azurite: Any) -> AsyncIterator[Bench]:
    """One app for all requests of this module: none of them may leave anything in its table.

    Its operator allows something, so that it is told what is not.
    """
    allowed = {
        "QUEUE_NAME": "own-tickets",
        "QUEUE_TARGETS": '["orders"]',
        "IDENTITY_TARGETS": '{"api://reports": ["reports.example.org"]}',
        "SECRET_HOSTS": '["reports.example.org", "*.example.net"]',
    }
    async with bench(azurite.connection_string, None, PARTITIONS="1", **allowed) as made:
        yield made


def named(bad: Bad) -> str:
    return bad.name.encode("ascii", "backslashreplace").decode()[:90]


@pytest.mark.parametrize("bad", EVERY, ids=named)
async def test_is_refused_naming_the_field(shared_bench: Bench, bad: Bad) -> None:
    await check_refused(shared_bench, bad)


@pytest.mark.parametrize("bad", [bad for bad in IN_BODIES if bad.field != "id"], ids=named)
async def test_is_refused_by_put_as_by_post(shared_bench: Bench, bad: Bad) -> None:
    created = await refusal(shared_bench, bad)
    put = await ask(shared_bench, "put", bad.body, raw=bad.raw, headers=bad.headers, job="a")
    left = await swept(shared_bench)
    assert (put.status, put.body) == (created.status, created.body)
    assert left == []


async def refusal(at: Bench, bad: Bad) -> Response:
    asked = partial(ask, at, bad.route, bad.body, raw=bad.raw, headers=bad.headers)
    return await asked(query=bad.query, job=bad.job, seq=bad.seq)


async def check_refused(at: Bench, bad: Bad) -> None:
    at.requests.clear()
    response = await refusal(at, bad)
    sent, left = list(at.requests), await swept(at)
    assert response.status == bad.status, response.body
    assert response.headers["Content-Type"] == "application/problem+json"
    assert set(response.body) == {"type", "title", "status", "detail", "errors"}
    assert response.body["status"] == bad.status
    assert bad.field in fields(response), response.body
    assert bad.among or len(fields(response)) == 1, response.body
    for error in response.body["errors"]:
        assert set(error) == {"field", "reason"}
        check_reads_well(error["reason"])
    assert response.body["detail"]
    assert len(response.content()) < 20_000
    assert all(request.startswith("GET ") for request in sent)
    assert left == []


def check_reads_well(reason: str) -> None:
    """No words of the libraries that did the checking."""
    assert reason
    assert not [word for word in JARGON if word in reason]


async def test_the_body_that_others_are_spoilt_from_is_right(shared_bench: Bench) -> None:
    made = await ask(shared_bench, "create", valid(id="right"))
    assert made.status == 201, made.body
    assert (await ask(shared_bench, "delete", job="right")).status == 204
    assert await swept(shared_bench) == []
