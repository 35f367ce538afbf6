"""What log lines carry beside their text: docs/observability.md has the table. Texts and numbers only."""

from shared.jobs.model import BadTimer, Baton, Ended, Idle, Run, trace_id
from shared.jobs.times import json_text


def about(run: Run) -> dict[str, str | int]:
    """What a line about a run carries."""
    return {"job": run.job_id, "run": run.seq, "scheduled": json_text(run.scheduled), "trace": run.trace_id}


def about_ended(job_id: str, stamp: str, ended: Ended) -> dict[str, str | int]:
    """What a line about a run that has ended carries."""
    trace = trace_id(job_id, stamp, ended.seq)
    return {"job": job_id, "run": ended.seq, "scheduled": json_text(ended.scheduled), "trace": trace}


def about_timer(timer: Baton | Idle | BadTimer) -> dict[str, str | int]:
    """What a line about a timer carries."""
    if isinstance(timer, Idle):
        return about(timer.run)
    scheduled = {"scheduled": json_text(timer.pending.scheduled)} if isinstance(timer, Baton) else {}
    return {"job": timer.job_id, **scheduled}
