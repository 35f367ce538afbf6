"""A 202 with a Location: the answer is asked for there, later, until it is another."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from shared.engine.actions.outcome import Later, Outcome
from shared.jobs.model import Status
from tests.engine.actions.support import (
    HEADERS,
    KEY,
    NOW,
    a_call,
    an_attempt,
    answers,
    ended,
    goes_on,
    http_action,
    once,
)
from tests.harness import Receiver, receiving

FIXED: dict[str, Any] = {"retryPolicy": {"type": "fixed", "count": 2, "interval": "PT30S"}}


@pytest.fixture
async def elsewhere() -> AsyncIterator[Receiver]:
    """Another origin: the same host, another port."""
    async with receiving() as receiver:
        yield receiver


def accepted(location: str, **headers: str) -> dict[str, Any]:
    return {"status": 202, "headers": {"Location": location} | headers}


async def follow(inputs: dict[str, Any], later: Later) -> Outcome | Later:
    """The attempt that comes after, its memo having been stored as JSON meanwhile."""
    return await once(inputs, memo=json.loads(json.dumps(dict(later.memo))), now=later.at)


async def test_a_202_with_a_location_is_asked_again_until_it_has_another_answer(target: Receiver) -> None:
    answers(
        target,
        accepted("/status/1?a=b%2Fc"),
        accepted("/status/2"),
        {"status": 202},
        {"status": 200, "text": "done"},
    )
    inputs = a_call(target.url, headers={"X-Mine": "yes", "Content-Language": "de"})
    later = goes_on(await once(inputs))
    assert later.at == NOW + timedelta(seconds=20)
    assert not later.attempted
    assert later.response is not None
    assert later.response["statusCode"] == 202
    for turn in (1, 2):
        later = goes_on(await follow(inputs, later))
        assert later.at == NOW + timedelta(seconds=20 * (turn + 1))
        assert not later.attempted
    outcome = ended(await follow(inputs, later), Status.SUCCEEDED)
    assert outcome.response is not None
    assert outcome.response["body"] == "done"
    assert [(hit.method, hit.path) for hit in target.hits] == [
        ("POST", "/hook"),
        ("GET", "/status/1?a=b%2Fc"),
        ("GET", "/status/2"),
        ("GET", "/status/2"),
    ]
    for poll in target.hits[1:]:
        assert {name: poll.headers[name] for name in HEADERS} == HEADERS
        assert poll.headers["X-Mine"] == "yes"
        assert poll.body == b""
        assert not [name for name in poll.headers if name.lower() in ("content-language", "content-type")]


@pytest.mark.parametrize("status", [302, 400, 404, 410])
async def test_the_final_answer_decides(target: Receiver, status: int) -> None:
    answers(target, accepted("/status"), {"status": status})
    inputs = a_call(target.url)
    outcome = ended(await follow(inputs, goes_on(await once(inputs))), Status.FAILED)
    assert outcome.reason == f"the target answered {status}"


async def test_a_location_is_resolved_against_the_address_that_gave_it(
    target: Receiver, elsewhere: Receiver
) -> None:
    answers(target, accepted(f"{elsewhere.url}/jobs/7/status"))
    answers(elsewhere, accepted("result"), {"status": 200})
    inputs = a_call(target.url)
    later = goes_on(await follow(inputs, goes_on(await once(inputs))))
    ended(await follow(inputs, later), Status.SUCCEEDED)
    assert [hit.path for hit in elsewhere.hits] == ["/hook/jobs/7/status", "/hook/jobs/7/result"]


async def test_the_jobs_headers_do_not_go_to_another_origin_but_come_back_to_the_own(
    target: Receiver, elsewhere: Receiver
) -> None:
    answers(target, accepted(elsewhere.url), {"status": 200})
    answers(elsewhere, accepted(target.url + "/back"))
    inputs = a_call(target.url, headers={"X-Mine": "yes", "Authorization": "Basic secret"})
    later = goes_on(await follow(inputs, goes_on(await once(inputs))))
    ended(await follow(inputs, later), Status.SUCCEEDED)
    (stranger,) = elsewhere.hits
    assert "X-Mine" not in stranger.headers
    assert "Authorization" not in stranger.headers
    assert stranger.key == KEY
    first, back = target.hits
    assert first.headers["Authorization"] == back.headers["Authorization"] == "Basic secret"
    assert (back.path, back.headers["X-Mine"]) == ("/hook/back", "yes")


@pytest.mark.parametrize(
    ("asked", "waits"),
    [
        ("3", timedelta(seconds=3)),
        ("0", timedelta(seconds=1)),
        ("Tue, 08 Sep 2026 12:05:00 GMT", timedelta(minutes=5)),
        ("99999999", timedelta(days=1)),
        ("later", timedelta(seconds=20)),
    ],
)
async def test_the_target_says_when_to_ask(target: Receiver, asked: str, waits: timedelta) -> None:
    answers(target, accepted("/status", **{"Retry-After": asked}))
    assert goes_on(await once(a_call(target.url))).at == NOW + waits


@pytest.mark.parametrize("options", ["DisableAsyncPattern", "SuppressWorkflowHeaders, DisableAsyncPattern"])
async def test_a_202_ends_an_action_that_has_polling_disabled(target: Receiver, options: str) -> None:
    answers(target, accepted("/status"))
    inputs = a_call(target.url)
    action = {"type": "Http", "inputs": inputs, "operationOptions": options}
    ended(await once(inputs, action=action), Status.SUCCEEDED)


async def test_other_options_leave_polling_on(target: Receiver) -> None:
    answers(target, accepted("/status"))
    inputs = a_call(target.url)
    action = {"type": "Http", "inputs": inputs, "operationOptions": "DisableAutomaticDecompression"}
    goes_on(await once(inputs, action=action))


async def test_a_202_without_a_location_is_a_success(target: Receiver) -> None:
    answers(target, {"status": 202})
    ended(await once(a_call(target.url)), Status.SUCCEEDED)


async def test_a_poll_that_fails_is_repeated_by_the_policy_and_is_no_attempt(target: Receiver) -> None:
    answers(target, accepted("/status"), {"status": 503}, {"status": 500}, {"status": 502, "text": "last"})
    inputs = a_call(target.url, **FIXED)
    later = goes_on(await once(inputs))
    for failure in (1, 2):
        begun, later = later.at, goes_on(await follow(inputs, later))
        assert later.at == begun + timedelta(seconds=30)
        assert not later.attempted
        assert f"retry {failure} of 2" in later.reason
    outcome = ended(await follow(inputs, later), Status.FAILED)
    assert outcome.reason == "the target answered 502, after 2 retries"
    assert outcome.response is not None
    assert outcome.response["body"] == "last"
    assert [hit.method for hit in target.hits] == ["POST", "GET", "GET", "GET"]


async def test_a_poll_that_comes_through_starts_the_count_of_failures_anew(target: Receiver) -> None:
    answers(
        target,
        accepted("/status"),
        {"status": 503},
        {"status": 503},
        {"status": 202},
        {"status": 503},
        {"status": 200},
    )
    inputs = a_call(target.url, **FIXED)
    later = goes_on(await once(inputs))
    for _ in range(4):
        later = goes_on(await follow(inputs, later))
    ended(await follow(inputs, later), Status.SUCCEEDED)


async def test_retries_before_the_202_do_not_count_for_its_polls(target: Receiver) -> None:
    answers(target, accepted("/status"), {"status": 503})
    inputs = a_call(target.url, **FIXED)
    later = goes_on(await once(inputs, number=3))
    assert "retry 1 of 2" in goes_on(await once(inputs, memo=later.memo, number=3)).reason


async def test_a_poll_that_cannot_connect_is_repeated(target: Receiver) -> None:
    answers(target, accepted("http://127.0.0.1:9/status"))
    inputs = a_call(target.url, **FIXED)
    later = goes_on(await follow(inputs, goes_on(await once(inputs))))
    assert not later.attempted
    assert later.memo["poll"] == "http://127.0.0.1:9/status"
    ended(await follow(inputs, goes_on(await follow(inputs, later))), Status.FAILED)


async def test_the_target_may_ask_to_wait_longer_with_a_failed_poll(target: Receiver) -> None:
    answers(target, accepted("/status"), {"status": 503, "headers": {"Retry-After": "600"}})
    inputs = a_call(target.url, **FIXED)
    first = goes_on(await once(inputs))
    assert goes_on(await follow(inputs, first)).at == first.at + timedelta(minutes=10)


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("ftp://example.org/status", "must be an absolute http or https URI"),
        ("file:///etc/passwd", "must be an absolute http or https URI"),
        ("javascript:alert(1)", "must be an absolute http or https URI"),
        ("http://user:pass@example.org/", "must not hold credentials"),
        ("http://exa mple.org/", "must be ASCII"),
        ("/st\u00e4tus", "must be ASCII"),
        ("http://[::1/", "is not a URI"),
        ("http://example.org:99999/", "is not a URI"),
        ("/" + "x" * 8175, "must be at most"),
    ],
)
async def test_a_location_that_cannot_be_asked_fails_the_action(target: Receiver, location: str, why: str) -> None:
    answers(target, accepted(location))
    outcome = ended(await once(a_call(target.url)), Status.FAILED)
    assert outcome.reason.startswith(f"the target answered 202, but its Location {why}")
    assert outcome.response is not None
    assert outcome.response["statusCode"] == 202
    outcome.reason.encode()


async def test_a_poll_is_given_up_after_90_days(target: Receiver) -> None:
    answers(target, accepted("/status"))
    inputs = a_call(target.url)
    async with http_action() as action:
        later = goes_on(await action.attempt(an_attempt(inputs)))
        last = NOW + timedelta(days=90)
        later = goes_on(await action.attempt(an_attempt(inputs, memo=later.memo, now=last)))
        late = an_attempt(inputs, memo=later.memo, now=last + timedelta(seconds=1))
        outcome = ended(await action.attempt(late), Status.TIMED_OUT)
    assert outcome.reason == "the target still answered 202 after 90 days"
