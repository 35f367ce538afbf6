"""The things the scheduler is about, as plain values: Job, Baton, Run and how runs end.

Nothing here reads a clock or a store. `etag` is the storage version a value was read at, where it was read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from shared.jobs.times import key_text

FORMAT_VERSION = 1


class State(StrEnum):
    """Where a job is in its life. Deleting is seen by nobody outside: such a job answers 404."""

    ENABLED = "Enabled"
    COMPLETED = "Completed"
    DELETING = "Deleting"


class Status(StrEnum):
    """How a run stands or ended."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    TIMED_OUT = "TimedOut"
    MISSED = "Missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What a job has done. `seq` is the last number given to a run or a stretch and never goes back;
    `base` is `fired` at the last reset of the schedule, so `fired - base` is what rule N2 counts."""

    seq: int = 0
    fired: int = 0
    missed: int = 0
    skipped: int = 0
    base: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """What a job's row and its baton both hold.

    `stamp` names this life of the job: made at creation and at each reset of the schedule (rule L5).
    `anchor` is the instant C of the calendar rules. `definition` is the packed definition.
    `last_scheduled` is the scheduled time of the last occurrence fired, None before the first.
    """

    stamp: str
    generation: int
    anchor: datetime
    definition: bytes
    counters: Counters
    last_scheduled: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A timer to come: the nominal time of the occurrence and the second its row is keyed under."""

    scheduled: datetime
    due: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a caller defined and how far it is. `pending` is a copy of where the job's one timer is."""

    id: str
    core: Core
    state: State
    pending: Pending | None
    created_at: datetime
    updated_at: datetime
    last_run: Mapping[str, Any] | None = None
    fault: str = ""
    etag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baton:
    """The one pending-timer row of an enabled job. Whoever deletes it has fired its occurrence.

    `set_asides` counts how often in a row it could not be fired for a fault of its own.
    """

    job_id: str
    core: Core
    pending: Pending
    set_asides: int = 0
    etag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The timer of a job that is being deleted."""

    job_id: str
    due: datetime
    etag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadTimer:
    """A timer row this code cannot read: it is set aside as it is, and must not stop its neighbours."""

    job_id: str
    row: Mapping[str, Any] = field(repr=False)
    why: str
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The execution of one occurrence. Unlocked (no owner) it waits for an executor.

    `mark` names the transaction that wrote the row, so that its author recognises a commit whose answer
    was lost. `fired_at` is when the occurrence was fired.
    """

    job_id: str
    seq: int
    stamp: str
    definition: bytes
    scheduled: datetime
    fired_at: datetime
    owner: str = ""
    locked_until: datetime | None = None
    takeovers: int = 0
    mark: str = ""
    etag: str = ""

    @property
    def fencing_token(self) -> int:
        """Grows with each take-over of this run and with each later run of its job."""
        return self.seq * 1000 + self.takeovers

    def idempotency_key(self, action: str) -> str:
        """The same for every attempt at this occurrence's action, and for nothing else (promise P4)."""
        return f"{self.job_id}:{self.stamp}:{key_text(self.scheduled)}:{action}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended: its record in the job's history. `actions` maps each action to what it did."""

    seq: int
    status: Status
    scheduled: datetime
    started: datetime
    ended: datetime
    attempts: int
    reason: str = ""
    actions: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Occurrences that were not fired, as one record: first and last scheduled time and how many."""

    seq: int
    status: Status
    first: datetime
    last: datetime
    count: int
    reason: str
