"""Shots: what one due timer's turn writes, as a unit of a transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.jobs.model import Baton, Counters, Idle, Job, Pending, Removal, Run, State, Stretch
from shared.jobs.plan import Turn
from shared.storage.history import past_row
from shared.storage.places import idle_place, idle_rows, placed
from shared.storage.records import baton_row, job_gate, job_progress, removal_row, run_row
from shared.storage.rows import idle_key, job_key, timer_key
from shared.storage.table import Verb, Write, moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One timer's turn, ready to be committed: each row once.

    `key` and `etag` are the timer it takes; `next_due` the second its job is due next; `run` the run it
    starts; `gate`: the version of the job's row it holds for alone, '' if for any. `completes`: the job's last
    number, if it completes it. `counts` is what it adds to the job's counters, `was_due` when the occurrence
    that it fires was to start.
    """

    job_id: str
    key: str
    etag: str
    writes: Sequence[Write]
    run: Run | None = None
    next_due: datetime | None = None
    records: Sequence[Stretch] = ()
    gate: str = ""
    history_limit: int = 1
    completes: int | None = None
    counts: Counters | None = None
    was_due: datetime | None = None


def aim(
    baton: Baton,
    turn: Turn,
    run: Run | None,
    history_limit: int,
    job: Job | None,
    until: datetime | None,
    mark: str,
) -> Shot:
    """The shot that carries out a planned turn: [baton moved on or gone, run, stretches, job merged].

    `job` is the row the gate was read from, None for a job without bound; `until` is when the job is to be
    removed if this turn completes it, None to keep it.
    """
    job_id = baton.job_id
    parked = turn.gate is not None and turn.gate.parked
    pending, state = turn.pending, State.ENABLED
    if pending is None:
        state = State.COMPLETED
        pending = Pending(scheduled=until, due=until) if until else None
    writes = _moved(baton, turn, state, pending, parked)
    if run:
        writes += placed(run)
    stretches = {}
    for record in turn.records:
        row = past_row(job_id, record, history_limit, mark)
        stretches[row["RowKey"]] = Write(Verb.PUT, row)
    writes += stretches.values()
    progress = job_progress(job_id, turn.core, pending, state)
    if job and turn.gate:
        progress |= job_gate(job_id, turn.gate)
    writes.append(Write(Verb.MERGE, progress, job.etag if job else ""))
    return Shot(
        job_id=job_id,
        key=timer_key(baton.pending.due, job_id),
        etag=baton.etag,
        writes=writes,
        run=run,
        next_due=turn.pending.due if turn.pending and not parked else None,
        records=turn.records,
        gate=job.etag if job else "",
        history_limit=history_limit,
        completes=turn.core.counters.seq if state is State.COMPLETED else None,
        counts=turn.core.counters.since(baton.core.counters),
    )


def _moved(baton: Baton, turn: Turn, state: State, pending: Pending | None, parked: bool) -> list[Write]:
    key = timer_key(baton.pending.due, baton.job_id)
    row = None
    if state is State.ENABLED and pending and not parked:
        row = baton_row(Baton(job_id=baton.job_id, core=turn.core, pending=pending))
    elif state is State.COMPLETED and pending:
        row = removal_row(Removal(job_id=baton.job_id, due=pending.due))
    return moved(key, row, baton.etag)


def wake(idle: Idle, run: Run) -> Shot:
    """The shot that brings an idle run back: [timer gone, its pointer gone, run executing, job merged]; or, of
    another service type and unlocked: [timer gone, load row, the pointer to it, job merged]."""
    key = idle_place(idle)
    writes = [Write(Verb.DELETE, {"RowKey": key}, idle.etag)]
    if run.awaits_host:
        row, pointer = idle_rows(Idle(run=run, due=None))
        writes += [Write(Verb.INSERT, row), Write(Verb.REPLACE, pointer)]
    else:
        pointer_key = idle_key(run.job_id, run.seq)
        writes += [Write(Verb.DELETE, {"RowKey": pointer_key}), Write(Verb.INSERT, run_row(run))]
    writes.append(Write(Verb.MERGE, {"RowKey": job_key(run.job_id)}))
    return Shot(job_id=idle.job_id, key=key, etag=idle.etag, writes=writes, run=run)
