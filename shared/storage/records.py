"""What each row holds: every value as properties, and back.

Property texts of instants have a fixed width, so they compare as time does. A merge cannot remove a property,
so "none" is the empty string. Small structures are JSON texts, large ones packed bytes in chunks.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from shared.jobs.model import (
    FORMAT_VERSION,
    TIMER_JOB,
    BadTimer,
    Baton,
    Core,
    Counters,
    Gate,
    Idle,
    Job,
    NewerTimer,
    OpenSkip,
    Pending,
    Removal,
    Run,
    State,
    Waiting,
    Window,
    members,
)
from shared.jobs.times import EPOCH, from_key_text, from_row_text, row_text
from shared.storage.chunks import STATE, definition_in, definition_properties, joined, split
from shared.storage.formats import NEWEST, check_format, is_newer
from shared.storage.rows import job_key, run_key, timer_key
from shared.storage.table import Row

UNLOCKED = row_text(EPOCH)


def job_row(job: Job, mark: str) -> dict[str, Any]:
    """The whole row of a job. `mark` names the transaction that writes it."""
    return {
        **job_progress(job.id, job.core, job.pending, job.state, job.fault),
        **_identity(job.core),
        "gate": _gate_text(job.gate),
        "dormant": job.dormant,
        "request": job.request,
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
        **_progress(core),
        "nextScheduled": _optional(pending.scheduled if pending else None),
        "nextDue": _optional(pending.due if pending else None),
        "tzdata": pending.tzdata if pending else "",
        "offset": pending.offset if pending else None,
        "fault": fault,
    }


def job_gate(job_id: str, gate: Gate) -> dict[str, Any]:
    """What a gate changes of a job's row."""
    return {"RowKey": job_key(job_id), "gate": _gate_text(gate)}


def read_job(row: Row) -> Job:
    """The job in a row. Raises NewerFormat."""
    check_format(row)
    scheduled, due = _instant(row["nextScheduled"]), _instant(row["nextDue"])
    pending = _pending(row, scheduled, due) if scheduled and due else None
    return Job(
        id=row["RowKey"].removeprefix("job:"),
        core=_core(row),
        state=State(row["state"]),
        pending=pending,
        created_at=from_row_text(row["createdAt"]),
        updated_at=from_row_text(row["updatedAt"]),
        gate=_gate(row["gate"]),
        dormant=row["dormant"],
        last_run=json.loads(row["lastRun"]) if row.get("lastRun") else None,
        fault=row["fault"],
        request=row.get("request", ""),
        etag=row["etag"],
    )


def _pending(row: Row, scheduled: datetime, due: datetime) -> Pending:
    return Pending(scheduled=scheduled, due=due, tzdata=row["tzdata"], offset=row.get("offset"))


def baton_row(baton: Baton) -> dict[str, Any]:
    """The timer row of a job that is enabled."""
    return {
        "RowKey": timer_key(baton.pending.due, baton.job_id),
        "kind": "fire",
        "scheduled": row_text(baton.pending.scheduled),
        "tzdata": baton.pending.tzdata,
        "offset": baton.pending.offset,
        **_progress(baton.core),
        "setAsides": baton.set_asides,
        **_identity(baton.core),
    }


def removal_row(removal: Removal) -> dict[str, Any]:
    """The timer row of a job that is being deleted, or is to be."""
    return {"RowKey": timer_key(removal.due, removal.job_id), "kind": "remove", "v": FORMAT_VERSION}


def read_timer(row: Row) -> Baton | Removal | Idle | BadTimer | NewerTimer:
    """The timer in a row. One that cannot be read is a value, so that it stops nobody else."""
    if is_newer(row):
        return NewerTimer(key=row["RowKey"])
    _, due_text, job_id, *rest = row["RowKey"].split(":")
    try:
        due = from_key_text(due_text)
        if not FORMAT_VERSION <= row["v"] <= NEWEST:
            raise ValueError(f"the row has format version {row['v']}; this app reads up to {NEWEST}")
        if row["kind"] == "remove":
            return Removal(job_id=job_id, due=due, etag=row["etag"])
        if row["kind"] == "resume":
            return Idle(run=read_whole_run(row, job_id, int(rest[0])), due=due, etag=row["etag"])
        return Baton(
            job_id=job_id,
            core=_core(row),
            pending=_pending(row, from_row_text(row["scheduled"]), due),
            set_asides=row["setAsides"],
            etag=row["etag"],
        )
    except (KeyError, ValueError, TypeError, IndexError) as error:
        return BadTimer(job_id=job_id, row=row, why=f"{type(error).__name__}: {error}", etag=row["etag"])


def run_row(run: Run) -> dict[str, Any]:
    """The row of an executing run."""
    return {**whole_run(run), **run_lock(run)}


def run_lock(run: Run) -> dict[str, Any]:
    """What a lease changes of a run's row."""
    return {
        "RowKey": run_key(run.job_id, run.seq),
        "owner": run.owner,
        "lockedUntil": row_text(run.locked_until) if run.locked_until else UNLOCKED,
        **run_begun(run),
    }


def run_begun(run: Run) -> dict[str, Any]:
    """What any row of a run says of its locks: when the first was, if it had one, and how many were take-overs."""
    return {"takeovers": run.takeovers} | ({"startedAt": row_text(run.started)} if run.started else {})


def read_run(row: Row) -> Run:
    """The run in the row of an executing run. Raises NewerFormat."""
    check_format(row)
    _, job_id, seq = row["RowKey"].split(":")
    return read_whole_run(row, job_id, int(seq))


def whole_run(run: Run) -> dict[str, Any]:
    """What every row of a run holds, executing or not."""
    return {
        "stamp": run.stamp,
        "scheduled": row_text(run.scheduled),
        "firedAt": row_text(run.fired_at),
        "steady": run.steady,
        "window": json.dumps(_window_texts(run.window)),
        "byHand": run.by_hand,
        "gated": run.gated,
        "serviceType": run.service_type,
        "activation": run.activation,
        "version": run.version,
        "mark": run.mark,
        **definition_properties(run.definition),
        **split(STATE, run.state),
    }


def read_whole_run(row: Row, job_id: str, seq: int) -> Run:
    """The run in a row that holds one. Raises KeyError, ValueError, TypeError where it cannot be read."""
    locked_until = row.get("lockedUntil", UNLOCKED)
    return Run(
        job_id=job_id,
        seq=seq,
        stamp=row["stamp"],
        definition=definition_in(row),
        scheduled=from_row_text(row["scheduled"]),
        fired_at=from_row_text(row["firedAt"]),
        started=_started(row),
        owner=row.get("owner", ""),
        locked_until=None if locked_until == UNLOCKED else from_row_text(locked_until),
        takeovers=row["takeovers"],
        steady=row["steady"],
        window=_window(json.loads(row["window"])),
        by_hand=row["byHand"],
        gated=row["gated"],
        service_type=row.get("serviceType", TIMER_JOB),
        activation=row.get("activation", ""),
        version=row.get("version", 0),
        state=joined(STATE, row),
        mark=row["mark"],
        etag=row["etag"],
    )


def _started(row: Row) -> datetime | None:
    """When the run in a row was first locked; if by a version that did not keep it, when it was fired."""
    begun = row.get("owner") or row["takeovers"] or row.get("version") or "state0" in row
    return _instant(row.get("startedAt") or (row["firedAt"] if begun else ""))


def _identity(core: Core) -> dict[str, Any]:
    return {
        "stamp": core.stamp,
        "generation": core.generation,
        "anchor": row_text(core.anchor),
        **definition_properties(core.definition),
    }


def _progress(core: Core) -> dict[str, Any]:
    skip = core.skipping
    return {
        "counters": json.dumps(members(core.counters)),
        "lastScheduled": _optional(core.last_scheduled),
        "floor": _optional(core.floor),
        "skipping": json.dumps([skip.seq, row_text(skip.first), skip.count]) if skip else "",
    }


def _core(row: Row) -> Core:
    skipping = None
    if row["skipping"]:
        seq, first, count = json.loads(row["skipping"])
        skipping = OpenSkip(seq=seq, first=from_row_text(first), count=count)
    return Core(
        stamp=row["stamp"],
        generation=row["generation"],
        anchor=from_row_text(row["anchor"]),
        definition=definition_in(row),
        counters=Counters(**json.loads(row["counters"])),
        last_scheduled=_instant(row["lastScheduled"]),
        floor=_instant(row["floor"]),
        skipping=skipping,
    )


def _gate_text(gate: Gate) -> str:
    waiting = [
        [w.seq, w.stamp, row_text(w.scheduled), row_text(w.accepted), _window_texts(w.window), w.by_hand]
        for w in gate.waiting
    ]
    return json.dumps({"running": gate.running, "waiting": waiting, "parked": gate.parked})


def _gate(text: str) -> Gate:
    plain = json.loads(text)
    waiting = tuple(
        Waiting(
            seq=seq,
            stamp=stamp,
            scheduled=from_row_text(scheduled),
            accepted=from_row_text(accepted),
            window=_window(window),
            by_hand=by_hand,
        )
        for seq, stamp, scheduled, accepted, window, by_hand in plain["waiting"]
    )
    return Gate(running=plain["running"], waiting=waiting, parked=plain["parked"])


def _window_texts(window: Window | None) -> list[str]:
    return [row_text(bound) for bound in window] if window else []


def _window(texts: Sequence[str]) -> Window | None:
    return (from_row_text(texts[0]), from_row_text(texts[1])) if texts else None


def _optional(instant: datetime | None) -> str:
    return row_text(instant) if instant else ""


def _instant(text: str) -> datetime | None:
    return from_row_text(text) if text else None
