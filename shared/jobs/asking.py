"""What a request asks of a job that may be there already: to be made once, or to be replaced. Pure."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from shared.errors import Conflict, Fault, InvalidInput, KeyReused
from shared.jobs.definition import Definition, pack_definition
from shared.jobs.idempotency import has_key, id_of_key, request_text
from shared.jobs.identity import check_id
from shared.jobs.model import Job, State, Stretch
from shared.jobs.spec import JobBody, parse_job
from shared.jobs.times import floor_second
from shared.jobs.transitions import Change, kept, redefined, reset, resumed, suspended, timing_of


def raised(job: Job, now: datetime) -> Job:
    """The job as its callers' next version, changed at `now`; what was at fault with it counts no more."""
    core = replace(job.core, generation=job.core.generation + 1)
    return replace(job, core=core, updated_at=now, fault="")


def id_asked(body: Any, key: str) -> str | None:
    """The id of the job that a request with a key makes; None if it is wrong, so that it makes none."""
    if not isinstance(body, dict):
        return None
    try:
        return id_of_key(key) if body.get("id") is None else check_id(body["id"])
    except InvalidInput:
        return None


def asked_before(job: Job, key: str, body: Any) -> Job:
    """The job, if a request with this key and this body has made it."""
    if not has_key(job.request, key):
        raise Conflict(f"job {job.id!r} exists")
    asked = parse_for(job.id, body, floor_second(job.created_at))
    if request_text(key, asked) != job.request:
        raise KeyReused("this Idempotency-Key came before with another body")
    return job


def parse_for(job_id: str | None, body: Any, created_at: datetime) -> JobBody:
    """What the body of a request for this job (None: for a new one) asks; its id may be left out there."""
    asked = parse_job(body, created_at)
    if job_id is not None and asked.id not in (None, job_id):
        raise InvalidInput([Fault("id", f"is not {job_id!r}, which the request is for")])
    return asked


def replacement(old: Job, asked: JobBody | None, body: Any, now: datetime, replay: bool) -> tuple[Change, JobBody]:
    """What a PUT makes of a job (L4 to L6): equal, if it changes nothing.

    `asked` is what its `body` asks if its schedule goes on (see `unchanged_schedule`); None: it begins anew.
    """
    records: tuple[Stretch, ...] = ()
    if asked is not None:
        packed = pack_definition(asked.definition)
        job = old if packed == old.core.definition else redefined(old, packed, now)
    else:
        asked = parse_for(old.id, body, floor_second(now))
        made = reset(old, pack_definition(asked.definition), asked.state or kept(old.state), now, replay)
        job, records = made.job, made.records
    change, state = Change(job=job), asked.state or kept(old.state)
    if job.state is not State.COMPLETED and state is not job.state:
        change = resumed(job, now) if state is State.ENABLED else Change(job=suspended(job))
    if change.job == old:
        return change, asked
    return replace(change, job=raised(change.job, now), records=records + change.records), asked


def unchanged_schedule(old: Job, body: Any) -> JobBody | None:
    """What is asked, if its schedule is that of the old definition as it was anchored (L4, L6); else None."""
    try:
        asked = parse_for(old.id, body, old.core.anchor)
        stored = timing_of(old)
    except InvalidInput:
        return None  # the parse against the present tells what is wrong
    return asked if Definition(asked.definition).schedule(old.core.anchor).same_as(stored.schedule) else None
