"""The API as a whole: its routes, and what becomes of an error."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from shared.web.bulk import BulkRoute
from shared.web.exchange import Request, Response, problem, told_error
from shared.web.health import HealthRoute
from shared.web.hosts import HostRoutes
from shared.web.jobs import JobRoutes
from shared.web.preview import PreviewRoute
from shared.web.runs import RunRoutes
from shared.web.template import TemplateRoute

Operation = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The routes of the HTTP API."""

    jobs: JobRoutes
    bulk: BulkRoute
    runs: RunRoutes
    template: TemplateRoute
    preview: PreviewRoute
    health: HealthRoute
    hosts: HostRoutes


async def respond(operation: Operation, request: Request) -> Response:
    """The operation's answer, or its error as a problem; an error of ours is logged and told by its number."""
    try:
        return await operation(request)
    except Exception as error:
        return problem(told_error(error))
