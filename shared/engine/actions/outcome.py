"""What an action is told, and how one attempt at it went."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from shared.jobs.model import Status

MAX_DURATION = timedelta(days=90)
"""The longest an action may wait or be polled for (X4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What an action is told.

    `action` is the whole action object of the definition (type, inputs unevaluated, limit, operationOptions);
    `inputs` are its inputs with expressions evaluated and escapes resolved. `headers` say which occurrence it
    is for (Idempotency-Key, x-timerjobs-*), and in which trace (traceparent). `timeout` is for this attempt,
    `number` counts attempts of this action from 1. `memo` is what the former attempt left for this one
    ({} at first; JSON values only). `now` is the instant it begins (aware, UTC). `tell` shows callers what the
    attempt waits for before it turns to its target, '' once it waits no longer.
    """

    action: Mapping[str, Any]
    inputs: Mapping[str, Any]
    headers: Mapping[str, str]
    timeout: timedelta
    number: int
    memo: Mapping[str, Any]
    now: datetime
    tell: Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The action is done. `status` is Succeeded, Failed or TimedOut; `response` what history keeps of the
    target's answer."""

    status: Status
    reason: str = ""
    response: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """The action goes on by another attempt, not before `at` (aware, UTC), perhaps in another process.

    `memo` is for that attempt. `reason` says to people why it waits. `attempted` tells whether this counts as
    an attempt made: a failed call that is retried does, a poll or a wait does not.
    """

    at: datetime
    memo: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    attempted: bool = False
    response: Mapping[str, Any] | None = None


class Action(Protocol):
    """One kind of action. It makes one attempt, never sleeps, and never raises for what its target does."""

    async def attempt(self, attempt: Attempt) -> Outcome | Later:
        """Makes one attempt: the action is done, or goes on later."""
