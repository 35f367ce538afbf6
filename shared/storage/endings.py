"""How an executing run leaves its row: completed, or idle until later; each a unit of a transaction."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from shared.jobs.model import Baton, Ended, Gate, Idle, Job, Run
from shared.jobs.times import row_text
from shared.storage.history import past_row
from shared.storage.places import idle_place, idle_rows, placed
from shared.storage.records import baton_row, job_gate
from shared.storage.rows import idle_key, job_key, run_key
from shared.storage.table import Row, Verb, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class GateChange:
    """What the end of a run changes at its job's gate, as of `job`'s version: occurrences that waited become
    `runs`, a parked window's `baton` goes back to the timers."""

    job: Job
    gate: Gate
    runs: Sequence[Run] = ()
    baton: Baton | None = None

    def row(self) -> dict[str, Any]:
        """What the job's row takes over."""
        row = job_gate(self.job.id, self.gate)
        return row | ({"nextDue": row_text(self.baton.pending.due)} if self.baton else {})

    def writes(self) -> list[Write]:
        """Those of other rows."""
        writes = [write for run in self.runs for write in placed(run)]
        return writes + ([Write(Verb.INSERT, baton_row(self.baton))] if self.baton else [])


@dataclass(frozen=True, kw_only=True)
class Ending:
    """A run that is to be completed, and what is recorded of it.

    `slot` is the history slot's row as it was read, {} where it was empty, None where it was not read since
    no later run can have reached it. `summary` becomes the job's `lastRun`. `change` is None for a run that
    counts at no gate. `idle` is the row of a run that was in nobody's memory, None for an executing one.
    `kept`: history has its record; else only the mark of it.
    """

    run: Run
    ended: Ended
    summary: dict[str, Any]
    history_limit: int
    mark: str
    slot: Row | None = None
    change: GateChange | None = None
    idle: Idle | None = None
    kept: bool = True

    @property
    def source(self) -> Run | Idle:
        """The row that the run leaves, at the version it was read."""
        return self.idle or self.run

    @cached_property
    def writes(self) -> list[Write]:
        """[run away, history, job merged, gate]. A later run's record in the slot stays (history is a ring)."""
        job_id = self.run.job_id
        job = {"RowKey": job_key(job_id), "lastRun": json.dumps(self.summary)}
        etag = ""
        writes = self._away()
        if self.change:
            job |= self.change.row()
            etag = self.change.job.etag
            writes += self.change.writes()
        writes.append(Write(Verb.MERGE, job, etag))
        record = past_row(job_id, self.ended, self.history_limit, self.mark, self.kept)
        if self.slot is None:
            writes.append(Write(Verb.PUT, record))
        elif not self.slot:
            writes.append(Write(Verb.INSERT, record))
        elif self.slot["seq"] <= self.run.seq:
            writes.append(Write(Verb.REPLACE, record, self.slot["etag"]))
        return writes

    def _away(self) -> list[Write]:
        run = self.run
        if self.idle is None:
            return [Write(Verb.DELETE, {"RowKey": run_key(run.job_id, run.seq)}, run.etag)]
        return [
            Write(Verb.DELETE, {"RowKey": idle_place(self.idle)}, self.idle.etag),
            Write(Verb.DELETE, {"RowKey": idle_key(run.job_id, run.seq)}),
        ]


@dataclass(frozen=True, kw_only=True)
class Rest:
    """A run that leaves memory until `due`, or until a host loads it, with its state and `mark`."""

    run: Run
    due: datetime | None

    @property
    def source(self) -> Run:
        """The row that the run leaves, at the version it was read."""
        return self.run

    @cached_property
    def writes(self) -> list[Write]:
        """[run away, its timer or load row, the pointer to it, job merged]."""
        run = self.run
        timer, pointer = idle_rows(Idle(run=run, due=self.due))
        return [
            Write(Verb.DELETE, {"RowKey": run_key(run.job_id, run.seq)}, run.etag),
            Write(Verb.INSERT, timer),
            Write(Verb.INSERT, pointer),
            Write(Verb.MERGE, {"RowKey": job_key(run.job_id)}),
        ]
