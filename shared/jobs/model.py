"""The things the scheduler is about, as plain values: Job, Baton, Run and how runs end.

Nothing here reads a clock or a store. `etag` is the storage version a value was read at, where it was read.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from shared.jobs.times import key_text
from shared.recurrence import TZDATA_VERSION

FORMAT_VERSION = 1
CHUNKED_VERSION = 2  # of rows whose definition takes more than one property, which version 1 does not know
TIMER_JOB = "TimerJob"  # the service type of jobs whose actions the app performs


class State(StrEnum):
    """Where a job is in its life. Deleting is seen by nobody outside: such a job answers 404."""

    ENABLED = "Enabled"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    DELETING = "Deleting"


class Status(StrEnum):
    """How a run stands or ended."""

    RUNNING = "Running"
    WAITING = "Waiting"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    TIMED_OUT = "TimedOut"
    MISSED = "Missed"
    SKIPPED = "Skipped"
    CANCELLED = "Cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What a job has done. `seq` is the last number given to a run or a stretch and never goes back;
    `base` is `fired` at the last reset of the schedule, so `fired - base` is what rule N2 counts."""

    seq: int = 0
    fired: int = 0
    missed: int = 0
    skipped: int = 0
    base: int = 0

    def since(self, before: "Counters") -> "Counters":
        """What was fired, missed and skipped since `before`."""
        return Counters(
            fired=self.fired - before.fired,
            missed=self.missed - before.missed,
            skipped=self.skipped - before.skipped,
        )


Window = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSkip:
    """A stretch of skipped occurrences that may go on: the number and beginning of its record."""

    seq: int
    first: datetime
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """What a job's row and its baton both hold.

    `stamp` names this life of the job: made at creation and at each reset of the schedule (rule L5).
    `anchor` is the instant C of the calendar rules. `definition` is the packed definition.
    `last_scheduled` is the scheduled time of the last occurrence fired, None before the first. Before `floor`
    everything is dealt with: fired, missed, skipped, or of an earlier schedule (rules L5, L8). `skipping` is set
    while occurrences are skipped one after the other, so that they make one record.
    """

    stamp: str
    generation: int
    anchor: datetime
    definition: bytes
    counters: Counters
    last_scheduled: datetime | None = None
    floor: datetime | None = None
    skipping: OpenSkip | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A timer to come: the nominal time of the occurrence and the second its row is keyed under.

    `tzdata` is the version of the time zone data it was computed with, and `offset` by how many seconds its clocks
    were ahead of UTC then (rule L8); None in rows of versions that did not keep it.
    """

    scheduled: datetime
    due: datetime
    tzdata: str = TZDATA_VERSION
    offset: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An occurrence that has been accepted and waits for room: the run it will be."""

    seq: int
    stamp: str
    scheduled: datetime
    accepted: datetime
    window: Window | None = None
    by_hand: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What a bound on concurrency counts: runs executing or idle, those that wait in order, and whether a
    sliding window's baton is parked: out of the timers until there is room."""

    running: int = 0
    waiting: tuple[Waiting, ...] = ()
    parked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How many runs of a job may be under way at once, and how many more may wait (rule W6)."""

    runs: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a caller defined and how far it is.

    `pending` is a copy of where the job's one timer is; of a job that is suspended or parked, where it would
    be; of a Completed one, when it is to be removed, if it is. `dormant`: it was created (or reset) suspended
    and has not been enabled since. `request` tells the request that created it, if that bore an idempotency key.
    """

    id: str
    core: Core
    state: State
    pending: Pending | None
    created_at: datetime
    updated_at: datetime
    gate: Gate = Gate()
    dormant: bool = False
    last_run: Mapping[str, Any] | None = None
    fault: str = ""
    request: str = ""
    etag: str = ""

    @property
    def baton_due(self) -> datetime | None:
        """The second its baton is keyed under; None in a state in which it has none."""
        enabled = self.state is State.ENABLED and not self.gate.parked
        return self.pending.due if self.pending and enabled else None


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
class NewerTimer:
    """A timer row that a newer version of this app wrote: it is left where it is."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The execution of one occurrence. Unlocked (no owner) it waits for an executor.

    `mark` names the transaction that wrote the row, so that its author recognises a commit whose answer
    was lost. `fired_at` is when the occurrence was fired, `started` when the run was first locked, None before.
    `by_hand`: no schedule fired it. `gated`: it counts in its job's gate. `state` is how far its actions are, or
    what an instance of another service type saved, packed; `steady` the take-overs at the last checkpoint.
    `activation` is where a host for it is activated ('': nowhere), `version` how often a host has saved it.
    """

    job_id: str
    seq: int
    stamp: str
    definition: bytes
    scheduled: datetime
    fired_at: datetime
    started: datetime | None = None
    owner: str = ""
    locked_until: datetime | None = None
    takeovers: int = 0
    steady: int = 0
    window: Window | None = None
    by_hand: bool = False
    gated: bool = False
    service_type: str = TIMER_JOB
    activation: str = ""
    version: int = 0
    state: bytes = b""
    mark: str = ""
    etag: str = ""

    @property
    def awaits_host(self) -> bool:
        """Whether it waits, in a row of its own kind, for a host of its service type to load it."""
        return self.service_type != TIMER_JOB and not self.owner

    @property
    def started_or_fired(self) -> datetime:
        """When it started; of a run that has not, when it was fired."""
        return self.started or self.fired_at

    @property
    def fencing_token(self) -> int:
        """Grows with each take-over of this run and with each later run of its job."""
        return self.seq * 1000 + self.takeovers

    def idempotency_key(self, action: str) -> str:
        """The same for every attempt at this occurrence's action, and for nothing else (promise P4)."""
        return f"{self.job_id}:{self.stamp}:{self.occurrence}:{action}"

    @property
    def trace_id(self) -> str:
        """The W3C trace id under which targets are called: the run's own, whoever attempts it and how often."""
        return trace_id(self.job_id, self.stamp, self.seq)

    @property
    def occurrence(self) -> str:
        """What tells this occurrence from the job's others: its scheduled time; of a run made by hand, its seq."""
        return f"run-{self.seq}" if self.by_hand else key_text(self.scheduled)


def trace_id(job_id: str, stamp: str, seq: int) -> str:
    """The W3C trace id of a run: 32 hexadecimal digits."""
    return hashlib.sha256(f"trace:{job_id}:{stamp}:{seq}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """A run that is in nobody's memory: until `due` (a wait, a back-off, a poll) a timer row with the whole run;
    with no `due`, until a host of its service type loads it, a load row."""

    run: Run
    due: datetime | None
    etag: str = ""

    @property
    def job_id(self) -> str:
        """The run's job."""
        return self.run.job_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended: its record in the job's history. `actions` maps each action to what it did.

    `window` has its bounds as row texts, if it was one of a sliding window. `result` is what an instance of
    another service type left.
    """

    seq: int
    status: Status
    scheduled: datetime
    started: datetime
    ended: datetime
    attempts: int
    reason: str = ""
    actions: Mapping[str, Any] = field(default_factory=dict)
    window: tuple[str, str] | None = None
    result: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Occurrences that were not fired, as one record: first and last scheduled time and how many."""

    seq: int
    status: Status
    first: datetime
    last: datetime
    count: int
    reason: str


def members(value: Counters | Ended | Stretch) -> dict[str, Any]:
    """The members of a value by name, as they are (`dataclasses.asdict` would copy all that is in them)."""
    return {each.name: getattr(value, each.name) for each in fields(value)}
