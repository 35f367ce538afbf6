"""Aiming: a due timer becomes the shot that carries out its turn. Reads the job's row only where it has a gate."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.engine.lease import locked
from shared.engine.slots import Reserved
from shared.engine.workflows import is_own
from shared.jobs.definition import Definition, load_definition, load_timing
from shared.jobs.model import BadTimer, Baton, Idle, Run
from shared.jobs.plan import Timing, Turn, plan_turn, refreshed, window_of
from shared.jobs.transitions import removal_time
from shared.storage.jobs import Jobs
from shared.storage.runs import Runs
from shared.storage.shots import Shot, aim, wake

COUNTED = 10_000  # jobs of which it is remembered how many of their runs waited


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Who fires, and when: at `locked_at`, `owner` locks runs that get a slot until `locked_until`, to start them
    itself: `start` is given each as soon as it is committed. `mark` names the pass in what it writes."""

    partition: str
    now: datetime
    owner: str
    mark: str
    reserved: Reserved
    start: Callable[[Run], None]
    locked_at: datetime
    locked_until: datetime

    def locked(self, run: Run) -> Run:
        """The run, locked to be started here if it is the app's own and gets a slot."""
        if not (is_own(run.service_type) and self.reserved.take(run.job_id)):
            return run
        return locked(run, self.owner, self.locked_at, self.locked_until)

    def unlocked(self, run: Run | None) -> None:
        """Gives back the slot that a run was to start in, if it was: it will not, as it is."""
        if run and run.owner == self.owner:
            self.reserved.give(run.job_id)


class Aimer:
    """Aims at due timers. Where `most_waiting` runs of a job wait for an executor further occurrences are skipped;
    runs that wake come to wait on top of that."""

    def __init__(self, jobs: Jobs, runs: Runs, default_max_lateness: timedelta, most_waiting: int) -> None:
        self._jobs = jobs
        self._runs = runs
        self._default_max_lateness = default_max_lateness
        self._most_waiting = most_waiting
        self._counted: dict[str, tuple[int, int]] = {}  # of a job: how many waited when it had come to this number

    async def aim(self, timer: Baton | Idle | BadTimer, this: Pass) -> Shot:
        """The shot of one timer, its run locked if there is a slot for it.

        Raises whatever a stored definition can make planning raise.
        """
        if isinstance(timer, BadTimer):
            raise ValueError(timer.why)
        if isinstance(timer, Idle):
            run = this.locked(replace(timer.run, mark=this.mark))
            if not run.owner:
                self._counted.pop(run.job_id, None)  # it comes to wait without a number of its own
            return wake(timer, run)
        definition = load_definition(timer.core.definition)
        timing = load_timing(timer.core.definition, timer.job_id, timer.core.anchor, self._default_max_lateness)
        return await self._turn(timer, definition, timing, this)

    async def _turn(self, baton: Baton, definition: Definition, timing: Timing, this: Pass) -> Shot:
        job = await self._jobs.get(baton.job_id) if timing.bound else None
        if timing.bound and job is None:
            raise ValueError("its job does not exist")
        gate = job.gate if job else None
        pending = refreshed(baton.pending, timing, this.now)
        # What newer zone data puts earlier is late for that, and no later than by the older.
        earlier = pending is not None and pending.scheduled < baton.pending.scheduled
        not_before = baton.pending.due if earlier else None
        if pending is None or pending.due > this.now:  # by other time zone data than it was planned with
            turn = Turn(fires=None, records=(), core=baton.core, pending=pending, gate=gate)
        else:
            turn = plan_turn(baton.core, pending, timing, gate, this.now, not_before=not_before)
        run = None
        if turn.fires is not None:
            fired = Run(
                job_id=baton.job_id,
                seq=turn.core.counters.seq,
                stamp=baton.core.stamp,
                definition=baton.core.definition,
                scheduled=turn.fires,
                fired_at=this.now,
                window=window_of(baton.core, timing, turn.fires),
                gated=job is not None,
                service_type=definition.service_type,
                activation=definition.activation,
                mark=this.mark,
            )
            run = this.locked(fired)
            if not run.owner and (crowded := await self._crowded(fired, timing)):
                assert pending
                turn, run = plan_turn(baton.core, pending, timing, gate, this.now, crowded, not_before), None
        until = removal_time(this.now, definition.delete_after)
        shot = aim(baton, turn, run, definition.history_limit, job, until, this.mark)
        return replace(shot, was_due=timing.due(turn.fires)) if turn.fires else shot

    async def _crowded(self, run: Run, timing: Timing) -> str:
        """Why a further run of the job may not wait for an executor; '' if it may.

        A gate bounds a job's runs by itself, a `Once` has one occurrence, and hosts elsewhere take what they can.
        The others are counted by one request, and again only once they may be too many: each new run has a number
        of its own, so no more can have come to wait than numbers have been given; after one that woke anew.
        """
        if run.gated or timing.max_lateness is None or not is_own(run.service_type):
            return ""
        waiting, then = self._counted.get(run.job_id, (self._most_waiting, run.seq))
        if run.seq >= then and waiting + run.seq - then < self._most_waiting:
            return ""
        waiting = await self._runs.waiting(run.job_id, run.service_type, self._most_waiting)
        if len(self._counted) >= COUNTED:
            self._counted.clear()
        self._counted[run.job_id] = waiting, run.seq
        return f"waiting for an executor: {waiting}; no more runs may be" if waiting >= self._most_waiting else ""
