"""The routes of a job's runs."""

from typing import Any

from shared.engine.admin import Admin
from shared.engine.clock import Clock
from shared.engine.handwork import Handwork
from shared.errors import Fault, InvalidInput, NotFound
from shared.jobs.definition import load_definition
from shared.jobs.identity import check_id
from shared.jobs.model import Run, Waiting
from shared.storage.runs import Runs
from shared.web.exchange import Request, Response, known_body, known_query
from shared.web.views import idle_view, past_view, run_view, waiting_view


class RunRoutes:
    """`/jobs/{id}/run`, `/jobs/{id}/runs` and what lies below it."""

    def __init__(self, admin: Admin, handwork: Handwork, runs: Runs, clock: Clock) -> None:
        self._admin = admin
        self._handwork = handwork
        self._runs = runs
        self._clock = clock

    async def list(self, request: Request) -> Response:
        """GET /jobs/{id}/runs: newest first, those executing and waiting included."""
        known_query(request)
        views = await self._views(check_id(request.route["id"]))
        return Response(status=200, body={"value": [views[seq] for seq in sorted(views, reverse=True)]})

    async def get(self, request: Request) -> Response:
        """GET /jobs/{id}/runs/{seq}."""
        known_query(request)
        job_id, seq = check_id(request.route["id"]), _seq(request)
        views = await self._views(job_id)
        if seq not in views:
            raise NotFound(f"job {job_id!r} has no run {seq}")
        return Response(status=200, body=views[seq])

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

    async def _views(self, job_id: str) -> dict[int, dict[str, Any]]:
        """Every run by its number. What changes state while it is read appears in its later one."""
        job = await self._admin.get(job_id)
        limit = load_definition(job.core.definition).history_limit
        views = {place.seq: waiting_view(place) for place in job.gate.waiting}
        views |= {idle.run.seq: idle_view(idle) for idle in await self._runs.idle_of_job(job_id)}
        views |= {run.seq: run_view(run) for run in await self._runs.of_job(job_id)}
        return views | {record.seq: past_view(record) for record in (await self._runs.history(job_id))[:limit]}


def _accepted(started: Run | Waiting) -> Response:
    body = run_view(started) if isinstance(started, Run) else waiting_view(started)
    return Response(status=202, body=body)


def _seq(request: Request) -> int:
    text = request.route["seq"]
    if not (text.isascii() and text.isdigit() and 1 <= len(text) <= 10):
        raise InvalidInput([Fault("seq", "must be a run's number")])
    return int(text)
