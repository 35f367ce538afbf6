"""The Http action: a request to the address the job names, repeated if need be, its late answer asked for."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import aiohttp

from shared.engine.actions.answers import Answer, read_answer
from shared.engine.actions.auth import Authorizer, NotAuthorized, NoToken
from shared.engine.actions.masking import Mask
from shared.engine.actions.outcome import MAX_DURATION, Attempt, Later, Outcome
from shared.engine.actions.request import Request, first_request, poll_address, poll_request
from shared.engine.actions.retry import RetryPolicy, read_retry_policy, retry_after, seed_of, try_again
from shared.jobs.model import Status

POLL_INTERVAL = timedelta(seconds=20)
LEAST_WAIT = timedelta(seconds=1)
RETRIED = frozenset({408, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trouble:
    """There was no answer. `again`: trying again may help."""

    status: Status
    reason: str
    again: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exchange:
    """One request and what became of it. `ended` is when; `poll` where the answer was asked for, if it was."""

    attempt: Attempt
    request: Request
    policy: RetryPolicy
    mask: Mask
    ended: datetime
    poll: str | None


class HttpAction:
    """Sends a job's request. Redirects are not followed: a 3xx answer is a failure.

    An answer from 200 to 299 is a success; but a 202 with a Location has the answer asked for there, later,
    unless the action has the option DisableAsyncPattern. Statuses 408, 429 and 5xx, faults of the connection and
    time-outs are tried again as `retryPolicy` says; other statuses are not. What an answer to a poll says is
    judged likewise; failed polls are counted for themselves and are no attempts of the action.

    `elapsed` tells the seconds that have passed since any fixed moment.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        authorizer: Authorizer | None = None,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._authorizer = authorizer or Authorizer({}, (), {})
        self._elapsed = elapsed

    async def attempt(self, attempt: Attempt) -> Outcome | Later:
        """One request. Faults of inputs and of the connection are outcomes, not errors."""
        began = self._elapsed()
        poll = attempt.memo.get("poll")
        try:
            policy = read_retry_policy(attempt.inputs.get("retryPolicy"))
            request = first_request(attempt) if poll is None else poll_request(attempt, poll)
        except ValueError as error:
            return Outcome(status=Status.FAILED, reason=str(error)[:1000])
        mask, result = await self._exchange(request, attempt.timeout.total_seconds())
        ended = attempt.now + timedelta(seconds=self._elapsed() - began)
        return _judge(
            _Exchange(attempt=attempt, request=request, policy=policy, mask=mask, ended=ended, poll=poll), result
        )

    async def _exchange(self, request: Request, seconds: float) -> tuple[Mask, Answer | _Trouble]:
        """Sends the request and reads the answer, within so many seconds; also what is not to be told of it."""
        mask = Mask()
        try:
            async with asyncio.timeout(seconds):
                if request.authentication is not None:
                    request.headers["Authorization"] = await self._authorizer.authorization(
                        request.authentication, request.url
                    )
                mask = Mask(request.headers.getall("Authorization", []))
                async with self._session.request(
                    request.method,
                    request.url,
                    data=request.body,
                    headers=request.headers,
                    allow_redirects=False,
                ) as response:
                    return mask, await read_answer(response, mask)
        except TimeoutError:
            return mask, _Trouble(status=Status.TIMED_OUT, reason=f"no answer within {seconds:g} s", again=True)
        except NotAuthorized as error:
            return mask, _Trouble(status=Status.FAILED, reason=str(error), again=False)
        except NoToken as error:
            return mask, _Trouble(status=Status.FAILED, reason=str(error), again=True)
        except (aiohttp.ClientError, OSError) as error:
            again = not isinstance(error, aiohttp.InvalidURL)
            return mask, _Trouble(status=Status.FAILED, reason=_told(error, mask), again=again)
        except ValueError as error:
            return mask, _Trouble(status=Status.FAILED, reason=_told(error, mask), again=False)


def _told(error: Exception, mask: Mask) -> str:
    text = f"{type(error).__name__}: {error}".encode(errors="replace").decode()
    return mask.text(text)[:1000]


def _judge(exchange: _Exchange, result: Answer | _Trouble) -> Outcome | Later:
    """What one exchange means for the action."""
    if isinstance(result, _Trouble):
        failed = Outcome(status=result.status, reason=result.reason)
        return _again(exchange, failed) if result.again else failed
    if result.status == 202 and (exchange.poll or (result.location and _is_polled(exchange.attempt.action))):
        return _poll(exchange, result)
    if 200 <= result.status < 300:
        return Outcome(status=Status.SUCCEEDED, response=result.kept)
    failed = Outcome(status=Status.FAILED, reason=f"the target answered {result.status}", response=result.kept)
    if result.status in RETRIED or result.status >= 500:
        return _again(exchange, failed, result.retry_after)
    return failed


def _again(exchange: _Exchange, failed: Outcome, header: str | None = None) -> Outcome | Later:
    """The request is repeated, or has failed for good. A failed poll is no attempt of the action."""
    attempt = exchange.attempt
    failures = attempt.memo.get("failures", 0) if exchange.poll else attempt.number - 1
    result = try_again(
        failed,
        exchange.policy,
        failures=failures,
        seed=f"{seed_of(attempt)}:{failures}" if exchange.poll else seed_of(attempt),
        ended=exchange.ended,
        asked=retry_after(header, exchange.ended) or timedelta(0),
    )
    if isinstance(result, Later) and exchange.poll:
        return replace(result, memo={**attempt.memo, "failures": failures + 1}, attempted=False)
    return result


def _poll(exchange: _Exchange, answer: Answer) -> Outcome | Later:
    """The target works on it: where and when its answer is asked for."""
    since = exchange.attempt.memo.get("since") or exchange.ended.isoformat()
    if exchange.ended - datetime.fromisoformat(since) > MAX_DURATION:
        reason = f"the target still answered 202 after {MAX_DURATION.days} days"
        return Outcome(status=Status.TIMED_OUT, reason=reason, response=answer.kept)
    address = exchange.poll or ""
    if answer.location:
        try:
            address = poll_address(answer.location, exchange.request.url)
            if exchange.mask.text(address) != address:
                raise ValueError("repeats the request's authorization")
        except ValueError as error:
            reason = f"the target answered 202, but its Location {error}"
            return Outcome(status=Status.FAILED, reason=reason, response=answer.kept)
    wait = retry_after(answer.retry_after, exchange.ended)
    return Later(
        at=exchange.ended + max(POLL_INTERVAL if wait is None else wait, LEAST_WAIT),
        memo={"poll": address, "since": since},
        reason="the target answered 202 and is asked again",
        response=answer.kept,
    )


def _is_polled(action: Mapping[str, Any]) -> bool:
    options = str(action.get("operationOptions") or "").split(",")
    return "disableasyncpattern" not in {option.strip().lower() for option in options}
