"""The routes of jobs and their runs."""

import base64
import json
from collections.abc import Callable, Iterable, Sequence

from shared.engine.activation import Search
from shared.engine.admin import Admin, Conditions, entity_tag
from shared.engine.clock import Clock
from shared.errors import Fault, InvalidInput
from shared.giving_way import give_way
from shared.jobs.definition import load_definition
from shared.jobs.idempotency import check_key
from shared.jobs.identity import check_id
from shared.jobs.model import Job, State
from shared.storage.jobs import Jobs
from shared.storage.rows import job_key
from shared.web.exchange import (
    MAX_ANSWER,
    Page,
    Request,
    Response,
    etag_condition,
    flag,
    known_body,
    known_query,
    path_of,
    read_json,
    whole_number,
)
from shared.web.occurrences import upcoming
from shared.web.views import job_view, schedule_of

MAX_PAGE = 1000
MAX_SCAN = 2000
MAX_OCCURRENCES = 1000
# How many jobs one request to storage asks for: it reads one more, and a service answers 1,000 at most; the first,
# when it is not known how large they are, 100; with a filter, which most jobs may not pass, not fewer than that.
MOST_READ = 999
FIRST_READ = 100
LEAST_FILTERED = 100


class JobRoutes:
    """`/jobs` and what lies below it."""

    def __init__(self, admin: Admin, jobs: Jobs, search: Search, clock: Clock, max_body: int) -> None:
        self._max_body = max_body
        self._admin = admin
        self._jobs = jobs
        self._search = search
        self._clock = clock

    async def create(self, request: Request) -> Response:
        """POST /jobs: CreateTimerJob."""
        known_query(request)
        key = request.headers.get("idempotency-key")
        body, now = read_json(request, self._max_body), self._clock()
        if key is None:
            job, new = await self._admin.create(body, now), True
        else:
            job, new = await self._admin.create_once(check_key(key), body, now)
        return await self._answer(201 if new else 200, job, location=f"{path_of(request)}/{job.id}")

    async def put(self, request: Request) -> Response:
        """PUT /jobs/{id}: create or replace."""
        known_query(request, "resetState")
        job_id = _id(request)
        replay = flag(request, "resetState")
        body = read_json(request, self._max_body)
        job, created = await self._admin.put(job_id, body, _conditions(request), self._clock(), replay)
        return await self._answer(201 if created else 200, job, path_of(request) if created else None)

    async def get(self, request: Request) -> Response:
        """GET /jobs/{id}."""
        known_query(request)
        return await self._answer(200, await self._admin.get(_id(request)))

    async def delete(self, request: Request) -> Response:
        """DELETE /jobs/{id}."""
        known_query(request)
        await self._admin.delete(_id(request), _conditions(request), self._clock())
        return Response(status=204)

    async def suspend(self, request: Request) -> Response:
        """POST /jobs/{id}/suspend."""
        known_query(request)
        known_body(request)
        return await self._answer(
            200, await self._admin.suspend(_id(request), _conditions(request), self._clock())
        )

    async def resume(self, request: Request) -> Response:
        """POST /jobs/{id}/resume."""
        known_query(request)
        known_body(request)
        return await self._answer(200, await self._admin.resume(_id(request), _conditions(request), self._clock()))

    async def occurrences(self, request: Request) -> Response:
        """GET /jobs/{id}/occurrences: the next ones by the schedule as it stands."""
        known_query(request, "count")
        count = whole_number(request, "count", 10, 1, MAX_OCCURRENCES)
        job = await self._admin.get(_id(request))
        schedule = schedule_of(job)
        items = await upcoming(job, schedule, count) if schedule else []
        return Response(status=200, body={"value": items})

    async def list(self, request: Request) -> Response:
        """GET /jobs: a page, walking the partitions one after the other.

        It ends when it is full, or about 2,000 jobs have been looked at, or its answer has 4 MiB, so it may be
        short; `continuation` leads on, and is null at the end.
        """
        known_query(request, "prefix", "state", "tag", "pageSize", "continuation")
        size = whole_number(request, "pageSize", 100, 1, MAX_PAGE)
        prefix = _prefix(request)
        wanted = _filter(request)
        partitions = self._jobs.partitions
        index, key = _read_continuation(request, len(partitions))
        least = LEAST_FILTERED if {"state", "tag"} & request.query.keys() else 1
        found: list[tuple[int, Job]] = []
        looked_at = packed = 0
        most = FIRST_READ
        while index < len(partitions) and len(found) < size and looked_at < MAX_SCAN and packed < MAX_ANSWER:
            room = size - len(found)
            page = await self._jobs.page(partitions[index], prefix, key, min(max(room, least), most))
            looked_at += page.seen
            packed += sum(len(job.core.definition) for job in page.jobs)
            if packed:
                most = min(MOST_READ, max(1, MAX_ANSWER * looked_at // packed))
            matching = []
            for job in page.jobs:
                await give_way()
                matching += [job] if wanted(job) else []
            found += [(index, job) for job in matching[:room]]
            key = job_key(matching[room].id) if len(matching) > room else page.next_key
            index += not key
        fitting = await _fitting([job for _, job in found])
        unserved = await self._unserved(job for _, job in found[:fitting])
        answer = Page()
        for number, (of_job, job) in enumerate(found):
            await give_way()
            if number == fitting or not answer.add(job_view(job, unserved)):
                index, key = of_job, job_key(job.id)
                break
        return answer.answer(_continuation(index, key) if index < len(partitions) else None)

    async def _answer(self, status: int, job: Job, location: str | None = None) -> Response:
        headers = {"ETag": entity_tag(job)} | ({"Location": location} if location else {})
        return Response(status=status, body=job_view(job, await self._unserved([job])), headers=headers)

    async def _unserved(self, jobs: Iterable[Job]) -> set[str]:
        """The service types of these jobs that nobody can run at present."""
        named = set[str]()
        for job in jobs:
            await give_way()
            named.add(load_definition(job.core.definition).service_type)
        return await self._search.unserved(named, self._clock())


async def _fitting(jobs: Sequence[Job]) -> int:
    """How many of the jobs a page may hold by their definitions, which are unpacked no further than that."""
    size = 0
    for number, job in enumerate(jobs):
        await give_way()
        size += load_definition(job.core.definition).size
        if number and size > MAX_ANSWER:
            return number
    return len(jobs)


def _id(request: Request) -> str:
    return check_id(request.route["id"])


def _conditions(request: Request) -> Conditions:
    if_none_match = request.headers.get("if-none-match")
    if if_none_match not in (None, "*"):
        raise InvalidInput([Fault("If-None-Match", "must be *")])
    return Conditions(if_match=etag_condition(request.headers.get("if-match")), must_be_new=if_none_match == "*")


def _prefix(request: Request) -> str:
    prefix = request.query.get("prefix", "")
    if prefix not in ("", ".", ".."):  # these begin ids, and are none
        try:
            check_id(prefix)
        except InvalidInput:
            raise InvalidInput([Fault("prefix", "must be the beginning of an id")]) from None
    return prefix


def _filter(request: Request) -> Callable[[Job], bool]:
    """Which jobs the query asks for by `state` and `tag`; never one that is being deleted."""
    state, tag = request.query.get("state"), request.query.get("tag")
    states = [str(s) for s in State if s is not State.DELETING]
    faults = []
    if state is not None and state not in states:
        faults.append(Fault("state", f"must be one of {', '.join(states)}"))
    if tag is not None and ":" not in tag:
        faults.append(Fault("tag", "must be name:value"))
    if faults:
        raise InvalidInput(faults)

    def wanted(job: Job) -> bool:
        if job.state is State.DELETING or state not in (None, str(job.state)):
            return False
        if tag is None:
            return True
        tags = load_definition(job.core.definition).raw.get("tags", {})
        return any(tag == f"{name}:{value}" for name, value in tags.items())

    return wanted


def _continuation(index: int, key: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([index, key]).encode()).decode()


def _read_continuation(request: Request, partitions: int) -> tuple[int, str]:
    text = request.query.get("continuation")
    if text is None:
        return 0, ""
    try:
        index, key = json.loads(base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True))
        if type(index) is not int or not 0 <= index < partitions or not isinstance(key, str):
            raise ValueError
        if key and key != job_key(check_id(key[len("job:") :])):
            raise ValueError
    except (ValueError, TypeError, RecursionError, InvalidInput):
        raise InvalidInput([Fault("continuation", "is none that this app gave")]) from None
    return index, key
