"""Where runs are that nobody executes: in a timer row, or in a load row, with a row that points to it."""

from typing import Any

from shared.jobs.model import FORMAT_VERSION, Idle, Run
from shared.storage.records import read_whole_run, run_begun, run_row, whole_run
from shared.storage.rows import idle_key, load_key, run_key, timer_key
from shared.storage.table import Row, Verb, Write


def idle_rows(idle: Idle) -> tuple[dict[str, Any], dict[str, Any]]:
    """The row of a run in nobody's memory, which holds all of it, and the row that says where that is."""
    run = idle.run
    key = idle_place(idle)
    kind = "resume" if idle.due else "load"
    timer = {**whole_run(run), **run_begun(run), "RowKey": key, "kind": kind}
    return timer, {"RowKey": idle_key(run.job_id, run.seq), "timer": key, "v": FORMAT_VERSION}


def idle_place(idle: Idle) -> str:
    """The key of the row that holds a run in nobody's memory."""
    run = idle.run
    if idle.due is None:
        return load_key(run.service_type, run.job_id, run.seq)
    return timer_key(idle.due, run.job_id, run.seq)


def run_in(each: Run | Idle) -> Run:
    """The run, whether it is in somebody's memory or not."""
    return each.run if isinstance(each, Idle) else each


def whole_key(run: Run | Idle) -> str:
    """The key of the row that holds all of a run, whether it is in somebody's memory or not."""
    return idle_place(run) if isinstance(run, Idle) else run_key(run.job_id, run.seq)


def placed(run: Run) -> list[Write]:
    """What inserts a new run: executing, or waiting for a host of its service type."""
    if not run.awaits_host:
        return [Write(Verb.INSERT, run_row(run))]
    return [Write(Verb.INSERT, row) for row in idle_rows(Idle(run=run, due=None))]


def read_idle(row: Row) -> Idle:
    """The run in a load row. Raises KeyError, ValueError, TypeError where it cannot be read."""
    _, _, job_id, seq = row["RowKey"].split(":")
    return Idle(run=read_whole_run(row, job_id, int(seq)), due=None, etag=row["etag"])
