"""What callers do to jobs: create, replace, delete. Each is one conditional transaction, tried again on a race."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from shared.engine.announce import Announcer
from shared.engine.removal import Remover
from shared.errors import Conflict, Fault, InvalidInput, NotFound, PreconditionFailed, Unavailable
from shared.jobs.definition import Definition, load_definition, load_schedule, pack_definition
from shared.jobs.identity import new_id, new_stamp
from shared.jobs.model import Core, Counters, Job, State
from shared.jobs.plan import first_turn, pending_at
from shared.jobs.spec import parse_job
from shared.jobs.times import floor_second
from shared.storage.jobs import Jobs
from shared.storage.table import Refused

TRIES = 20


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

    def __init__(self, jobs: Jobs, remover: Remover, announcer: Announcer) -> None:
        self._jobs = jobs
        self._remover = remover
        self._announcer = announcer

    async def get(self, job_id: str) -> Job:
        """The job. Raises NotFound, also while it is being deleted."""
        job = await self._jobs.get(job_id)
        if job is None or job.state is State.DELETING:
            raise NotFound(f"there is no job {job_id!r}")
        return job

    async def create(self, body: Any, now: datetime) -> Job:
        """CreateTimerJob: a new job. Raises InvalidInput, TooLarge; Conflict if the id exists."""
        given, definition = parse_job(body, floor_second(now))
        job = _new_job(given or new_id(), definition, now)
        for _ in range(TRIES):
            if await self._insert(job, now):
                return job
            if (existing := await self._standing(job.id)) is not None:
                raise Conflict(f"job {existing.id!r} exists")
        raise Unavailable(f"job {job.id!r} keeps being created and deleted")

    async def put(self, job_id: str, body: Any, conditions: Conditions, now: datetime) -> tuple[Job, bool]:
        """Creates or replaces a job; gives it and whether it is new. Raises as `create` does, and
        PreconditionFailed."""
        for _ in range(TRIES):
            old = await self._standing(job_id)
            conditions.check(old)
            new = _replacement(old, job_id, body, now) if old else _created(job_id, body, now)
            if old is None:
                if await self._insert(new, now):
                    return new, True
            elif new == old or await self._replace(old, new, now):
                return new, False
        raise Unavailable(f"job {job_id!r} keeps being changed")

    async def delete(self, job_id: str, conditions: Conditions, now: datetime) -> None:
        """Deletes a job: when this returns, nothing of it starts any more and its rows are gone.

        Raises NotFound, PreconditionFailed.
        """
        for _ in range(TRIES):
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

    async def _standing(self, job_id: str) -> Job | None:
        """The job, or None; a removal that is under way is finished first."""
        job = await self._jobs.get(job_id)
        if job is not None and job.state is State.DELETING:
            await self._remover.finish(job_id)
            return None
        return job

    async def _insert(self, job: Job, now: datetime) -> bool:
        mark = uuid4().hex
        try:
            await self._jobs.create(job, mark)
        except Refused:
            if not await self._jobs.wrote(job.id, mark):
                return False
        await self._announce(job, now)
        return True

    async def _replace(self, old: Job, new: Job, now: datetime) -> bool:
        mark = uuid4().hex
        try:
            await self._jobs.replace(old, new, mark)
        except Refused:
            if not await self._jobs.wrote(new.id, mark):
                return False
        limit = load_definition(new.core.definition).history_limit
        if limit < load_definition(old.core.definition).history_limit:
            await self._shorten_history(new.id, limit)
        await self._announce(new, now)
        return True

    async def _shorten_history(self, job_id: str, limit: int) -> None:
        """Removes the slots above a lowered limit. A crash before it: readers cut history at the limit."""
        keys = await self._jobs.keys_of(job_id, ("past",), since=limit)
        with suppress(Refused):  # somebody else removes them, or the job
            await self._remover.delete_rows(job_id, keys)

    async def _announce(self, job: Job, now: datetime) -> None:
        if job.pending:
            await self._announcer.written(self._jobs.partition(job.id), [job.pending.due], now)


def _created(job_id: str, body: Any, now: datetime) -> Job:
    definition = _parse_for(job_id, body, floor_second(now))
    return _new_job(job_id, definition, now)


def _new_job(job_id: str, definition: dict[str, Any], now: datetime) -> Job:
    core = Core(
        stamp=new_stamp(now),
        generation=1,
        anchor=floor_second(now),
        definition=pack_definition(definition),
        counters=Counters(),
    )
    return _scheduled(
        Job(id=job_id, core=core, state=State.ENABLED, pending=None, created_at=now, updated_at=now), now
    )


def _scheduled(job: Job, now: datetime) -> Job:
    """The job with its first timer; Completed if it has no occurrence at all (N3)."""
    pending = first_turn(job.core, load_schedule(job.core.definition, job.core.anchor), now)
    return replace(job, pending=pending, state=State.ENABLED if pending else State.COMPLETED)


def _replacement(old: Job, job_id: str, body: Any, now: datetime) -> Job:
    """What a PUT makes of a job (L4 to L6): equal, if it changes nothing."""
    core = replace(old.core, generation=old.core.generation + 1)
    definition = _unchanged_schedule(old, job_id, body)
    if definition is not None:
        packed = pack_definition(definition)
        if packed == old.core.definition:
            return old
        core = replace(core, definition=packed)
        pending = old.pending and pending_at(load_schedule(packed, core.anchor), old.pending.scheduled, now)
        return replace(old, core=core, pending=pending, updated_at=now, fault="")
    definition = _parse_for(job_id, body, floor_second(now))
    core = replace(
        core,
        stamp=new_stamp(now),
        anchor=floor_second(now),
        definition=pack_definition(definition),
        counters=replace(core.counters, base=core.counters.fired),
    )
    return _scheduled(replace(old, core=core, updated_at=now, fault=""), now)


def _parse_for(job_id: str, body: Any, created: datetime) -> dict[str, Any]:
    """The definition in the body of a request for this job; its id may be left out there."""
    given, definition = parse_job(body, created)
    if given not in (None, job_id):
        raise InvalidInput([Fault("id", f"differs from the id in the address, {job_id!r}")])
    return definition


def _unchanged_schedule(old: Job, job_id: str, body: Any) -> dict[str, Any] | None:
    """The new definition, if its schedule is that of the old one as it was anchored (L4, L6); else None."""
    try:
        definition = _parse_for(job_id, body, old.core.anchor)
        stored = load_schedule(old.core.definition, old.core.anchor)
    except InvalidInput:
        return None  # the parse against the present tells what is wrong
    return definition if Definition(definition).schedule(old.core.anchor).same_as(stored) else None
