"""How runs leave their rows: completed or resting, in bulk or through their job's gate."""

import asyncio
import itertools
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

from shared.engine.clock import Clock
from shared.engine.contention import pause
from shared.engine.lease import locked, same_holder
from shared.engine.left import Left
from shared.engine.logs import about
from shared.engine.opening import gate_change
from shared.engine.perform import Resting
from shared.engine.slots import Reserved, Slots
from shared.engine.workflows import is_own
from shared.errors import NewerFormat
from shared.jobs.definition import history_limit_of
from shared.jobs.model import Ended, Idle, Run, State
from shared.jobs.progress import summary
from shared.jobs.times import ceil_second, floor_second
from shared.jobs.transitions import bound_of
from shared.storage.endings import Ending, GateChange, Rest
from shared.storage.jobs import Jobs
from shared.storage.places import run_in
from shared.storage.rows import run_key
from shared.storage.runs import SKEW, Runs
from shared.storage.table import Refused, StoreFailed

log = logging.getLogger("timerjobs.execute")


class Leaver:
    """Commits endings and rests of the runs that this process (`owner`) holds. `keeps`: history records them."""

    def __init__(
        self,
        jobs: Jobs,
        runs: Runs,
        slots: Slots,
        owner: str,
        lock_duration: timedelta,
        clock: Clock,
        keeps: bool = True,
    ) -> None:
        self._jobs = jobs
        self._runs = runs
        self._slots = slots
        self._owner = owner
        self._lock_duration = lock_duration
        self._clock = clock
        self._keeps = keeps

    def rest(self, run: Run, resting: Resting) -> Rest:
        """The unit that lets a run rest. A second take-over count begins when it wakes."""
        idle = replace(run, state=resting.state, steady=run.takeovers, mark=uuid4().hex)
        return Rest(run=idle, due=when_due(resting.due, self._clock()))

    async def ending(self, run: Run, ended: Ended, reread: bool = False) -> Ending:
        """The unit that completes a run.

        A job fires at most once a second and records at most a stretch beside it: only if more than
        `historyLimit` such records fit into the run's life can its slot hold a later one, and is read. Runs
        made by hand may be faster; a gated job too, but its row is read when it is completed.
        """
        limit = history_limit_of(run.definition)
        lived = (ended.ended - run.fired_at).total_seconds()
        crowded = not run.gated and (2 * (lived + 2) >= limit or run.by_hand)
        slot = await self._runs.slot(run.job_id, run.seq, limit) if crowded or reread else None
        return Ending(
            run=run,
            ended=ended,
            summary=summary(ended),
            history_limit=limit,
            mark=uuid4().hex,
            slot=slot,
            kept=self._keeps,
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

    async def commit(self, partition: str, batch: Sequence[Ending | Rest], left: Left) -> None:
        """Commits units: one that counts at its job's gate, or any that do not. `left` gathers as it goes what
        came of it, also where a later unit fails.

        Refused: the runs' rows are read again by one query; those changed are settled alone, the others are
        committed again. If none is changed, one unit is at fault, and is found by halving."""
        if not batch:
            return
        first = batch[0]
        if len(batch) == 1 and isinstance(first, Ending) and first.run.gated:
            await self._through_gate(first, left)
            return
        try:
            await self._runs.leave(partition, batch)
        except Refused:
            await self._refused(partition, batch, left)
        except StoreFailed as failure:
            await self.commit(partition, await self._still_held(batch, failure, left), left)
        else:
            for unit in batch:
                left.gone(unit)

    async def _refused(self, partition: str, batch: Sequence[Ending | Rest], left: Left) -> None:
        if len(batch) == 1:
            await self._settle(partition, batch[0], left)
            return
        executing = [unit.run for unit in batch if unit.source is unit.run]
        current = await self._runs.versions(partition, executing) if executing else {}
        for idle in (unit.source for unit in batch if isinstance(unit.source, Idle)):
            standing = await self._standing(idle)
            current |= {(idle.run.job_id, idle.run.seq): standing.etag} if standing else {}
        same = [u for u in batch if current.get((u.run.job_id, u.run.seq)) == u.source.etag]
        if len(same) == len(batch):
            middle = len(batch) // 2
            await self.commit(partition, batch[:middle], left)
            await self.commit(partition, batch[middle:], left)
            return
        await self.commit(partition, same, left)
        for unit in batch:
            if unit not in same:
                await self._settle(partition, unit, left)

    async def _settle(self, partition: str, unit: Ending | Rest, left: Left) -> None:
        """A refused unit: one's own commit whose answer was lost, a changed row, or a lost run."""
        run = unit.run
        current = await self._standing(unit.source)
        if current is not None:
            if isinstance(unit, Rest):
                assert isinstance(current, Run)
                as_it_is = replace(run, etag=current.etag, gated=current.gated)
                await self.commit(partition, [replace(unit, run=as_it_is)], left)
            elif current.etag == unit.source.etag and unit.slot is not None:
                left.at_fault(run)
            else:
                await self.commit(partition, [await self._anew(unit, current)], left)
            return
        if isinstance(unit, Rest):
            with suppress(NewerFormat):
                idle = await self._runs.idle(run.job_id, run.seq)
                if idle is not None and idle.run.mark == run.mark:
                    left.gone(unit)
                    return
        elif await self._is_recorded(unit):
            left.gone(unit)
            return
        left.lost(run)

    async def _through_gate(self, ending: Ending, left: Left) -> None:
        """Completes a run that counts at its job's gate, and lets the next ones through.

        1. Reads the job, whose row is the gate. 2. Commits, at that version: [run away, history, job merged,
        the first that wait as runs, a parked baton back]. Anything else at the gate meanwhile: refused, and
        begun anew, the run's lock renewed. A crash before the commit: the run is taken over; after it:
        what was let through here is taken over, and detection finds the baton.
        """
        partition = self._runs.partition(ending.run.job_id)
        for attempt in itertools.count():
            await pause(attempt)
            (kept,) = await self.held(partition, [ending]) if attempt else [ending]
            assert isinstance(kept, Ending)
            try:
                again = await self._try_gate(kept, left)
            except StoreFailed as failure:
                if not await self._still_held([kept], failure, left):
                    return
                again = kept
            if again is None:
                return
            ending = again

    async def _try_gate(self, ending: Ending, left: Left) -> Ending | None:
        """One attempt: None if that was it, else what to try next."""
        with self._slots.reserving() as reserved:
            change = await self._change(ending, reserved if left.starts else None)
            unit = await self._in_its_slot(replace(ending, change=change))
            try:
                etags = await self._runs.leave(self._runs.partition(ending.run.job_id), [unit])
            except Refused:
                return await self._gate_refused(unit, left)
            left.gone(unit)
            self._let_through(unit, etags, reserved, left)
            return None

    async def _gate_refused(self, unit: Ending, left: Left) -> Ending | None:
        current = await self._standing(unit.source)
        if current is None:
            await self._found_done(unit, left)
            return None
        if current.etag == unit.source.etag and unit.slot is not None and await self._is_at_fault(unit):
            left.at_fault(unit.run)
            return None
        return await self._anew(unit, current)

    async def _anew(self, unit: Ending, current: Run | Idle) -> Ending:
        """The unit for the run as it stands, its slot read."""
        idle = current if isinstance(current, Idle) else None
        fresh = await self.ending(run_in(current), unit.ended, True)
        return replace(fresh, mark=unit.mark, idle=idle)

    async def _is_at_fault(self, unit: Ending) -> bool:
        """Whether nobody has changed the job whose gate the refused unit goes through; or there is none."""
        job = await self._jobs.get(unit.run.job_id)
        return job is None or (unit.change is not None and job.etag == unit.change.job.etag)

    async def _in_its_slot(self, ending: Ending) -> Ending:
        """The ending, its slot read if the job has got so far that a later record may lie there."""
        limit, seq = ending.history_limit, ending.run.seq
        if ending.change is None or ending.slot is not None or ending.change.job.core.counters.seq - limit < seq:
            return ending
        return replace(ending, slot=await self._runs.slot(ending.run.job_id, seq, limit))

    async def _found_done(self, ending: Ending, left: Left) -> None:
        """The run is gone: if by a commit of ours whose answer was lost, what it let through is ours too."""
        if not await self._is_recorded(ending):
            left.lost(ending.run)
            return
        left.gone(ending)
        runs = await self._runs.of_job(ending.run.job_id)
        mine = [run for run in runs if run.mark == ending.mark and run.owner == self._owner]
        for run in mine:
            self._slots.add(run.job_id)
        left.runs += mine
        left.others.append(ending.run.service_type)  # perhaps: a look more does no harm
        left.put_back = True

    def _let_through(self, unit: Ending, etags: Sequence[str], reserved: Reserved, left: Left) -> None:
        if unit.change is None:
            return
        versions = dict(zip((write.key for write in unit.writes), etags, strict=True))
        for run in unit.change.runs:
            if run.owner == self._owner:
                reserved.started(run.job_id)
                left.runs.append(replace(run, etag=versions[run_key(run.job_id, run.seq)]))
            else:
                left.others.append(run.service_type)
        left.put_back = left.put_back or unit.change.baton is not None

    async def _change(self, ending: Ending, reserved: Reserved | None) -> GateChange | None:
        """What the gate lets through; with slots to reserve, locked to start here: the first in the place of the
        run that ends, others as the rule of slots allows."""
        job = await self._jobs.get(ending.run.job_id)
        if job is None or job.state is State.DELETING:
            return None
        now = self._clock()
        firsts = iter([True])

        def lock(run: Run) -> Run:
            if reserved is None or not is_own(run.service_type):
                return run
            if next(firsts, False):
                reserved.add(run.job_id)
            elif not reserved.take(run.job_id):
                return run
            return locked(run, self._owner, now, now + self._lock_duration)

        return gate_change(job, bound_of(job), now, ending.mark, lock)

    async def _standing(self, was: Run | Idle) -> Run | Idle | None:
        """It as it stands, None unless it is still this holder's; newer versions may have taken it over."""
        run = run_in(was)
        with suppress(NewerFormat):
            read = self._runs.idle if isinstance(was, Idle) else self._runs.get
            current = await read(run.job_id, run.seq)
            return current if current is not None and same_holder(run_in(current), run) else None
        return None

    async def _is_recorded(self, ending: Ending) -> bool:
        slot = await self._runs.slot(ending.run.job_id, ending.run.seq, ending.history_limit)
        return bool(slot) and slot["mark"] == ending.mark

    async def _still_held(
        self, batch: Sequence[Ending | Rest], failure: StoreFailed, left: Left
    ) -> list[Ending | Rest]:
        """Storage failed: those whose locks still hold, after a moment; the others are somebody else's."""
        about_them = {**about(batch[0].run), "count": len(batch)}
        log.warning("completion waits for storage: %s", failure, extra={"action": "complete", **about_them})
        await asyncio.sleep(1)
        latest = self._clock() + SKEW
        held = [unit for unit in batch if unit.run.locked_until and latest < unit.run.locked_until]
        for unit in batch:
            if unit not in held:
                left.at_fault(unit.run)
        return held


def when_due(at: datetime, now: datetime) -> datetime:
    """The second under which a run rests until `at`: never before the second of writing."""
    return max(ceil_second(at), floor_second(now))
