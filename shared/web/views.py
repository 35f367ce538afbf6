"""Jobs, runs and stretches as JSON, in the names of the API."""

from datetime import datetime, timedelta
from typing import Any

from shared.jobs.definition import load_definition, load_schedule
from shared.jobs.model import Ended, Job, Run, State, Status, Stretch
from shared.jobs.times import duration_text, json_text


def job_view(job: Job) -> dict[str, Any]:
    """A job as GET answers it: the definition, which can be edited and PUT back, and what is read-only."""
    definition = load_definition(job.core.definition).raw
    schedule = load_schedule(job.core.definition, job.core.anchor)
    counters = job.core.counters
    view: dict[str, Any] = {"id": job.id, "state": str(job.state), **definition}
    if schedule.evaluated:
        view["evaluatedRecurrence"] = schedule.evaluated
    view |= {
        "describe": schedule.describe(),
        "nextOccurrence": json_text(job.pending.scheduled) if job.pending else None,
        "fired": counters.fired,
        "missed": counters.missed,
        "skipped": counters.skipped,
        "lastRun": job.last_run,
        "createdAt": json_text(job.created_at),
        "updatedAt": json_text(job.updated_at),
        "generation": job.core.generation,
        "warnings": _warnings(job, schedule.initial_run),
    }
    return view


def _warnings(job: Job, initial: datetime | None) -> list[dict[str, Any]]:
    """What a caller may not expect: that the run at creation or at a changed trigger is still to come (F2)."""
    warnings = []
    if initial is not None and job.pending and job.pending.scheduled == initial:
        warnings.append({"code": "InitialRun", "at": json_text(initial)})
    if job.state is State.ENABLED and job.fault:
        warnings.append({"code": "SetAside", "detail": job.fault})
    return warnings


def run_view(run: Run) -> dict[str, Any]:
    """A run that is executing, or waits for an executor."""
    return {
        "seq": run.seq,
        "scheduledTime": json_text(run.scheduled),
        "startTime": json_text(run.fired_at),
        "endTime": None,
        "lateness": _lateness(run.scheduled, run.fired_at),
        "status": str(Status.RUNNING),
        "attempts": run.takeovers + 1,
    }


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
    if record.reason:
        view["reason"] = record.reason
    return view


def _lateness(scheduled: datetime, started: datetime) -> str:
    late = max(started - scheduled, timedelta(0))
    return duration_text(timedelta(milliseconds=late // timedelta(milliseconds=1)))
