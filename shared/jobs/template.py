"""The request of the Logic Apps job scheduler template, and the job that it asks for."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field

from shared.errors import Conflict, Fault, InvalidInput
from shared.jobs.faults import and_faults, read_model, renamed
from shared.jobs.fields import Model, told_as
from shared.jobs.spec import parse_job, parse_trigger
from shared.jobs.times import SECOND, ceil_second, json_text

TAG = "timerjobid"
LAST_YEAR = 2999
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?", re.ASCII | re.IGNORECASE
)


def _instant(text: str) -> datetime:
    """The whole second at or after a time, which is UTC unless it has an offset. Raises ValueError."""
    match = _TIME.fullmatch(text)
    try:
        if not match:
            raise ValueError
        minute, second, fraction, offset = match.groups()
        local = datetime.fromisoformat(f"{minute}:{second or '00'}{(offset or 'Z').upper()}")
        if not 1970 <= local.year <= LAST_YEAR:
            raise ValueError
    except ValueError:
        raise ValueError(f"must be a time such as 2026-09-08T13:00:00Z, from 1970 to {LAST_YEAR}") from None
    return local.astimezone(UTC) + SECOND * bool(int(fraction or "0"))


def _is_time(text: str) -> str:
    _instant(text)
    return text


Time = Annotated[str, AfterValidator(_is_time)]


class JobRecurrence(Model):
    """How often, and until when."""

    frequency: str
    interval: int
    count: Annotated[int, Field(ge=-1), told_as("must be an integer: 0 or more, or -1 for no limit")] = -1
    end_time: Time | None = None


class TimerJobRequest(Model):
    """The body of `POST /CreateTimerJob`."""

    timerjobid: Annotated[str, Field(min_length=1, max_length=256), told_as("must be text of 1 to 256 characters")]
    start_time: Time | None = None
    job_recurrence: JobRecurrence
    job_status: Any = None
    action: Any = None


class LimitsMet(Conflict):
    """There is nothing to run: no count is left, or the end comes before the first time."""


class TimerJob(NamedTuple):
    """The job that a request asks for, as the body of a request to create it, and when it fires first."""

    timerjobid: str
    body: dict[str, Any]
    first: datetime


def read_timer_job(body: Any, default_action: Mapping[str, Any] | None, now: datetime) -> TimerJob:
    """The job that a request asks for, with `default_action` if it names none.

    It fires one interval after its start, or after `now` if that is later, for the first time; then at each
    interval. Raises InvalidInput, its paths as the request has them, and LimitsMet.
    """
    asked, faults = read_model(TimerJobRequest, body)
    action = body.get("action") if isinstance(body, dict) else None
    if action is not None:
        faults = and_faults(faults, action_faults(action, now))
    elif default_action is None and isinstance(body, dict):
        faults.append(Fault("action", "is required, since the app setting TEMPLATE_ACTION names none"))
    if asked is None:
        raise InvalidInput(faults)
    recurrence: dict[str, Any] = {
        "frequency": asked.job_recurrence.frequency,
        "interval": asked.job_recurrence.interval,
    }
    try:
        first = _first(asked, recurrence, now)
    except InvalidInput as error:
        raise as_asked(InvalidInput(and_faults(faults, list(error.faults)))) from None
    if faults:
        raise InvalidInput(faults)
    recurrence["startTime"] = json_text(first)
    limits = asked.job_recurrence
    if limits.count >= 0:
        recurrence["count"] = limits.count
    if limits.end_time is not None:
        recurrence["endTime"] = json_text(_instant(limits.end_time) - SECOND)  # it is not part of the time
    if limits.count == 0 or (limits.end_time is not None and first >= _instant(limits.end_time)):
        raise LimitsMet(_criteria_met(limits, first))
    job = {
        "tags": {TAG: asked.timerjobid},
        "trigger": {"type": "Recurrence", "recurrence": recurrence},
        "action": default_action if action is None else action,
    }
    return TimerJob(asked.timerjobid, job, first)


def _first(asked: TimerJobRequest, recurrence: Mapping[str, Any], now: datetime) -> datetime:
    """One interval after the start."""
    start = ceil_second(now)
    if asked.start_time is not None:
        start = max(start, _instant(asked.start_time))
    trigger = {"type": "Recurrence", "recurrence": {**recurrence, "startTime": json_text(start)}}
    first = parse_trigger(trigger, None, now).after(start)
    assert first, "a recurrence without an end goes on"
    return first


def action_faults(action: Any, now: datetime) -> list[Fault]:
    """What is wrong with an action by itself."""
    try:
        parse_job({"trigger": {"type": "Once"}, "action": action}, now)
    except InvalidInput as error:
        return list(error.faults)
    return []


def as_asked(error: InvalidInput) -> InvalidInput:
    """The error, paths of the job as paths of the request."""
    faults = (renamed(fault, "trigger.recurrence.startTime", "startTime") for fault in error.faults)
    return InvalidInput(renamed(fault, "trigger.recurrence", "jobRecurrence") for fault in faults)


def time_text(instant: datetime) -> str:
    """`2026-09-08T13:00:00.0000000Z`, as Logic Apps writes times."""
    return instant.strftime("%Y-%m-%dT%H:%M:%S.0000000Z")


def _criteria_met(limits: JobRecurrence, first: datetime) -> str:
    """What the template answers where there is nothing to run."""
    return (
        "Job completion criteria met.\nDetails: \nEither\n"
        f"endTime({limits.end_time or ''}) < Next execution time({time_text(first)})\nOR\n"
        f"count({limits.count if limits.count >= 0 else ''}) > execution count (0)"
    )
