"""What callers do to jobs as a whole: create, replace, delete, suspend, resume.

Each is one conditional transaction, tried again on a race.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from shared.engine.announce import Announcer
from shared.engine.contention import TRIES, pause
from shared.engine.events import Events
from shared.engine.leave import released_run
from shared.engine.policy import Policy
from shared.engine.removal import Remover
from shared.errors import Conflict, Fault, InvalidInput, NotFound, PreconditionFailed, Unavailable
from shared.jobs.definition import Definition, load_definition, pack_definition
from shared.jobs.identity import new_id
from shared.jobs.model import TIMER_JOB, Idle, Job, Run, State, Stretch
from shared.jobs.spec import JobBody, parse_job
from shared.jobs.times import floor_second
from shared.jobs.transitions import (
    Change,
    at_new_bound,
    bound_of,
    created,
    redefined,
    reset,
    resumed,
    suspended,
    timing_of,
)
from shared.storage.hosts import Hosts
from shared.storage.jobs import Jobs
from shared.storage.runs import Runs
from shared.storage.table import Refused, StoreFailed

MOST_GATED = 80  # executing runs that one transaction can put under a new bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """A request's conditions, as the job's entity tag must meet them; None: not given."""

    if_match: Callable[[str], bool] | None = None
    must_be_new: bool = False

    def check(self, job: Job | None) -> None:
        """Raises PreconditionFailed unless the job (None: there is none) is as the request demands."""
        if job is not None and self.must_be_new:
            raise PreconditionFailed("If-None-Match: the job exists")
        if self.if_match is not None and (job is None or not self.if_match(entity_tag(job))):
            raise PreconditionFailed("If-Match: the job is not at that version")


def entity_tag(job: Job) -> str:
    """The API's ETag: it changes with what callers change, not with what the scheduler writes."""
    return f'"{job.core.stamp}.{job.core.generation}"'


class Admin:
    """The operations behind the API that change jobs."""

    def __init__(
        self,
        jobs: Jobs,
        runs: Runs,
        remover: Remover,
        announcer: Announcer,
        policy: Policy,
        events: Events,
        hosts: Hosts,
    ) -> None:
        self._jobs = jobs
        self._runs = runs
        self._remover = remover
        self._announcer = announcer
        self._policy = policy
        self._events = events
        self._hosts = hosts

    async def get(self, job_id: str) -> Job:
        """The job. Raises NotFound, also while it is being deleted."""
        job = await self._jobs.get(job_id)
        if job is None or job.state is State.DELETING:
            raise NotFound(f"there is no job {job_id!r}")
        return job

    async def create(self, body: Any, now: datetime) -> Job:
        """CreateTimerJob: a new job. Raises InvalidInput, TooLarge; Conflict if the id exists."""
        asked = parse_job(body, floor_second(now))
        self._policy.check(asked.definition, asked.short, now)
        job = created(asked.id or new_id(), asked.definition, asked.state, now)
        await self._note_type(asked.definition)
        for attempt in range(TRIES):
            await pause(attempt)
            if await self._insert(job, now):
                return job
            if (existing := await self._standing(job.id)) is not None:
                raise Conflict(f"job {existing.id!r} exists")
        raise Unavailable(f"job {job.id!r} keeps being created and deleted")

    async def put(
        self, job_id: str, body: Any, conditions: Conditions, now: datetime, replay: bool = False
    ) -> tuple[Job, bool]:
        """Creates or replaces a job; gives it and whether it is new.

        `replay`: its schedule begins anew, with what was dispatched before forgotten. Raises as `create` does,
        and PreconditionFailed.
        """
        for attempt in range(TRIES):
            await pause(attempt)
            old = await self._standing(job_id)
            conditions.check(old)
            if old is None:
                asked = _parse_for(job_id, body, floor_second(now))
                self._policy.check(asked.definition, asked.short, now)
                new = created(job_id, asked.definition, asked.state, now)
                await self._note_type(asked.definition)
                if await self._insert(new, now):
                    return new, True
                continue
            change, asked = _replacement(old, body, now, replay)
            self._policy.check(asked.definition, asked.short, now)
            await self._note_type(asked.definition)
            if change.job == old or await self._commit(old, change, now):
                return change.job, False
        raise Unavailable(f"job {job_id!r} keeps being changed")

    async def suspend(self, job_id: str, now: datetime) -> Job:
        """Nothing of the job is dispatched any more; runs under way go on (L1). Raises NotFound; Conflict if
        it is Completed."""
        return await self._changed(job_id, now, lambda job: Change(job=suspended(job)))

    async def resume(self, job_id: str, now: datetime) -> Job:
        """The job is dispatched again (L2, L3). Raises as `suspend` does."""
        return await self._changed(job_id, now, lambda job: resumed(job, now))

    async def delete(self, job_id: str, conditions: Conditions, now: datetime) -> None:
        """Deletes a job: when this returns, nothing of it starts any more and its rows are gone.

        Raises NotFound, PreconditionFailed.
        """
        for attempt in range(TRIES):
            await pause(attempt)
            job = await self._jobs.get(job_id)
            if job is None:
                raise NotFound(f"there is no job {job_id!r}")
            if job.state is not State.DELETING:
                conditions.check(job)
                if not await self._remover.begin(job, now):
                    continue
            await self._remover.finish(job_id)
            return
        raise Unavailable(f"job {job_id!r} keeps being changed")

    async def _note_type(self, definition: Mapping[str, Any]) -> None:
        """Before the first job of another service type exists, detection is told to look for runs of such."""
        if definition["serviceType"] != TIMER_JOB:
            await self._hosts.use()

    async def _standing(self, job_id: str) -> Job | None:
        """The job, or None; a removal that is under way is finished first."""
        job = await self._jobs.get(job_id)
        if job is not None and job.state is State.DELETING:
            await self._remover.finish(job_id)
            return None
        return job

    async def _changed(self, job_id: str, now: datetime, change: Callable[[Job], Change]) -> Job:
        for attempt in range(TRIES):
            await pause(attempt)
            job = await self.get(job_id)
            made = change(job)
            if made.job == job:
                return job
            made = replace(made, job=_raised(made.job, now))
            if await self._commit(job, made, now):
                return made.job
        raise Unavailable(f"job {job_id!r} keeps being changed")

    async def _insert(self, job: Job, now: datetime) -> bool:
        mark = uuid4().hex
        await self._tell(job, (), now)
        try:
            await self._jobs.create(job, mark)
        except Refused:
            if not await self._jobs.wrote(job.id, mark):
                return False
        await self._announce(job, now)
        return True

    async def _commit(self, old: Job, change: Change, now: datetime) -> bool:
        """Writes a change in one transaction; False if the job was changed meanwhile."""
        mark = uuid4().hex
        change, gated = await self._at_bound(old, change)
        new = change.job
        limit = load_definition(new.core.definition).history_limit
        runs = [released_run(new, place, now, "", now, mark) for place in change.released]
        await self._tell(new, change.records, now, old)
        try:
            await self._jobs.replace(
                old, new, mark, runs=runs, gated=gated, records=change.records, history_limit=limit
            )
        except Refused:
            if not await self._jobs.wrote(new.id, mark):
                return False
        if limit < load_definition(old.core.definition).history_limit:
            await self._shorten_history(new.id, limit)
        await self._announce(new, now)
        if runs:
            await self._announcer.runs(self._jobs.partition(new.id), [run.service_type for run in runs])
        return True

    async def _tell(self, new: Job, records: Sequence[Stretch], now: datetime, old: Job | None = None) -> None:
        await self._events.ended(new.id, new.core.stamp, records)
        if new.state is State.COMPLETED and (old is None or old.state is not State.COMPLETED):
            await self._events.completed(new.id, new.core.stamp, new.core.counters.seq, now)

    async def _at_bound(self, old: Job, change: Change) -> tuple[Change, list[Run | Idle]]:
        """The change with its gate as the new definition bounds it, and the runs that newly count there."""
        before, after = bound_of(old), bound_of(change.job)
        if before == after:
            return change, []
        executing = await self._runs.of_job(old.id)
        idle = await self._runs.idle_of_job(old.id)
        if after is None:
            counted = at_new_bound(change.job, change.job.gate.running)
            return replace(counted, records=change.records), []
        gated: list[Run | Idle] = [run for run in executing if not run.gated]
        gated += [rest for rest in idle if not rest.run.gated]
        if len(gated) > MOST_GATED:
            raise Conflict(f"{len(gated)} runs are under way, too many to be put under a bound: try again later")
        counted = at_new_bound(change.job, len(executing) + len(idle))
        return replace(counted, records=change.records), gated

    async def _shorten_history(self, job_id: str, limit: int) -> None:
        """Keeps the newest records, in the slots of a lowered limit. A crash before it: the next change of the
        limit tidies up; readers show the newest of what is there."""
        with suppress(Refused, StoreFailed):  # somebody else changes them, or the job; it is done but for this
            await self._runs.shorten_history(job_id, limit)

    async def _announce(self, job: Job, now: datetime) -> None:
        if job.baton_due:
            await self._announcer.written(self._jobs.partition(job.id), [job.baton_due], now)


def _raised(job: Job, now: datetime) -> Job:
    core = replace(job.core, generation=job.core.generation + 1)
    return replace(job, core=core, updated_at=now, fault="")


def _parse_for(job_id: str, body: Any, created_at: datetime) -> JobBody:
    """What the body of a request for this job asks; its id may be left out there."""
    asked = parse_job(body, created_at)
    if asked.id not in (None, job_id):
        raise InvalidInput([Fault("id", f"differs from the id in the address, {job_id!r}")])
    return asked


def _replacement(old: Job, body: Any, now: datetime, replay: bool) -> tuple[Change, JobBody]:
    """What a PUT makes of a job (L4 to L6): equal, if it changes nothing."""
    records: tuple[Stretch, ...] = ()
    asked = None if replay else _unchanged_schedule(old, body)
    if asked is not None:
        packed = pack_definition(asked.definition)
        job = old if packed == old.core.definition else redefined(old, packed, now)
    else:
        asked = _parse_for(old.id, body, floor_second(now))
        made = reset(old, pack_definition(asked.definition), asked.state, now, replay)
        job, records = made.job, made.records
    change = Change(job=job)
    if job.state is not State.COMPLETED and asked.state is not job.state:
        change = resumed(job, now) if asked.state is State.ENABLED else Change(job=suspended(job))
    if change.job == old:
        return change, asked
    return replace(change, job=_raised(change.job, now), records=records + change.records), asked


def _unchanged_schedule(old: Job, body: Any) -> JobBody | None:
    """What is asked, if its schedule is that of the old definition as it was anchored (L4, L6); else None."""
    try:
        asked = _parse_for(old.id, body, old.core.anchor)
        stored = timing_of(old)
    except InvalidInput:
        return None  # the parse against the present tells what is wrong
    return asked if Definition(asked.definition).schedule(old.core.anchor).same_as(stored.schedule) else None
