"""What callers do to jobs as a whole: create, replace, delete, suspend, resume.

Each is one conditional transaction, tried again on a race.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from shared import metrics
from shared.engine.announce import Announcer
from shared.engine.contention import TRIES, pause
from shared.engine.events import Events
from shared.engine.opening import run_of
from shared.engine.policy import Policy
from shared.engine.removal import Remover
from shared.errors import Conflict, NewerFormat, NotFound, PreconditionFailed, Unavailable
from shared.giving_way import give_way
from shared.jobs.asking import asked_before, id_asked, parse_for, raised, replacement, unchanged_schedule
from shared.jobs.definition import load_definition
from shared.jobs.idempotency import request_text
from shared.jobs.identity import new_id
from shared.jobs.model import TIMER_JOB, Idle, Job, Run, State, Stretch
from shared.jobs.spec import JobBody
from shared.jobs.times import floor_second
from shared.jobs.transitions import Change, at_new_bound, bound_of, created, resumed, suspended
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

    async def draft(self, body: Any, now: datetime, job_id: str | None = None) -> tuple[Job, JobBody]:
        """The new job that a request asks for, of this id if one is given; it is not stored yet.

        Raises InvalidInput, TooLarge.
        """
        await give_way()
        asked = parse_for(job_id, body, floor_second(now))
        await give_way()
        self._policy.check(asked, now)
        job = created(job_id or asked.id or new_id(), asked.definition, asked.state or State.ENABLED, now)
        await give_way()
        return job, asked

    async def create(self, body: Any, now: datetime) -> Job:
        """CreateTimerJob: a new job. Raises InvalidInput, TooLarge; Conflict if the id exists."""
        job, _ = await self.draft(body, now)
        return await self.insert(job, now)

    async def create_once(self, key: str, body: Any, now: datetime) -> tuple[Job, bool]:
        """Creates a job by a request that bears an idempotency key, which gives its id if the body does not;
        gives the job, and whether it is new.

        While the job exists it tells its request from others. Raises as `create` does, and KeyReused.
        """
        job_id = id_asked(body, key)
        for attempt in range(TRIES):
            await pause(attempt)
            existing = await self._standing(job_id) if job_id else None
            if existing is not None:
                return asked_before(existing, key, body), False
            job, asked = await self.draft(body, now, job_id)
            job = replace(job, request=request_text(key, asked))
            if await self._insert(job, now):
                return job, True
        raise Unavailable(f"job {job_id!r} keeps being created and deleted")

    async def insert(self, job: Job, now: datetime) -> Job:
        """Stores a new job. Raises Conflict if its id exists."""
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
                new, _ = await self.draft(body, now, job_id)
                if await self._insert(new, now):
                    return new, True
                continue
            await give_way()
            unchanged = None if replay else unchanged_schedule(old, body)
            await give_way()
            change, asked = replacement(old, unchanged, body, now, replay)
            await give_way()
            self._policy.check(asked, now)
            await self.note_types([change.job])
            if change.job == old or await self._commit(old, change, now):
                return change.job, False
        raise Unavailable(f"job {job_id!r} keeps being changed")

    async def suspend(self, job_id: str, conditions: Conditions, now: datetime) -> Job:
        """Nothing of the job is dispatched any more; runs under way go on (L1). Raises NotFound,
        PreconditionFailed; Conflict if it is Completed."""
        return await self._changed(job_id, conditions, now, lambda job: Change(job=suspended(job)))

    async def resume(self, job_id: str, conditions: Conditions, now: datetime) -> Job:
        """The job is dispatched again (L2, L3). Raises as `suspend` does."""
        return await self._changed(job_id, conditions, now, lambda job: resumed(job, now))

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

    async def note_types(self, jobs: Iterable[Job]) -> None:
        """Before the first job of a service type but TimerJob is stored, detection is told to look for such."""
        for job in jobs:
            await give_way()
            if load_definition(job.core.definition).service_type != TIMER_JOB:
                await self._hosts.use()
                return

    async def _standing(self, job_id: str) -> Job | None:
        """The job, or None; a removal that is under way is finished first."""
        job = await self._jobs.get(job_id)
        if job is not None and job.state is State.DELETING:
            await self._remover.finish(job_id)
            return None
        return job

    async def _changed(
        self, job_id: str, conditions: Conditions, now: datetime, change: Callable[[Job], Change]
    ) -> Job:
        for attempt in range(TRIES):
            await pause(attempt)
            job = await self.get(job_id)
            conditions.check(job)
            made = change(job)
            if made.job == job:
                return job
            made = replace(made, job=raised(made.job, now))
            if await self._commit(job, made, now):
                return made.job
        raise Unavailable(f"job {job_id!r} keeps being changed")

    async def _insert(self, job: Job, now: datetime) -> bool:
        mark = uuid4().hex
        await self._tell(job, (), now)
        await self.note_types([job])
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
        runs = [run_of(new, place, now, gated=True, mark=mark) for place in change.released]
        await self._tell(new, change.records, now, old)
        try:
            await self._jobs.replace(
                old, new, mark, runs=runs, gated=gated, records=change.records, history_limit=limit
            )
        except Refused:
            if not await self._jobs.wrote(new.id, mark):
                return False
        metrics.count_occurrences(new.core.counters.since(old.core.counters))
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
        """Keeps the newest records, in the slots of a lowered limit. A crash before it, or a record of a newer
        format: the next change of the limit tidies up; readers show the newest of what is there."""
        # Where somebody else changes them, or the job, it is done but for this.
        with suppress(Refused, StoreFailed, NewerFormat):
            await self._runs.shorten_history(job_id, limit)

    async def _announce(self, job: Job, now: datetime) -> None:
        if job.baton_due:
            await self._announcer.written(self._jobs.partition(job.id), [job.baton_due], now)
