"""The Authorization header that is sent, and that it is seen nowhere else."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web
from azure.identity.aio import ManagedIdentityCredential

from shared.engine.actions.auth import Authorizer
from shared.jobs.model import Status
from tests.engine.actions.support import (
    AUDIENCE,
    IDENTITY,
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
    told,
)
from tests.harness import Hit, Receiver, receiving

TOKEN = "eyJhbGciOi.tok/en+of=the.platform"


@pytest.fixture
async def platform(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Receiver]:
    """The endpoint at which the platform gives tokens to the app."""
    async with receiving() as receiver:
        monkeypatch.setenv("IDENTITY_ENDPOINT", receiver.url)
        monkeypatch.setenv("IDENTITY_HEADER", "platform-header")

        async def give(hit: Hit) -> web.Response:
            resource = parse_qs(urlsplit(hit.path).query)["resource"][0]
            given = {"access_token": TOKEN, "expires_on": str(int(time.time()) + 3600), "token_type": "Bearer"}
            return web.json_response(given | {"resource": resource})

        receiver.answer = give
        yield receiver


async def test_a_managed_identitys_token_is_sent(
    target: Receiver, platform: Receiver, authorizer: Authorizer
) -> None:
    ended(await once(a_call(target.url, authentication=IDENTITY), authorizer), Status.SUCCEEDED)
    (hit,) = target.hits
    assert hit.headers["Authorization"] == f"Bearer {TOKEN}"
    (asked,) = platform.hits
    query = parse_qs(urlsplit(asked.path).query)
    assert query["resource"] == [AUDIENCE]
    assert "client_id" not in query
    assert asked.headers["X-IDENTITY-HEADER"] == "platform-header"


async def test_a_user_assigned_identity_is_asked_for_by_its_client_id(
    target: Receiver, platform: Receiver, authorizer: Authorizer
) -> None:
    mine = IDENTITY | {"identity": "8c0a8f0e-1111-2222-3333-444444444444"}
    ended(await once(a_call(target.url, authentication=mine), authorizer), Status.SUCCEEDED)
    (asked,) = platform.hits
    assert parse_qs(urlsplit(asked.path).query)["client_id"] == [mine["identity"]]


async def test_a_herd_asks_the_platform_once(target: Receiver, platform: Receiver, authorizer: Authorizer) -> None:
    attempt = an_attempt(a_call(target.url, authentication=IDENTITY))
    async with http_action(authorizer) as action:
        await asyncio.gather(*(action.attempt(attempt) for _ in range(20)))
        await action.attempt(attempt)
    assert len(target.hits) == 21
    assert len(platform.hits) == 1


@pytest.mark.parametrize(
    ("text", "content_type"),
    [(f'{{"error": "{TOKEN}"}}', "application/json"), (f"no, not {TOKEN}", "text/plain")],
)
@pytest.mark.parametrize("status", [400, 500, 503])
async def test_a_token_that_cannot_be_had_now_is_tried_again(
    target: Receiver, platform: Receiver, authorizer: Authorizer, status: int, text: str, content_type: str
) -> None:
    answers(platform, {"status": status, "text": text, "content_type": content_type})
    inputs = a_call(target.url, authentication=IDENTITY)
    later = goes_on(await once(inputs, authorizer))
    assert later.attempted
    assert later.reason.startswith(f"no token for {AUDIENCE} could be had")
    assert TOKEN not in told(later)
    assert len(platform.hits) == 1  # nobody waits in memory
    assert not target.hits
    outcome = ended(await once(inputs, authorizer, number=5), Status.FAILED)
    assert TOKEN not in told(outcome)


@pytest.mark.parametrize("answer", [b"{}", b"nonsense", b'{"access_token": "%s"}' % TOKEN.encode(), b"[]"])
async def test_an_answer_without_a_usable_token_is_tried_again(
    target: Receiver, platform: Receiver, authorizer: Authorizer, answer: bytes
) -> None:
    answers(platform, {"body": answer, "content_type": "application/json"})
    later = goes_on(await once(a_call(target.url, authentication=IDENTITY), authorizer))
    assert TOKEN not in told(later)
    assert not target.hits


async def test_a_platform_that_does_not_answer_takes_from_the_attempts_time(
    target: Receiver, platform: Receiver, authorizer: Authorizer
) -> None:
    async def stall(hit: Hit) -> web.Response:
        await asyncio.sleep(60)
        raise AssertionError

    platform.answer = stall
    inputs = a_call(target.url, authentication=IDENTITY, **NO_RETRY)
    ended(await once(inputs, authorizer, timeout=timedelta(seconds=0.3)), Status.TIMED_OUT)


async def test_an_app_without_an_identity_fails_and_says_so(target: Receiver) -> None:
    made = Authorizer({AUDIENCE: ["127.0.0.1"]}, (), {}, lambda _: _Nothing())
    outcome = ended(await once(a_call(target.url, authentication=IDENTITY), made), Status.FAILED)
    assert outcome.reason == "the operator must give the app a managed identity"
    assert not target.hits


class _Nothing(ManagedIdentityCredential):
    """The library's credential as it is where no kind of identity is found."""

    def __init__(self) -> None:
        super().__init__()
        self._credential = None


async def test_an_app_setting_is_sent_as_it_is(target: Receiver, authorizer: Authorizer) -> None:
    inputs = a_call(target.url, authentication=RAW, headers={"authorization": "Basic mine"})
    ended(await once(inputs, authorizer), Status.SUCCEEDED)
    (hit,) = target.hits
    assert [value for name, value in hit.headers.items() if name.lower() == "authorization"] == [SECRET]


async def test_a_setting_is_read_when_it_is_needed(target: Receiver) -> None:
    environ = {"SECRET_TOKEN": "old"}
    made = Authorizer({}, ["127.0.0.1"], environ)
    inputs = a_call(target.url, authentication=RAW)
    async with http_action(made) as action:
        await action.attempt(an_attempt(inputs))
        environ["SECRET_TOKEN"] = "new"
        await action.attempt(an_attempt(inputs))
    assert [hit.headers["Authorization"] for hit in target.hits] == ["old", "new"]


@pytest.mark.parametrize(
    ("authentication", "why"),
    [
        (RAW | {"value": {"setting": "SECRET_MISSING"}}, "must set the app setting SECRET_MISSING"),
        (RAW | {"value": {"setting": "SECRET_EMPTY"}}, "must set the app setting SECRET_EMPTY"),
        (RAW | {"value": {"setting": "PATH"}}, "authentication.value.setting must be SECRET_"),
        (RAW | {"value": "Bearer x"}, "authentication.value must name an app setting"),
        (IDENTITY | {"audience": "https://vault.azure.net"}, "IDENTITY_TARGETS"),
        ({"type": "Basic"}, "authentication.type"),
        ("Bearer x", "authentication must be an object"),
    ],
)
async def test_what_is_refused_fails_without_a_call(
    target: Receiver, authorizer: Authorizer, authentication: Any, why: str
) -> None:
    outcome = ended(await once(a_call(target.url, authentication=authentication), authorizer), Status.FAILED)
    assert why in outcome.reason
    assert not target.hits


@pytest.mark.parametrize("authentication", [IDENTITY, RAW])
async def test_nothing_is_sent_where_the_operator_allows_nothing(
    target: Receiver, platform: Receiver, authentication: Any
) -> None:
    ended(await once(a_call(target.url, authentication=authentication)), Status.FAILED)
    assert not target.hits
    assert not platform.hits


async def test_a_setting_that_no_header_can_carry_is_told_without_its_value(target: Receiver) -> None:
    for value in ("s3cr3t\n", "s3cr3t\r\nX: y", "s3cr3t ", "schlüssel"):
        made = Authorizer({}, ["127.0.0.1"], {"SECRET_TOKEN": value})
        outcome = ended(await once(a_call(target.url, authentication=RAW), made), Status.FAILED)
        assert "SECRET_TOKEN" in outcome.reason
        assert value.strip() not in outcome.reason
    assert not target.hits


@pytest.mark.parametrize("authentication", [IDENTITY, RAW])
async def test_authorization_follows_a_poll_to_the_own_origin_only(
    target: Receiver, platform: Receiver, authorizer: Authorizer, authentication: Any
) -> None:
    async with receiving() as elsewhere, http_action(authorizer) as action:
        answers(target, {"status": 202, "headers": {"Location": "/own"}})
        inputs = a_call(target.url, authentication=authentication)
        later = goes_on(await action.attempt(an_attempt(inputs)))
        answers(target, {"status": 202, "headers": {"Location": elsewhere.url}})
        later = goes_on(await action.attempt(an_attempt(inputs, memo=later.memo)))
        ended(await action.attempt(an_attempt(inputs, memo=later.memo)), Status.SUCCEEDED)
        first, own = target.hits
        assert first.headers["Authorization"] == own.headers["Authorization"]
        assert own.path == "/own"
        assert "Authorization" not in elsewhere.hits[0].headers


async def test_no_log_line_holds_a_token_or_a_secret(
    target: Receiver, platform: Receiver, authorizer: Authorizer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for authentication in (IDENTITY, RAW):
        ended(await once(a_call(target.url, authentication=authentication), authorizer), Status.SUCCEEDED)
    answers(platform, {"text": json.dumps({"access_token": TOKEN}), "content_type": "application/json"})
    other = IDENTITY | {"identity": "8c0a8f0e-1111-2222-3333-444444444444"}
    goes_on(await once(a_call(target.url, authentication=other), authorizer))
    assert f"no token for {AUDIENCE}: Unexpected response" in caplog.text
    assert TOKEN not in caplog.text
    assert "s3cr3t" not in caplog.text
