"""Row keys and properties: how each value lies in the table, and back.

Where a row lies is the state it is in; docs/design.md has the table of rows. Property texts of instants have
a fixed width, so they compare as time does. Merge cannot remove a property, so "none" is the empty string.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from shared.jobs.definition import pack, unpack
from shared.jobs.model import (
    FORMAT_VERSION,
    BadTimer,
    Baton,
    Core,
    Counters,
    Ended,
    Job,
    Pending,
    Removal,
    Run,
    State,
    Status,
    Stretch,
)
from shared.jobs.times import EPOCH, from_key_text, from_row_text, key_text, row_text
from shared.storage.table import Row

UNLOCKED = row_text(EPOCH)


def job_key(job_id: str) -> str:
    """`job:{id}`."""
    return f"job:{job_id}"


def timer_key(due: datetime, job_id: str) -> str:
    """`timer:{due}:{id}`."""
    return f"timer:{key_text(due)}:{job_id}"


def run_key(job_id: str, seq: int) -> str:
    """`run:{id}:{seq}`."""
    return f"run:{job_id}:{seq:010d}"


def past_key(job_id: str, seq: int, history_limit: int) -> str:
    """`past:{id}:{slot}`: history is a ring of `history_limit` slots."""
    return f"past:{job_id}:{seq % history_limit:05d}"


def job_range(kind: str, job_id: str) -> tuple[str, str]:
    """The keys of one job's rows of a kind: ids hold none of `: ;`, so no other job's are among them."""
    return f"{kind}:{job_id}:", f"{kind}:{job_id};"


def prefix_range(prefix: str) -> tuple[str, str]:
    """The keys of the jobs whose id starts with `prefix`."""
    return f"job:{prefix}", f"job:{prefix}\x7f"


def timer_range(before: datetime, since: datetime | None = None) -> tuple[str, str]:
    """The keys of the timers with since <= due < before, both whole seconds."""
    return f"timer:{key_text(since)}" if since else "timer:", f"timer:{key_text(before)}"


ALL_RUNS = ("run:", "run;")


def job_row(job: Job, mark: str) -> dict[str, Any]:
    """The whole row of a job. `mark` names the transaction that writes it."""
    return {
        **job_progress(job.id, job.core, job.pending, job.state, job.fault),
        **_identity(job.core),
        "createdAt": row_text(job.created_at),
        "updatedAt": row_text(job.updated_at),
        "mark": mark,
    }


def job_progress(
    job_id: str, core: Core, pending: Pending | None, state: State, fault: str = ""
) -> dict[str, Any]:
    """What a turn of its timer changes of a job's row."""
    return {
        "RowKey": job_key(job_id),
        "state": str(state),
        "counters": json.dumps(asdict(core.counters)),
        "lastScheduled": _optional(core.last_scheduled),
        "nextScheduled": _optional(pending.scheduled if pending else None),
        "nextDue": _optional(pending.due if pending else None),
        "fault": fault,
    }


def read_job(row: Row) -> Job:
    """The job in a row."""
    scheduled, due = _instant(row["nextScheduled"]), _instant(row["nextDue"])
    return Job(
        id=row["RowKey"].removeprefix("job:"),
        core=_core(row),
        state=State(row["state"]),
        pending=Pending(scheduled=scheduled, due=due) if scheduled and due else None,
        created_at=from_row_text(row["createdAt"]),
        updated_at=from_row_text(row["updatedAt"]),
        last_run=json.loads(row["lastRun"]) if row.get("lastRun") else None,
        fault=row["fault"],
        etag=row["etag"],
    )


def baton_row(baton: Baton) -> dict[str, Any]:
    """The timer row of a job that is enabled."""
    return {
        "RowKey": timer_key(baton.pending.due, baton.job_id),
        "kind": "fire",
        "scheduled": row_text(baton.pending.scheduled),
        "counters": json.dumps(asdict(baton.core.counters)),
        "lastScheduled": _optional(baton.core.last_scheduled),
        "setAsides": baton.set_asides,
        **_identity(baton.core),
    }


def removal_row(removal: Removal) -> dict[str, Any]:
    """The timer row of a job that is being deleted."""
    return {"RowKey": timer_key(removal.due, removal.job_id), "kind": "remove", "v": FORMAT_VERSION}


def read_timer(row: Row) -> Baton | Removal | BadTimer:
    """The timer in a row. One that cannot be read is a value, so that it stops nobody else."""
    _, due_text, job_id = row["RowKey"].split(":", 2)
    try:
        due = from_key_text(due_text)
        if row["v"] != FORMAT_VERSION:
            raise ValueError(f"the row has format version {row['v']}; this app reads {FORMAT_VERSION}")
        if row["kind"] == "remove":
            return Removal(job_id=job_id, due=due, etag=row["etag"])
        return Baton(
            job_id=job_id,
            core=_core(row),
            pending=Pending(scheduled=from_row_text(row["scheduled"]), due=due),
            set_asides=row["setAsides"],
            etag=row["etag"],
        )
    except (KeyError, ValueError, TypeError) as error:
        return BadTimer(job_id=job_id, row=row, why=f"{type(error).__name__}: {error}", etag=row["etag"])


def run_row(run: Run) -> dict[str, Any]:
    """The row of an executing run."""
    return {
        "RowKey": run_key(run.job_id, run.seq),
        "stamp": run.stamp,
        "definition": run.definition,
        "scheduled": row_text(run.scheduled),
        "firedAt": row_text(run.fired_at),
        "mark": run.mark,
        "v": FORMAT_VERSION,
        **run_lock(run),
    }


def run_lock(run: Run) -> dict[str, Any]:
    """What a lease changes of a run's row."""
    return {
        "RowKey": run_key(run.job_id, run.seq),
        "owner": run.owner,
        "lockedUntil": row_text(run.locked_until) if run.locked_until else UNLOCKED,
        "takeovers": run.takeovers,
    }


def read_run(row: Row) -> Run:
    """The run in a row."""
    _, job_id, seq = row["RowKey"].split(":")
    locked_until = row["lockedUntil"]
    return Run(
        job_id=job_id,
        seq=int(seq),
        stamp=row["stamp"],
        definition=row["definition"],
        scheduled=from_row_text(row["scheduled"]),
        fired_at=from_row_text(row["firedAt"]),
        owner=row["owner"],
        locked_until=None if locked_until == UNLOCKED else from_row_text(locked_until),
        takeovers=row["takeovers"],
        mark=row["mark"],
        etag=row["etag"],
    )


def past_row(job_id: str, record: Ended | Stretch, history_limit: int, mark: str = "") -> dict[str, Any]:
    """The history row of a run that ended, or of a stretch."""
    plain = {k: row_text(v) if isinstance(v, datetime) else v for k, v in asdict(record).items()}
    return {
        "RowKey": past_key(job_id, record.seq, history_limit),
        "seq": record.seq,
        "kind": "stretch" if isinstance(record, Stretch) else "run",
        "record": pack(plain),
        "mark": mark,
        "v": FORMAT_VERSION,
    }


def read_past(row: Row) -> Ended | Stretch:
    """The history record in a row."""
    plain: dict[str, Any] = unpack(row["record"])
    plain["status"] = Status(plain["status"])
    times = ("first", "last") if row["kind"] == "stretch" else ("scheduled", "started", "ended")
    plain |= {name: from_row_text(plain[name]) for name in times}
    return Stretch(**plain) if row["kind"] == "stretch" else Ended(**plain)


def last_run_text(summary: Mapping[str, Any]) -> str:
    """The job row's short account of the run that ended last."""
    return json.dumps(summary)


def _identity(core: Core) -> dict[str, Any]:
    return {
        "stamp": core.stamp,
        "generation": core.generation,
        "anchor": row_text(core.anchor),
        "definition": core.definition,
        "v": FORMAT_VERSION,
    }


def _core(row: Row) -> Core:
    return Core(
        stamp=row["stamp"],
        generation=row["generation"],
        anchor=from_row_text(row["anchor"]),
        definition=row["definition"],
        counters=Counters(**json.loads(row["counters"])),
        last_scheduled=_instant(row["lastScheduled"]),
    )


def _optional(instant: datetime | None) -> str:
    return row_text(instant) if instant else ""


def _instant(text: str) -> datetime | None:
    return from_row_text(text) if text else None
