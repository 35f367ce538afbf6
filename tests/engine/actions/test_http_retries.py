"""The Http action is repeated as its policy says, later and perhaps elsewhere: never by waiting in memory."""

import asyncio
import itertools
from datetime import timedelta
from typing import Any

import pytest

from shared.engine.actions.retry import DEFAULT_RETRY
from shared.jobs.model import Status
from tests.engine.actions.support import (
    KEY,
    NOW,
    a_call,
    an_attempt,
    answers,
    ended,
    goes_on,
    http_action,
    once,
    raw_server,
)
from tests.harness import Receiver

FIXED: dict[str, Any] = {"retryPolicy": {"type": "fixed", "count": 2, "interval": "PT30S"}}


@pytest.mark.parametrize("status", [408, 429, 500, 501, 502, 503, 504, 599])
async def test_these_statuses_are_tried_again(target: Receiver, status: int) -> None:
    answers(target, {"status": status, "text": "busy"})
    later = goes_on(await once(a_call(target.url, **FIXED)))
    assert later.at == NOW + timedelta(seconds=30)
    assert later.attempted
    assert later.memo == {}
    assert later.reason == f"the target answered {status}; retry 1 of 2 is to come"
    assert later.response is not None
    assert (later.response["statusCode"], later.response["body"]) == (status, "busy")
    assert len(target.hits) == 1


async def test_a_fault_of_the_connection_is_tried_again() -> None:
    later = goes_on(await once(a_call("http://127.0.0.1:9/", **FIXED)))
    assert later.attempted
    assert later.response is None
    assert "retry 1 of 2" in later.reason


@pytest.mark.parametrize(
    "answer",
    [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"],
    ids=["closed", "no HTTP", "cut short"],
)
async def test_an_answer_that_does_not_come_through_is_tried_again(answer: bytes) -> None:
    async with raw_server(answer) as url:
        goes_on(await once(a_call(url, **FIXED)))


async def test_a_time_out_is_tried_again_and_at_last_timed_out(target: Receiver) -> None:
    async def stall(hit: Any) -> Any:
        await asyncio.sleep(60)

    target.answer = stall
    soon = timedelta(seconds=0.2)
    later = goes_on(await once(a_call(target.url, **FIXED), timeout=soon))
    assert later.attempted
    outcome = ended(await once(a_call(target.url, **FIXED), timeout=soon, number=3), Status.TIMED_OUT)
    assert outcome.reason == "no answer within 0.2 s, after 2 retries"


async def test_after_the_last_retry_it_has_failed_with_the_last_response(target: Receiver) -> None:
    answers(target, {"status": 503, "text": "1"}, {"status": 500, "text": "2"}, {"status": 502, "text": "3"})
    inputs = a_call(target.url, **FIXED)
    async with http_action() as action:
        for number in (1, 2):
            later = goes_on(await action.attempt(an_attempt(inputs, number=number)))
            assert f"retry {number} of 2" in later.reason
        outcome = ended(await action.attempt(an_attempt(inputs, number=3)), Status.FAILED)
    assert outcome.reason == "the target answered 502, after 2 retries"
    assert outcome.response is not None
    assert outcome.response["body"] == "3"


async def test_a_later_attempt_may_succeed(target: Receiver) -> None:
    answers(target, {"status": 503}, {"status": 200})
    inputs = a_call(target.url, **FIXED)
    later = goes_on(await once(inputs))
    ended(await once(inputs, number=2, memo=later.memo, now=later.at), Status.SUCCEEDED)
    first, second = target.hits
    assert first.key == second.key == KEY
    assert first.body == second.body


async def test_none_is_not_tried_again(target: Receiver) -> None:
    answers(target, {"status": 503})
    outcome = ended(await once(a_call(target.url, retryPolicy={"type": "none"})), Status.FAILED)
    assert outcome.reason == "the target answered 503"


async def test_a_job_that_says_nothing_has_the_default_policy(target: Receiver) -> None:
    answers(target, {"status": 500})
    async with http_action() as action:
        for number in (1, 2, 3, 4):
            later = goes_on(await action.attempt(an_attempt(a_call(target.url), number=number)))
            assert later.at - NOW == DEFAULT_RETRY.delay(number, f"{KEY}:{number}")
        ended(await action.attempt(an_attempt(a_call(target.url), number=5)), Status.FAILED)


async def test_an_exponential_delay_follows_from_key_and_number(target: Receiver) -> None:
    answers(target, {"status": 500})
    inputs = a_call(target.url, retryPolicy={"type": "exponential", "count": 9, "interval": "PT1H"})
    delays = set()
    async with http_action() as action:
        for key in "abcd":
            told = [await action.attempt(an_attempt(inputs, headers={"Idempotency-Key": key})) for _ in (1, 2)]
            first, second = (goes_on(each).at for each in told)
            assert first == second
            delays.add(first)
    assert len(delays) == 4


@pytest.mark.parametrize("status", [429, 503, 500, 408])
@pytest.mark.parametrize(
    ("asked", "waits"),
    [
        ("120", timedelta(minutes=2)),
        ("10", timedelta(seconds=30)),  # the policy's own is longer
        ("Tue, 08 Sep 2026 12:10:00 GMT", timedelta(minutes=10)),
        ("999999999", timedelta(days=1)),
        ("never", timedelta(seconds=30)),
    ],
)
async def test_a_longer_wait_that_the_target_asks_for_counts(
    target: Receiver, status: int, asked: str, waits: timedelta
) -> None:
    answers(target, {"status": status, "headers": {"Retry-After": asked}})
    assert goes_on(await once(a_call(target.url, **FIXED))).at == NOW + waits


async def test_the_wait_counts_from_the_end_of_the_attempt(target: Receiver) -> None:
    answers(target, {"status": 503})
    ticks = itertools.count(1000, 7.0)
    async with http_action(elapsed=lambda: next(ticks)) as action:
        later = goes_on(await action.attempt(an_attempt(a_call(target.url, **FIXED))))
    assert later.at == NOW + timedelta(seconds=37)
