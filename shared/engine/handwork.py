"""What callers do to single runs: run now, resubmit, cancel."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from shared import metrics
from shared.engine.admin import Admin
from shared.engine.announce import Announcer
from shared.engine.contention import TRIES, pause
from shared.engine.events import Events
from shared.engine.opening import gate_change, run_of
from shared.errors import Conflict, NotFound, Unavailable
from shared.jobs.definition import history_limit_of, load_definition
from shared.jobs.gate import hand_place, is_full, without
from shared.jobs.instance import steps_of
from shared.jobs.model import Ended, Idle, Job, Run, State, Status, Stretch, Waiting, Window
from shared.jobs.progress import attempts_of, cancelled_step, summary
from shared.jobs.times import floor_second, from_row_text, row_text
from shared.jobs.transitions import bound_of
from shared.storage.endings import Ending
from shared.storage.jobs import Jobs
from shared.storage.run_list import Listed, RunList
from shared.storage.runs import Runs
from shared.storage.table import Refused


class Handwork:
    """Runs made and ended by hand, each by one conditional transaction. `keeps`: history has those ended."""

    def __init__(
        self,
        admin: Admin,
        jobs: Jobs,
        runs: Runs,
        run_list: RunList,
        announcer: Announcer,
        events: Events,
        keeps: bool = True,
    ) -> None:
        self._admin = admin
        self._jobs = jobs
        self._runs = runs
        self._list = run_list
        self._announcer = announcer
        self._events = events
        self._keeps = keeps

    async def run_now(self, job_id: str, now: datetime) -> Run | Waiting:
        """A run beside the schedule: it neither counts towards `count` nor moves the schedule (N4).

        Raises NotFound; Conflict if the job is Completed, or its gate is full and nothing more may wait.
        """

        def scheduled(job: Job) -> datetime:
            if job.state is State.COMPLETED:
                raise Conflict("the job is Completed")
            return floor_second(now)

        return await self._start(job_id, now, scheduled)

    async def resubmit(self, job_id: str, seq: int, now: datetime) -> Run | Waiting:
        """A new run for the scheduled time of one that has ended, or the last of a missed or skipped stretch.

        Raises NotFound; Conflict if it has not ended, or as `run_now` does.
        """
        record = await self._ended(job_id, seq)
        if isinstance(record, Stretch):
            return await self._start(job_id, now, lambda job: record.last)
        bounds = record.window and (from_row_text(record.window[0]), from_row_text(record.window[1]))
        return await self._start(job_id, now, lambda job: record.scheduled, bounds)

    async def _ended(self, job_id: str, seq: int) -> Ended | Stretch:
        found = await self._find(job_id, seq)
        if isinstance(found, Ended | Stretch):
            return found
        raise Conflict(f"run {seq} has not ended")

    async def _is_under_way(self, job_id: str, seq: int) -> bool:
        return not isinstance(await self._find(job_id, seq), Ended | Stretch)

    async def _find(self, job_id: str, seq: int) -> Listed | Waiting:
        """The run in whatever state. Raises NotFound."""
        job = await self._admin.get(job_id)
        waiting = next((place for place in job.gate.waiting if place.seq == seq), None)
        found = await self._list.one(job_id, seq, history_limit_of(job.core.definition)) or waiting
        if found is None:
            raise NotFound(f"job {job_id!r} has no run {seq}")
        return found

    async def _start(
        self, job_id: str, now: datetime, scheduled: Callable[[Job], datetime], window: Window | None = None
    ) -> Run | Waiting:
        """1. Reads the job. 2. Commits, at that version: [job with a number more, its baton likewise, the run
        unlocked, or its waiting place]. 3. A ticket; without it, detection finds the run."""
        for attempt in range(TRIES):
            await pause(attempt)
            job = await self._admin.get(job_id)
            at = scheduled(job)
            new, place = _numbered(job, at, now, window)
            run = None if place in new.gate.waiting else run_of(new, place, now, gated=bound_of(new) is not None)
            mark = uuid4().hex
            try:
                await self._jobs.replace(job, new, mark, runs=[run] if run else [])
            except Refused:
                if not await self._jobs.wrote(job_id, mark):
                    continue
            if run:
                await self._announcer.runs(self._jobs.partition(job_id), [run.service_type])
            await self._announce_baton(new, now)
            return run or place
        raise Unavailable(f"job {job_id!r} keeps being changed")

    async def _announce_baton(self, job: Job, now: datetime) -> None:
        """A baton that is due and was moved under a pass is announced again: that pass lost it."""
        if job.baton_due and job.baton_due <= now:
            await self._announcer.written(self._jobs.partition(job.id), [job.baton_due], now)

    async def cancel(self, job_id: str, seq: int, now: datetime) -> Ended:
        """Ends a run that waits, is idle or is executing; an action in flight may still finish.

        Raises NotFound; Conflict if it has ended already.
        """
        for attempt in range(TRIES):
            await pause(attempt)
            job = await self._admin.get(job_id)
            waiting = next((place for place in job.gate.waiting if place.seq == seq), None)
            if waiting:
                ended = _cancelled(waiting, waiting.accepted, now)
                new = replace(job, gate=without(job.gate, seq))
                if await self._cancel_waiting(job, new, ended, now):
                    return ended
                continue
            run: Run | None = await self._runs.get(job_id, seq)
            idle = None if run else await self._runs.idle(job_id, seq)
            if run is None and idle is None:
                if await self._is_under_way(job_id, seq):
                    continue  # it woke, or was put to rest, between the two readings
                raise Conflict(f"run {seq} has ended")
            if cancelled := await self._cancel_run(job, run or _of(idle), idle, now):
                return cancelled
        raise Unavailable(f"run {seq} of job {job_id!r} keeps being changed")

    async def _cancel_waiting(self, job: Job, new: Job, ended: Ended, now: datetime) -> bool:
        mark = uuid4().hex
        limit = load_definition(job.core.definition).history_limit
        await self._events.ended(job.id, job.core.stamp, [ended])
        try:
            await self._jobs.replace(job, new, mark, records=[ended], history_limit=limit)
        except Refused:
            if not await self._jobs.wrote(job.id, mark):
                return False
        metrics.count_ended(ended.status)
        await self._announce_baton(new, now)
        return True

    async def _cancel_run(self, job: Job, run: Run, idle: Idle | None, now: datetime) -> Ended | None:
        ended = _cancelled(run, run.started_or_fired, now)
        return ended if await self.end(job, run, idle, ended, uuid4().hex, now) else None

    async def end(self, job: Job, run: Run, idle: Idle | None, ended: Ended, mark: str, now: datetime) -> bool:
        """Ends a run that nobody executes here, at the versions read; False if it or its gate has changed.

        1. Commits: [run away, history, job merged, gate, what it lets through]. 2. Tickets for that.
        """
        limit = load_definition(run.definition).history_limit
        change = gate_change(job, bound_of(job), now, mark) if run.gated else None
        ending = Ending(
            run=run,
            ended=ended,
            summary=summary(ended),
            history_limit=limit,
            mark=mark,
            slot=await self._runs.slot(job.id, run.seq, limit),
            change=change,
            idle=idle,
            kept=self._keeps,
        )
        partition = self._jobs.partition(job.id)
        await self._events.ended(job.id, run.stamp, [ended])
        try:
            await self._runs.leave(partition, [ending])
        except Refused:
            slot = await self._runs.slot(job.id, run.seq, limit)
            if not slot or slot["mark"] != mark:
                return False
        metrics.count_ended(ended.status)
        if change and change.runs:
            await self._announcer.runs(partition, [run.service_type for run in change.runs])
        if change and change.baton:
            await self._announcer.written(partition, [change.baton.pending.due], now)
        return True


def _of(idle: Idle | None) -> Run:
    assert idle
    return idle.run


def _numbered(job: Job, at: datetime, now: datetime, window: Window | None) -> tuple[Job, Waiting]:
    """The job with a run more, and that run's place; Conflict where its gate is full and nothing may wait."""
    counters = replace(job.core.counters, seq=job.core.counters.seq + 1)
    place = hand_place(counters.seq, job.core.stamp, at, now, window)
    bound, gate = bound_of(job), job.gate
    if bound and is_full(gate, bound):
        if len(gate.waiting) >= bound.waiting:
            raise Conflict(f"under way: {gate.running}, waiting: {len(gate.waiting)}; no more runs may be")
        gate = replace(gate, waiting=(*gate.waiting, place))
    elif bound:
        gate = replace(gate, running=gate.running + 1)
    return replace(job, core=replace(job.core, counters=counters, skipping=None), gate=gate), place


def _cancelled(what: Run | Waiting, started: datetime, now: datetime) -> Ended:
    run = what if isinstance(what, Run) else None
    steps = steps_of(run) if run else {}
    views = {name: cancelled_step(step, now).view() for name, step in steps.items()}
    return Ended(
        seq=what.seq,
        status=Status.CANCELLED,
        scheduled=what.scheduled,
        started=started,
        ended=now,
        attempts=attempts_of(run.takeovers, steps) if run else 0,
        reason="cancelled by hand",
        actions=views,
        window=(row_text(what.window[0]), row_text(what.window[1])) if what.window else None,
    )
