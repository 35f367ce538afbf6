"""The routes of a job's runs."""

from typing import Any

from shared.engine.admin import Admin
from shared.engine.clock import Clock
from shared.engine.handwork import Handwork
from shared.errors import Fault, InvalidInput, NotFound
from shared.giving_way import give_way
from shared.jobs.definition import history_limit_of
from shared.jobs.identity import check_id
from shared.jobs.model import Idle, Job, Run, Waiting
from shared.storage.run_list import Listed, RunList
from shared.web.exchange import Page, Request, Response, known_body, known_query, whole_number
from shared.web.views import idle_view, past_view, run_view, waiting_view

DEFAULT_PAGE = 100
MAX_PAGE = 1000
PART = 20  # runs read at a time: of the largest, no more than a page of storage holds
MAX_SEQ = 10**10 - 1


class RunRoutes:
    """`/jobs/{id}/run`, `/jobs/{id}/runs` and what lies below it."""

    def __init__(self, admin: Admin, handwork: Handwork, run_list: RunList, clock: Clock) -> None:
        self._admin = admin
        self._handwork = handwork
        self._list = run_list
        self._clock = clock

    async def list(self, request: Request) -> Response:
        """GET /jobs/{id}/runs: a page, newest first, those executing and waiting included.

        It ends when it is full or has 4 MiB; `continuation` leads on, and is null at the end.
        """
        known_query(request, "pageSize", "continuation")
        size = whole_number(request, "pageSize", DEFAULT_PAGE, 1, MAX_PAGE)
        last = _continuation(request)
        job = await self._admin.get(check_id(request.route["id"]))
        waiting = {place.seq: place for place in job.gate.waiting}
        keys = await self._list.keys(job.id, history_limit_of(job.core.definition))
        numbers = sorted((seq for seq in waiting.keys() | keys.keys() if seq <= last), reverse=True)
        answer, shown = Page(), 0
        for start in range(0, min(size, len(numbers)), PART):
            part = numbers[start : min(start + PART, size)]
            found = await self._list.read(job.id, {seq: keys[seq] for seq in part if seq in keys})
            for seq in part:
                await give_way()
                listed = found.get(seq) or (await self._one(job, seq) if seq in keys else waiting[seq])
                if listed and not answer.add(_view(listed)):
                    return answer.answer(str(seq))
                shown += 1
        return answer.answer(str(numbers[shown]) if shown < len(numbers) else None)

    async def get(self, request: Request) -> Response:
        """GET /jobs/{id}/runs/{seq}."""
        known_query(request)
        job_id, seq = check_id(request.route["id"]), _seq(request)
        job = await self._admin.get(job_id)
        waiting = next((place for place in job.gate.waiting if place.seq == seq), None)
        found = await self._one(job, seq) or waiting
        if found is None:
            raise NotFound(f"job {job_id!r} has no run {seq}")
        return Response(status=200, body=_view(found))

    async def run_now(self, request: Request) -> Response:
        """POST /jobs/{id}/run."""
        known_query(request)
        known_body(request)
        job_id = check_id(request.route["id"])
        return _accepted(await self._handwork.run_now(job_id, self._clock()))

    async def resubmit(self, request: Request) -> Response:
        """POST /jobs/{id}/runs/{seq}/resubmit."""
        known_query(request)
        known_body(request)
        job_id, seq = check_id(request.route["id"]), _seq(request)
        return _accepted(await self._handwork.resubmit(job_id, seq, self._clock()))

    async def cancel(self, request: Request) -> Response:
        """POST /jobs/{id}/runs/{seq}/cancel."""
        known_query(request)
        known_body(request)
        job_id, seq = check_id(request.route["id"]), _seq(request)
        return Response(status=202, body=past_view(await self._handwork.cancel(job_id, seq, self._clock())))

    async def _one(self, job: Job, seq: int) -> Listed | None:
        return await self._list.one(job.id, seq, history_limit_of(job.core.definition))


def _view(listed: Listed | Waiting) -> dict[str, Any]:
    if isinstance(listed, Waiting):
        return waiting_view(listed)
    if isinstance(listed, Idle):
        return idle_view(listed)
    return run_view(listed) if isinstance(listed, Run) else past_view(listed)


def _accepted(started: Run | Waiting) -> Response:
    body = run_view(started) if isinstance(started, Run) else waiting_view(started)
    return Response(status=202, body=body)


def _seq(request: Request) -> int:
    return _number(request.route["seq"], Fault("seq", "must be a run's number"))


def _continuation(request: Request) -> int:
    """The number of the newest run to be shown."""
    given = request.query.get("continuation")
    return MAX_SEQ if given is None else _number(given, Fault("continuation", "is none that this app gave"))


def _number(text: str, fault: Fault) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= len(text) <= 10):
        raise InvalidInput([fault])
    return int(text)
