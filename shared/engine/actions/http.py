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
from shared.engine.actions.connections import Connections
from shared.engine.actions.masking import Mask
from shared.engine.actions.outbound import Refused
from shared.engine.actions.outcome import MAX_DURATION, Attempt, Later, Outcome
from shared.engine.actions.request import (
    Request,
    first_request,
    own_authorization,
    poll_address,
    poll_request,
    redirected,
)
from shared.engine.actions.retry import RetryPolicy, read_retry_policy, retry_after, seed_of, try_again
from shared.jobs.model import Status

POLL_INTERVAL = timedelta(seconds=20)
LEAST_WAIT = timedelta(seconds=1)
RETRIED = frozenset({408, 429})
MAX_REDIRECTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trouble:
    """There was no answer, or none to judge. `again`: trying again may help."""

    status: Status
    reason: str
    again: bool
    response: Mapping[str, Any] | None = None


@dataclass(slots=True, kw_only=True)
class _Journey:
    """A request on its way through redirects: what is sent now, and what must not be told of all that was."""

    request: Request
    secrets: list[str]

    @property
    def mask(self) -> Mask:
        """What takes the secrets out."""
        return Mask(self.secrets)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exchange:
    """One journey and what became of it. `ended` is when; `poll` where the answer was asked for, if it was."""

    attempt: Attempt
    journey: _Journey
    policy: RetryPolicy
    ended: datetime
    poll: str | None


class HttpAction:
    """Sends a job's request through the session, whose connector says where it may go.

    A GET or HEAD without a body follows redirects; any other answer from 300 to 399 is a failure.

    An answer from 200 to 299 is a success; but a 202 with a Location has the answer asked for there, later,
    unless the action has the option DisableAsyncPattern. Statuses 408, 429 and 5xx, faults of the connection and
    time-outs are tried again as `retryPolicy` says; other statuses are not. What an answer to a poll says is
    judged likewise; failed polls are counted for themselves and are no attempts of the action.

    `elapsed` tells the seconds that have passed since any fixed moment.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        connections: Connections,
        authorizer: Authorizer | None = None,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._connections = connections
        self._authorizer = authorizer or Authorizer({}, (), {})
        self._elapsed = elapsed

    async def attempt(self, attempt: Attempt) -> Outcome | Later:
        """One request. Faults of inputs and of the connection are outcomes, not errors."""
        began = self._elapsed()
        poll = attempt.memo.get("poll")
        try:
            policy = read_retry_policy(attempt.inputs.get("retryPolicy"))
            request = first_request(attempt) if poll is None else poll_request(attempt, poll)
            journey = _Journey(request=request, secrets=self._secrets(attempt.inputs))
        except ValueError as error:
            return Outcome(status=Status.FAILED, reason=str(error)[:1000])
        result = await self._exchange(journey, attempt)
        ended = attempt.now + timedelta(seconds=self._elapsed() - began)
        return _judge(_Exchange(attempt=attempt, journey=journey, policy=policy, ended=ended, poll=poll), result)

    def _secrets(self, inputs: Mapping[str, Any]) -> list[str]:
        """What a target may have been sent before, and so may repeat although this request does not hold it."""
        return self._authorizer.known(inputs.get("authentication")) + own_authorization(inputs)

    async def _exchange(self, journey: _Journey, attempt: Attempt) -> Answer | _Trouble:
        """The answer in the end, all within the attempt's time but what is waited for connections."""
        seconds = attempt.timeout.total_seconds()
        try:
            async with asyncio.timeout(seconds) as time:
                return await self._travel(journey, attempt, time)
        except TimeoutError:
            return _Trouble(status=Status.TIMED_OUT, reason=f"no answer within {seconds:g} s", again=True)
        except NotAuthorized as error:
            return _Trouble(status=Status.FAILED, reason=str(error), again=False)
        except NoToken as error:
            return _Trouble(status=Status.FAILED, reason=str(error), again=True)
        except Refused as error:
            reason = journey.mask.text(f"the request {error}")
            return _Trouble(status=Status.FAILED, reason=reason, again=False)
        except (aiohttp.ClientError, OSError) as error:
            again = not isinstance(error, aiohttp.InvalidURL)
            return _Trouble(status=Status.FAILED, reason=_told(error, journey.mask), again=again)
        except ValueError as error:
            return _Trouble(status=Status.FAILED, reason=_told(error, journey.mask), again=False)

    async def _travel(self, journey: _Journey, attempt: Attempt, time: asyncio.Timeout) -> Answer | _Trouble:
        """Sends the request, and again where redirects lead."""
        job_id = attempt.headers.get("x-timerjobs-job-id", "")
        for _ in range(MAX_REDIRECTS + 1):
            async with self._connections.to(journey.request.url, job_id, attempt.tell, time):
                answer = await self._send(journey)
            try:
                following = redirected(journey.request, answer.status, answer.location)
                if following is None:
                    return answer
                _check_discreet(str(following.url), journey.mask)
            except ValueError as error:
                reason = f"the target answered {answer.status}, but its Location {error}"
                return _Trouble(status=Status.FAILED, reason=reason, again=False, response=answer.kept)
            journey.request = following
        reason = f"the target redirected more than {MAX_REDIRECTS} times"
        return _Trouble(status=Status.FAILED, reason=reason, again=False, response=answer.kept)

    async def _send(self, journey: _Journey) -> Answer:
        request = journey.request
        if request.authentication is not None:
            request.headers["Authorization"] = await self._authorizer.authorization(
                request.authentication, request.url
            )
        journey.secrets += request.headers.getall("Authorization", [])
        async with self._session.request(
            request.method,
            request.url,
            data=request.body,
            headers=request.headers,
            allow_redirects=False,
        ) as response:
            return await read_answer(response, journey.mask)


def _told(error: Exception, mask: Mask) -> str:
    text = f"{type(error).__name__}: {error}".encode(errors="replace").decode()
    return mask.text(text)[:1000]


def _judge(exchange: _Exchange, result: Answer | _Trouble) -> Outcome | Later:
    """What one exchange means for the action."""
    if isinstance(result, _Trouble):
        failed = Outcome(status=result.status, reason=result.reason, response=result.response)
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
            address = poll_address(answer.location, exchange.journey.request.url)
            _check_discreet(address, exchange.journey.mask)
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


def _check_discreet(address: str, mask: Mask) -> None:
    if mask.text(address) != address:
        raise ValueError("repeats the request's authorization")


def _is_polled(action: Mapping[str, Any]) -> bool:
    options = str(action.get("operationOptions") or "").split(",")
    return "disableasyncpattern" not in {option.strip().lower() for option in options}
