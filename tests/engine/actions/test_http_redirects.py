"""Redirects: which are followed, what goes along, and what ends them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web
from yarl import URL

from shared.engine.actions.auth import Authorizer
from shared.engine.actions.request import first_request, redirected
from shared.jobs.model import Status
from tests.engine.actions.support import (
    HEADERS,
    NO_RETRY,
    RAW,
    SECRET,
    a_call,
    an_attempt,
    answers,
    ended,
    goes_on,
    http_action,
    once,
    raw_server,
    told,
)
from tests.harness import Hit, Receiver, receiving

OWN = {"X-Mine": "yes", "Authorization": "Basic own-secret", "Cookie": "id=own-secret"}


@pytest.fixture
async def elsewhere() -> AsyncIterator[Receiver]:
    """Another origin: the same host, another port."""
    async with receiving() as receiver:
        yield receiver


def get(url: str, **more: Any) -> dict[str, Any]:
    return {"method": "GET", "uri": url} | more


def moved(location: str, status: int = 302) -> dict[str, Any]:
    return {"status": status, "headers": {"Location": location}}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_get_is_followed_with_all_it_has_to_the_same_origin(
    target: Receiver, authorizer: Authorizer, status: int, method: str
) -> None:
    answers(target, moved("/a?b=c%2Fd", status), moved("e", status), {"status": 204})
    inputs = get(target.url, method=method, headers=OWN, authentication=RAW)
    ended(await once(inputs, authorizer), Status.SUCCEEDED)
    assert [(hit.method, hit.path) for hit in target.hits] == [
        (method, path) for path in ("/hook", "/a?b=c%2Fd", "/e")
    ]
    for hit in target.hits:
        assert {name: hit.headers[name] for name in HEADERS} == HEADERS
        assert (hit.headers["X-Mine"], hit.headers["Authorization"]) == ("yes", SECRET)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_what_has_effects_is_not_sent_elsewhere(
    target: Receiver, elsewhere: Receiver, method: str, status: int
) -> None:
    answers(target, moved(elsewhere.url, status))
    outcome = ended(await once({"method": method, "uri": target.url}), Status.FAILED)
    assert outcome.reason == f"the target answered {status}"
    assert not elsewhere.hits


async def test_a_get_with_a_body_is_not_sent_elsewhere(target: Receiver, elsewhere: Receiver) -> None:
    answers(target, moved(elsewhere.url, 307))
    ended(await once(get(target.url, body="query")), Status.FAILED)
    assert not elsewhere.hits


@pytest.mark.parametrize("status", [300, 304, 305, 306])
async def test_other_answers_are_no_redirects(target: Receiver, elsewhere: Receiver, status: int) -> None:
    answers(target, moved(elsewhere.url, status))
    outcome = ended(await once(get(target.url)), Status.FAILED)
    assert outcome.reason == f"the target answered {status}"
    assert not elsewhere.hits


@pytest.mark.parametrize("location", [None, ""])
async def test_a_redirect_to_nowhere_is_a_failure(target: Receiver, location: str | None) -> None:
    answers(target, {"status": 302, "headers": {} if location is None else {"Location": location}})
    assert ended(await once(get(target.url)), Status.FAILED).reason == "the target answered 302"


async def test_nothing_of_the_jobs_own_goes_to_another_origin_nor_comes_back(
    target: Receiver, elsewhere: Receiver, authorizer: Authorizer
) -> None:
    answers(target, moved(elsewhere.url), {"status": 200})
    answers(elsewhere, moved(target.url + "/back"))
    for more in ({}, {"authentication": RAW}):
        ended(await once(get(target.url, headers=OWN, **more), authorizer), Status.SUCCEEDED)
    for hit in (elsewhere.hits[0], target.hits[1]):
        assert not [name for name in OWN if name in hit.headers]
        assert {name: hit.headers[name] for name in HEADERS} == HEADERS
    assert target.hits[1].path == "/hook/back"


async def test_a_polls_redirects_are_followed_and_what_it_leads_to_is_asked_next(
    target: Receiver, elsewhere: Receiver
) -> None:
    answers(target, {"status": 202, "headers": {"Location": "/status"}}, moved(elsewhere.url + "/1"))
    answers(elsewhere, {"status": 202, "headers": {"Location": "2"}}, {"status": 200, "text": "done"})
    inputs = a_call(target.url, headers=OWN)
    later = goes_on(await once(inputs))
    later = goes_on(await once(inputs, memo=later.memo))
    assert later.memo["poll"] == f"{elsewhere.url}/2"
    ended(await once(inputs, memo=later.memo), Status.SUCCEEDED)
    assert [hit.method for hit in elsewhere.hits] == ["GET", "GET"]
    assert not [name for hit in elsewhere.hits for name in OWN if name in hit.headers]


async def test_a_circle_ends(target: Receiver) -> None:
    answers(target, moved("/again"))
    outcome = ended(await once(get(target.url)), Status.FAILED)
    assert outcome.reason == "the target redirected more than 10 times"
    assert outcome.response is not None
    assert outcome.response["statusCode"] == 302
    assert len(target.hits) == 11


async def test_what_fails_at_the_end_is_repeated_from_the_beginning(target: Receiver) -> None:
    answers(target, moved("/b"), {"status": 503}, moved("/b"), {"status": 200})
    later = goes_on(await once(get(target.url)))
    assert later.attempted
    target.answer = None
    ended(await once(get(target.url), number=2, memo=later.memo), Status.SUCCEEDED)
    assert target.hits[-1].path == "/hook"


async def test_one_time_is_for_all(target: Receiver) -> None:
    async def slowly(hit: Hit) -> web.Response:
        await asyncio.sleep(0.15)
        return web.Response(status=302, headers={"Location": "/again"})

    target.answer = slowly
    inputs = get(target.url, **NO_RETRY)
    ended(await once(inputs, timeout=timedelta(seconds=0.4)), Status.TIMED_OUT)
    assert len(target.hits) < 8


def test_https_is_not_left() -> None:
    request = first_request(an_attempt(get("https://example.org/a")))
    with pytest.raises(ValueError, match="leads from https to http"):
        redirected(request, 302, "http://example.org/a")
    followed = redirected(replace(request, url=URL("http://example.org/a")), 302, "https://example.org/a")
    assert followed is not None
    assert str(followed.url) == "https://example.org/a"


async def test_a_secret_in_a_location_is_neither_followed_nor_told(
    target: Receiver, elsewhere: Receiver, authorizer: Authorizer
) -> None:
    bare = quote(SECRET.removeprefix("Bearer "), safe="")
    answers(target, moved(f"{elsewhere.url}?t={bare}"))
    outcome = ended(await once(get(target.url, authentication=RAW), authorizer), Status.FAILED)
    assert outcome.reason == "the target answered 302, but its Location repeats the request's authorization"
    assert bare not in told(outcome)
    assert not elsewhere.hits


async def test_a_secret_is_masked_wherever_it_comes_back_from(
    target: Receiver, elsewhere: Receiver, authorizer: Authorizer
) -> None:
    """The one who had it may tell others, who had it not from us."""
    answers(elsewhere, {"status": 500, "text": SECRET})
    inputs = get(target.url, authentication=RAW)
    answers(target, moved(elsewhere.url))
    assert "s3cr3t" not in told(await once(inputs, authorizer))
    answers(target, {"status": 202, "headers": {"Location": elsewhere.url}})
    async with http_action(authorizer) as action:
        later = goes_on(await action.attempt(an_attempt(inputs)))
        assert "s3cr3t" not in told(await action.attempt(an_attempt(inputs, memo=later.memo)))
    own = get(target.url, headers={"Authorization": SECRET})
    later = goes_on(await once(own))
    assert "s3cr3t" not in told(await once(own, memo=later.memo))
    assert len(elsewhere.hits) == 3


@pytest.mark.parametrize(
    "head",
    [
        "".join(f"X-{n}: y\r\n" for n in range(200)),
        "X-Long: " + "y" * 9000 + "\r\n",
        "X-" + "y" * 9000 + ": z\r\n",
    ],
)
async def test_an_answer_with_too_much_of_a_head_is_a_failure(head: str) -> None:
    async with raw_server(f"HTTP/1.1 200 OK\r\n{head}Content-Length: 0\r\n\r\n".encode()) as url:
        outcome = ended(await once(get(url, **NO_RETRY)), Status.FAILED)
    assert outcome.response is None
    assert len(outcome.reason) <= 1000
