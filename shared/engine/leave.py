"""How runs leave their rows: completed or resting, in bulk or through their job's gate."""

import asyncio
import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import uuid4

from shared.engine.clock import Clock
from shared.engine.lease import same_holder
from shared.engine.perform import Resting
from shared.jobs.definition import DEFAULT_HISTORY_LIMIT, load_definition
from shared.jobs.gate import left
from shared.jobs.model import Baton, Bound, Ended, Job, Run, State, Waiting
from shared.jobs.times import ceil_second, floor_second, json_text
from shared.jobs.transitions import bound_of, window_of
from shared.storage.endings import Ending, GateChange, Rest
from shared.storage.jobs import Jobs
from shared.storage.rows import run_key
from shared.storage.runs import SKEW, Runs
from shared.storage.table import Refused, StoreFailed

log = logging.getLogger("timerjobs.execute")

TRIES = 20


@dataclass(frozen=True, slots=True)
class Opened:
    """What a completion let through its job's gate: `runs` to be started here, whether there are others for
    somebody else, and whether its commit put back a baton that is due already."""

    runs: Sequence[Run] = ()
    left_to_others: bool = False
    again: bool = False


class Leaver:
    """Commits endings and rests of the runs that this process (`owner`) holds."""

    def __init__(self, jobs: Jobs, runs: Runs, owner: str, lock_duration: timedelta, clock: Clock) -> None:
        self._jobs = jobs
        self._runs = runs
        self._owner = owner
        self._lock_duration = lock_duration
        self._clock = clock

    def rest(self, run: Run, resting: Resting) -> Rest:
        """The unit that lets a run rest. A second take-over count begins when it wakes."""
        idle = replace(run, state=resting.state, steady=run.takeovers, mark=uuid4().hex)
        due = max(ceil_second(resting.due), floor_second(self._clock()))
        return Rest(run=idle, due=due)

    async def ending(self, run: Run, ended: Ended, reread: bool = False) -> Ending:
        """The unit that completes a run.

        A job fires at most once a second and records at most a stretch beside it: only if more than
        `historyLimit` such records fit into the run's life can its slot hold a later one, and is read. Runs
        made by hand may be faster; a gated job too, but its row is read when it is completed.
        """
        limit = history_limit(run)
        lived = (ended.ended - run.fired_at).total_seconds()
        crowded = not run.gated and (2 * (lived + 2) >= limit or run.by_hand)
        slot = await self._runs.slot(run.job_id, run.seq, limit) if crowded or reread else None
        return Ending(
            run=run, ended=ended, summary=summary(ended), history_limit=limit, mark=uuid4().hex, slot=slot
        )

    async def held(self, partition: str, batch: Sequence[Ending | Rest]) -> list[Ending | Rest]:
        """The units, their locks renewed by one transaction where they are half over: completions may queue."""
        now = self._clock()
        until = now + self._lock_duration
        old = [u.run for u in batch if u.run.locked_until and u.run.locked_until < now + self._lock_duration / 2]
        if not old:
            return list(batch)
        try:
            renewed = await self._runs.lock(partition, [replace(run, locked_until=until) for run in old])
        except (Refused, StoreFailed):
            return list(batch)  # their commit tells which of them is lost
        fresh = {(run.job_id, run.seq): run for run in renewed}
        return [replace(u, run=fresh.get((u.run.job_id, u.run.seq), u.run)) for u in batch]

    async def commit(self, partition: str, batch: Sequence[Ending | Rest]) -> list[datetime]:
        """Commits units that count at no gate. Gives the seconds at which resting runs are due.

        Refused: the runs' rows are read again by one query; those changed are settled alone, the others are
        committed again. If none is changed, one unit is at fault, and is found by halving.
        """
        if not batch:
            return []
        try:
            await self._runs.leave(partition, batch)
        except Refused:
            return await self._refused(partition, batch)
        except StoreFailed as failure:
            return await self.commit(partition, await self._still_held(batch, failure))
        return [unit.due for unit in batch if isinstance(unit, Rest)]

    async def _refused(self, partition: str, batch: Sequence[Ending | Rest]) -> list[datetime]:
        if len(batch) == 1:
            return await self._settle(partition, batch[0])
        current = await self._runs.versions(partition, [unit.run for unit in batch])
        left = [unit for unit in batch if current.get((unit.run.job_id, unit.run.seq)) == unit.run.etag]
        if len(left) == len(batch):
            middle = len(batch) // 2
            return await self.commit(partition, batch[:middle]) + await self.commit(partition, batch[middle:])
        dues = await self.commit(partition, left)
        for unit in batch:
            if unit not in left:
                dues += await self._settle(partition, unit)
        return dues

    async def _settle(self, partition: str, unit: Ending | Rest) -> list[datetime]:
        """A refused unit: one's own commit whose answer was lost, a changed row, or a lost run."""
        run = unit.run
        current = await self._runs.get(run.job_id, run.seq)
        if current is not None and same_holder(current, run):
            if isinstance(unit, Rest):
                return await self.commit(partition, [replace(unit, run=replace(run, etag=current.etag))])
            fresh = replace(await self.ending(current, unit.ended, True), mark=unit.mark)
            if current.gated:
                await self.through_gate(fresh)
                return []
            return await self.commit(partition, [fresh])
        if isinstance(unit, Rest):
            idle = await self._runs.idle(run.job_id, run.seq)
            if idle is not None and idle.run.mark == run.mark:
                return [unit.due]
        elif await self._is_recorded(unit):
            return []
        log.warning("left by nobody here: it was taken over, cancelled or removed", extra=about(run))
        return []

    async def through_gate(self, ending: Ending) -> Opened:
        """Completes a run that counts at its job's gate, and lets the next ones through.

        1. Reads the job, whose row is the gate. 2. Commits, at that version: [run away, history, job merged,
        the first that wait as runs, a parked baton back]. Anything else at the gate meanwhile: refused, and
        begun anew. A crash before the commit: the run is taken over; after it: what was let through here is
        taken over, and detection finds the baton.
        """
        limit = ending.history_limit
        for _ in range(TRIES):
            change = await self._change(ending)
            unit = replace(ending, change=change)
            if change and unit.slot is None and change.job.core.counters.seq - limit >= ending.run.seq:
                slot = await self._runs.slot(ending.run.job_id, ending.run.seq, ending.history_limit)
                unit = replace(unit, slot=slot)
            try:
                etags = await self._runs.leave(self._runs.partition(ending.run.job_id), [unit])
            except Refused:
                current = await self._runs.get(ending.run.job_id, ending.run.seq)
                if current is None or not same_holder(current, ending.run):
                    if change is None or not await self._is_recorded(ending):
                        return Opened()
                    return self._opened(change, await self._current(change))
                ending = replace(await self.ending(current, ending.ended, True), mark=ending.mark)
            except StoreFailed as failure:
                if not await self._still_held([ending], failure):
                    return Opened()
            else:
                if change is None:
                    return Opened()
                versions = dict(zip((write.key for write in unit.writes), etags, strict=True))
                keys = [run_key(run.job_id, run.seq) for run in change.runs]
                return self._opened(change, [versions[key] for key in keys])
        log.error("its gate keeps being changed", extra=about(ending.run))
        return Opened()

    async def _change(self, ending: Ending) -> GateChange | None:
        job = await self._jobs.get(ending.run.job_id)
        if job is None or job.state is State.DELETING:
            return None
        now = self._clock()
        return gate_change(job, bound_of(job), now, self._owner, now + self._lock_duration, ending.mark)

    def _opened(self, change: GateChange, etags: Sequence[str]) -> Opened:
        """What a committed change let through; `etags` are those of its runs, '' of one that is gone again."""
        runs = [replace(run, etag=etag) for run, etag in zip(change.runs, etags, strict=True)]
        return Opened(
            runs=[run for run in runs if run.owner == self._owner and run.etag],
            left_to_others=any(run.owner == "" for run in runs),
            again=change.baton is not None,
        )

    async def _current(self, change: GateChange) -> list[str]:
        found = [await self._runs.get(run.job_id, run.seq) for run in change.runs]
        return [run.etag if run else "" for run in found]

    async def _is_recorded(self, ending: Ending) -> bool:
        slot = await self._runs.slot(ending.run.job_id, ending.run.seq, ending.history_limit)
        return bool(slot) and slot["mark"] == ending.mark

    async def _still_held(self, batch: Sequence[Ending | Rest], failure: StoreFailed) -> list[Ending | Rest]:
        """Storage failed: those whose locks still hold, after a moment; the others are somebody else's."""
        log.warning("completion waits for storage: %s", failure, extra={"action": "complete"})
        await asyncio.sleep(1)
        now = self._clock()
        return [u for u in batch if u.run.locked_until and now < u.run.locked_until - SKEW]


def gate_change(
    job: Job, bound: Bound | None, now: datetime, owner: str, locked_until: datetime, mark: str
) -> GateChange:
    """What the end of one of the job's runs changes at its gate."""
    opening = left(job.gate, bound)
    runs = [released_run(job, place, now, owner, locked_until, mark) for place in opening.released]
    baton = None
    if opening.unparked and job.pending and job.state is State.ENABLED:
        due = max(job.pending.due, floor_second(now))
        baton = Baton(job_id=job.id, core=job.core, pending=replace(job.pending, due=due))
    return GateChange(job=job, gate=opening.gate, runs=runs, baton=baton)


def released_run(job: Job, place: Waiting, now: datetime, owner: str, locked_until: datetime, mark: str) -> Run:
    """The run that a waiting occurrence becomes, locked by `owner` if it is short."""
    inline = bool(owner) and load_definition(job.core.definition).is_short
    return Run(
        job_id=job.id,
        seq=place.seq,
        stamp=place.stamp,
        definition=job.core.definition,
        scheduled=place.scheduled,
        fired_at=now,
        owner=owner if inline else "",
        locked_until=locked_until if inline else None,
        window=window_of(job, place.scheduled),
        by_hand=place.by_hand,
        gated=True,
        mark=mark,
    )


def history_limit(run: Run) -> int:
    """The size of the job's history as of this run; of a run whose definition is unreadable, the default."""
    try:
        return load_definition(run.definition).history_limit
    except (ValueError, KeyError, zlib.error):
        return DEFAULT_HISTORY_LIMIT


def summary(ended: Ended) -> dict[str, object]:
    """The short account of a run that a job's `lastRun` gives."""
    return {
        "seq": ended.seq,
        "status": str(ended.status),
        "scheduledTime": json_text(ended.scheduled),
        "startTime": json_text(ended.started),
        "endTime": json_text(ended.ended),
    }


def about(run: Run) -> dict[str, object]:
    """What a log line about a run carries."""
    return {"job": run.job_id, "run": run.seq, "scheduled": json_text(run.scheduled)}
