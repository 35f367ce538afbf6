"""The API as a whole: its routes, and what becomes of an error."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import uuid4

from shared.errors import TimerJobsError
from shared.web.exchange import Request, Response, problem
from shared.web.health import HealthRoute
from shared.web.hosts import HostRoutes
from shared.web.jobs import JobRoutes
from shared.web.preview import PreviewRoute
from shared.web.runs import RunRoutes

log = logging.getLogger("timerjobs.web")

Operation = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The routes of the HTTP API."""

    jobs: JobRoutes
    runs: RunRoutes
    preview: PreviewRoute
    health: HealthRoute
    hosts: HostRoutes


async def respond(operation: Operation, request: Request) -> Response:
    """The operation's answer, or its error as a problem; an error of ours is logged and told by its number."""
    try:
        return await operation(request)
    except TimerJobsError as error:
        if error.status >= 500:
            log.warning("%s", error, extra={"action": "answer"})
        return problem(error)
    except Exception:
        number = uuid4().hex
        log.exception("error %s while answering", number, extra={"action": "answer"})
        return problem(TimerJobsError(f"an error of the scheduler's own; its log has it as {number}"))
