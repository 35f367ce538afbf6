"""Aiming: a due timer becomes the shot that carries out its turn. Reads the job's row only where it has a gate."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.jobs.definition import Definition, load_definition, load_timing
from shared.jobs.model import BadTimer, Baton, Idle, Run
from shared.jobs.plan import Timing, Turn, plan_turn, refreshed
from shared.jobs.transitions import removal_time
from shared.storage.jobs import Jobs
from shared.storage.shots import Shot, aim, wake


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Who fires, and when: `owner` locks runs until `locked_until`, to start them itself; `mark` names the pass
    in what it writes."""

    partition: str
    now: datetime
    owner: str
    mark: str
    room: int
    locked_until: datetime


class Aimer:
    """Aims at due timers."""

    def __init__(self, jobs: Jobs, default_max_lateness: timedelta) -> None:
        self._jobs = jobs
        self._default_max_lateness = default_max_lateness

    async def aim(self, timer: Baton | Idle | BadTimer, this: Pass, room: int) -> Shot:
        """The shot of one timer, its run locked if there is `room` for it.

        Raises whatever a stored definition can make planning raise.
        """
        if isinstance(timer, BadTimer):
            raise ValueError(timer.why)
        if isinstance(timer, Idle):
            short = load_definition(timer.run.definition).is_short
            return wake(timer, _lock(replace(timer.run, mark=this.mark), this, room > 0 and short))
        definition = load_definition(timer.core.definition)
        timing = load_timing(timer.core.definition, timer.job_id, timer.core.anchor, self._default_max_lateness)
        return await self._turn(timer, definition, timing, this, room)

    async def _turn(self, baton: Baton, definition: Definition, timing: Timing, this: Pass, room: int) -> Shot:
        job = await self._jobs.get(baton.job_id) if timing.bound else None
        if timing.bound and job is None:
            raise ValueError("its job does not exist")
        gate = job.gate if job else None
        pending = refreshed(baton.pending, baton.core, timing, this.now)
        if pending is None or pending.due > this.now:  # by other time zone data than it was planned with
            turn = Turn(fires=None, records=(), core=baton.core, pending=pending, gate=gate)
        else:
            turn = plan_turn(baton.core, pending, timing, gate, this.now)
        run = None
        if turn.fires is not None:
            fired = Run(
                job_id=baton.job_id,
                seq=turn.core.counters.seq,
                stamp=baton.core.stamp,
                definition=baton.core.definition,
                scheduled=turn.fires,
                fired_at=this.now,
                window=timing.schedule.window(turn.fires),
                gated=job is not None,
                service_type=definition.service_type,
                activation=definition.activation,
                mark=this.mark,
            )
            run = _lock(fired, this, room > 0 and definition.is_short)
        until = removal_time(this.now, definition.delete_after)
        shot = aim(baton, turn, run, definition.history_limit, job, until, this.mark)
        return replace(shot, was_due=timing.due(turn.fires)) if turn.fires else shot


def _lock(run: Run, this: Pass, inline: bool) -> Run:
    if not inline:
        return run
    return replace(run, owner=this.owner, locked_until=this.locked_until)
