"""The Wait action: for an interval, or until a moment (X2 to X4)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from dateutil.relativedelta import relativedelta

from shared.engine.actions.inputs import BadInput, mapping
from shared.engine.actions.outcome import MAX_DURATION, Attempt, Later, Outcome
from shared.jobs.model import Status
from shared.jobs.times import json_text
from shared.recurrence.instants import parse_time, to_datetime

UNITS = ("Second", "Minute", "Hour", "Day", "Week", "Month")
_TOO_LONG = f"would wait for more than {MAX_DURATION.days} days"


class WaitAction:
    """Waits, without staying in memory."""

    async def attempt(self, attempt: Attempt) -> Outcome | Later:
        """The first attempt says when to go on; the one after that moment succeeds."""
        try:
            at = self._end(attempt)
        except ValueError as error:
            return Outcome(status=Status.FAILED, reason=str(error))
        if at <= attempt.now:
            return Outcome(status=Status.SUCCEEDED)
        return Later(at=at, memo={"until": at.isoformat()}, reason=f"waits until {json_text(at)}")

    @staticmethod
    def _end(attempt: Attempt) -> datetime:
        until = attempt.memo.get("until")
        return wait_until(attempt.inputs, attempt.now) if until is None else datetime.fromisoformat(until)


def wait_until(inputs: Mapping[str, Any], now: datetime) -> datetime:
    """The instant at which a wait that begins at `now` is over (UTC); past or `now` itself: at once.

    `interval` is `{count, unit}`; months are calendar months in UTC, clamped to the last day (X2). `until` is
    `{timestamp}` (X3). Raises BadInput, a ValueError that names the field; also for a wait of over 90 days (X4).
    """
    interval, until = inputs.get("interval"), inputs.get("until")
    if (interval is None) == (until is None):
        raise BadInput("interval" if interval is None else "until", "or the other of interval and until is needed")
    if interval is not None:
        return _after(mapping(interval, "interval"), now)
    return _moment(mapping(until, "until"), now)


def _after(interval: Mapping[str, Any], now: datetime) -> datetime:
    count, unit = interval.get("count"), interval.get("unit")
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise BadInput("interval.count", "must be an integer of 0 or more")
    known = unit.capitalize() if isinstance(unit, str) else ""
    if known not in UNITS:
        raise BadInput("interval.unit", f"must be one of {', '.join(UNITS)}")
    try:
        at = now + (relativedelta(months=count) if known == "Month" else timedelta(**{f"{known.lower()}s": count}))
    except (OverflowError, ValueError):
        raise BadInput("interval", _TOO_LONG) from None
    return _bounded(at, now, "interval")


def _moment(until: Mapping[str, Any], now: datetime) -> datetime:
    text = until.get("timestamp")
    if not isinstance(text, str):
        raise BadInput("until.timestamp", "must be text such as 2026-01-31T08:30:00Z")
    try:
        written = parse_time(text)
    except ValueError as error:
        raise BadInput("until.timestamp", str(error)) from None
    if not written.utc:
        raise BadInput("until.timestamp", "must end with Z")
    try:
        return _bounded(to_datetime(written.rounded_up), now, "until.timestamp")
    except OverflowError:
        raise BadInput("until.timestamp", _TOO_LONG) from None


def _bounded(at: datetime, now: datetime, field: str) -> datetime:
    if at - now > MAX_DURATION:
        raise BadInput(field, _TOO_LONG)
    return at
