"""How often a failed attempt is repeated, and after how long: the retry policies of Logic Apps.

`none`; `fixed`, after `interval` each time; `exponential`, after a random time from a range that doubles.
For retry k of an exponential policy the range goes from max(interval x 2^(k-2), minimum), where the first
retry has the minimum alone, to min(interval x 2^(k-1), maximum). Where the two cross, the bound that was
crossed is the delay. The draw is uniform and follows from the idempotency key and the attempt's number, so
jobs that fail together spread out, and a repeated computation gives the same instant.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from shared.engine.actions.inputs import BadInput, mapping
from shared.engine.actions.outcome import Attempt, Later, Outcome
from shared.recurrence import parse_duration

MAX_COUNT = 90
MIN_INTERVAL = timedelta(seconds=1)
MAX_INTERVAL = timedelta(days=1)
USUAL_MINIMUM = timedelta(seconds=5)
_KNOWN = {
    "none": {"type"},
    "fixed": {"type", "count", "interval"},
    "exponential": {"type", "count", "interval", "minimumInterval", "maximumInterval"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """`count` retries; equal ones after `interval` if `fixed`, else drawn from ranges that double."""

    count: int
    interval: timedelta = timedelta(0)
    minimum: timedelta = timedelta(0)
    maximum: timedelta = MAX_INTERVAL
    fixed: bool = False

    def delay(self, retry: int, seed: str) -> timedelta:
        """How long to wait before retry number `retry` (from 1); `seed` decides the draw."""
        if self.fixed:
            return self.interval
        low, high = self.bounds(retry)
        return low + (high - low) * _share(seed)

    def bounds(self, retry: int) -> tuple[timedelta, timedelta]:
        """The range from which an exponential policy draws the delay before this retry."""
        longest = self.maximum.total_seconds()
        top = min(self.interval.total_seconds() * 2.0 ** (retry - 1), longest)
        bottom = 0.0 if retry == 1 else self.interval.total_seconds() * 2.0 ** (retry - 2)
        low = min(max(bottom, self.minimum.total_seconds()), longest)
        return timedelta(seconds=low), timedelta(seconds=max(low, top))


NO_RETRY = RetryPolicy(count=0)
DEFAULT_RETRY = RetryPolicy(
    count=4,
    interval=timedelta(seconds=7.5),
    minimum=USUAL_MINIMUM,
    maximum=timedelta(seconds=45),
)
"""What Logic Apps does for an action that says nothing."""


def read_retry_policy(raw: Any, field: str = "retryPolicy") -> RetryPolicy:
    """The policy an action's `retryPolicy` means; the default where it is absent. Raises BadInput."""
    if raw is None:
        return DEFAULT_RETRY
    given = mapping(raw, field)
    kind = given.get("type")
    if not isinstance(kind, str) or kind not in _KNOWN:
        raise BadInput(f"{field}.type", "must be none, fixed or exponential")
    for name, value in given.items():
        if name not in _KNOWN[kind] and value is not None:
            raise BadInput(f"{field}.{name}", f"is not a property of the {kind} policy")
    if kind == "none":
        return NO_RETRY
    count, interval = _count(given, field), _interval(given, "interval", field)
    if kind == "fixed":
        return RetryPolicy(count=count, interval=interval, fixed=True)
    minimum = _interval(given, "minimumInterval", field, min(USUAL_MINIMUM, interval))
    maximum = _interval(given, "maximumInterval", field, MAX_INTERVAL)
    if minimum > maximum:
        raise BadInput(f"{field}.minimumInterval", "must not be longer than maximumInterval")
    return RetryPolicy(count=count, interval=interval, minimum=minimum, maximum=maximum)


def _count(given: Mapping[str, Any], field: str) -> int:
    count = given.get("count")
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_COUNT:
        raise BadInput(f"{field}.count", f"must be an integer from 1 to {MAX_COUNT}")
    return count


def _interval(given: Mapping[str, Any], name: str, field: str, default: timedelta | None = None) -> timedelta:
    text = given.get(name)
    if text is None and default is not None:
        return default
    if not isinstance(text, str):
        raise BadInput(f"{field}.{name}", "must be an ISO 8601 duration: PT10S")
    try:
        interval = parse_duration(text)
    except ValueError as error:
        raise BadInput(f"{field}.{name}", str(error)) from None
    if not MIN_INTERVAL <= interval <= MAX_INTERVAL:
        raise BadInput(f"{field}.{name}", "must last from PT1S to P1D")
    return interval


def seed_of(attempt: Attempt) -> str:
    """What decides the draws of this attempt: the idempotency key and its number."""
    return f"{attempt.headers.get('Idempotency-Key', '')}:{attempt.number}"


def try_again(
    failed: Outcome,
    policy: RetryPolicy,
    *,
    failures: int,
    seed: str,
    ended: datetime,
    asked: timedelta = timedelta(0),
) -> Outcome | Later:
    """The attempt that `failed` and ended then is repeated, or stands: `failures` before it were retried.

    `asked` is the wait that the target asked for; the longer one counts.
    """
    if failures >= policy.count:
        more = f", after {policy.count} retries" if policy.count else ""
        return replace(failed, reason=failed.reason + more)
    return Later(
        at=ended + max(policy.delay(failures + 1, seed), asked),
        reason=f"{failed.reason}; retry {failures + 1} of {policy.count} is to come",
        attempted=True,
        response=failed.response,
    )


def retry_after(text: str | None, now: datetime) -> timedelta | None:
    """How long a Retry-After header (seconds or an HTTP date) asks to wait from `now`, at most a day.

    None where there is no header, or none that means anything.
    """
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return MAX_INTERVAL if len(text) > 9 else min(timedelta(seconds=int(text)), MAX_INTERVAL)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return min(max(moment - now, timedelta(0)), MAX_INTERVAL)
    except (ValueError, OverflowError):
        return None


def _share(seed: str) -> float:
    """A number from 0 to 1 that `seed` decides."""
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) / 2**64
