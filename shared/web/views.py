"""Jobs, runs and stretches as JSON, in the names of the API."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from shared.jobs.definition import load_definition
from shared.jobs.instance import steps_of
from shared.jobs.model import Ended, Idle, Job, Run, State, Status, Stretch, Waiting
from shared.jobs.progress import attempts_of
from shared.jobs.times import duration_text, from_row_text, json_text
from shared.jobs.transitions import readable_timing
from shared.recurrence import Schedule


def job_view(job: Job, unserved: Collection[str] = ()) -> dict[str, Any]:
    """A job as GET answers it: the definition, which can be edited and PUT back, and what is read-only.

    `unserved`: service types that nobody can run at present.
    """
    definition = load_definition(job.core.definition).raw
    schedule = schedule_of(job)
    counters = job.core.counters
    view: dict[str, Any] = {"id": job.id, "state": str(job.state), **definition}
    if schedule is not None:
        view |= {"evaluatedRecurrence": schedule.evaluated} if schedule.evaluated else {}
        view["describe"] = schedule.describe()
    view |= {
        "nextOccurrence": json_text(job.pending.scheduled) if job.pending and comes(job) else None,
        "fired": counters.fired,
        "missed": counters.missed,
        "skipped": counters.skipped,
        "lastRun": job.last_run,
        "createdAt": json_text(job.created_at),
        "updatedAt": json_text(job.updated_at),
        "generation": job.core.generation,
        "warnings": _warnings(job, schedule, unserved),
    }
    return view


def comes(job: Job) -> bool:
    """Whether the job's pending occurrence is going to be."""
    return job.state is State.ENABLED


def schedule_of(job: Job) -> Schedule | None:
    """The job's schedule; None if it was stored by rules, or with zones, that this version does not know."""
    timing = readable_timing(job)
    return timing.schedule if timing else None


def _warnings(job: Job, schedule: Schedule | None, unserved: Collection[str]) -> list[dict[str, Any]]:
    """What a caller may not expect: that the run at creation or at a changed trigger is still to come (F2), that
    the job cannot be fired, or that nobody can run it."""
    warnings = []
    initial = schedule.initial_run if schedule else None
    if initial is not None and job.pending and job.pending.scheduled == initial and comes(job):
        warnings.append({"code": "InitialRun", "at": json_text(initial)})
    if job.state is State.ENABLED and job.fault:
        warnings.append({"code": "SetAside", "detail": job.fault})
    service_type = load_definition(job.core.definition).service_type
    if service_type in unserved:
        detail = f"neither a workflow of the app nor a host with a lease has the serviceType {service_type!r}"
        warnings.append({"code": "NoHost", "detail": detail})
    return warnings


def run_view(run: Run, reason: str = "") -> dict[str, Any]:
    """A run that is executing, or that waits, for the `reason` given or for an executor."""
    reason = reason or ("" if run.owner else _waits_for(run))
    steps = steps_of(run)
    return (
        {
            "seq": run.seq,
            "scheduledTime": json_text(run.scheduled),
            "startTime": json_text(run.started) if run.started else None,
            "endTime": None,
            **({"lateness": _lateness(run.scheduled, run.started)} if run.started else {}),
            "status": str(Status.WAITING if reason else Status.RUNNING),
            "attempts": attempts_of(run.takeovers, steps),
            "actions": {name: step.view() for name, step in steps.items()},
        }
        | _window(run.window)
        | ({"reason": reason} if reason else {})
    )


def idle_view(idle: Idle) -> dict[str, Any]:
    """A run that is in nobody's memory until something is due, or a host loads it."""
    return run_view(idle.run, f"goes on at {json_text(idle.due)}" if idle.due else _waits_for(idle.run))


def _waits_for(run: Run) -> str:
    return f"waits for a host of {run.service_type}" if run.awaits_host else "waits for an executor"


def waiting_view(place: Waiting) -> dict[str, Any]:
    """An occurrence that waits for room among its job's runs."""
    return {
        "seq": place.seq,
        "scheduledTime": json_text(place.scheduled),
        "startTime": None,
        "endTime": None,
        "status": str(Status.WAITING),
        "reason": "waits until fewer runs are under way",
        "attempts": 0,
        "actions": {},
    } | _window(place.window)


def past_view(record: Ended | Stretch) -> dict[str, Any]:
    """A run that has ended, or a stretch of occurrences that were not fired."""
    if isinstance(record, Stretch):
        return {
            "seq": record.seq,
            "status": str(record.status),
            "reason": record.reason,
            "from": json_text(record.first),
            "to": json_text(record.last),
            "count": record.count,
        }
    view: dict[str, Any] = {
        "seq": record.seq,
        "scheduledTime": json_text(record.scheduled),
        "startTime": json_text(record.started),
        "endTime": json_text(record.ended),
        "lateness": _lateness(record.scheduled, record.started),
        "status": str(record.status),
        "attempts": record.attempts,
        "actions": record.actions,
    }
    bounds = record.window and (from_row_text(record.window[0]), from_row_text(record.window[1]))
    view |= _window(bounds) | ({"reason": record.reason} if record.reason else {})
    return view if record.result is None else view | {"result": record.result}


def _window(window: tuple[datetime, datetime] | None) -> dict[str, str]:
    if window is None:
        return {}
    return {"windowStartTime": json_text(window[0]), "windowEndTime": json_text(window[1])}


def _lateness(scheduled: datetime, started: datetime) -> str:
    late = max(started - scheduled, timedelta(0))
    return duration_text(timedelta(milliseconds=late // timedelta(milliseconds=1)))
