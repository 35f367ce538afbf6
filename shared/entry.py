"""What the functions call: this process's scheduler, and its answers in the platform's types."""

import asyncio
import logging
import os
from collections.abc import Callable

import azure.functions as func

from shared.errors import TimerJobsError
from shared.settings import read_settings
from shared.storage.tickets import read_ticket
from shared.web.api import Api, Operation, respond
from shared.web.exchange import Request, Response
from shared.wiring import App, build

log = logging.getLogger("timerjobs")


class _Kept:
    """The scheduler of an event loop, closed when the loop's tasks are ended."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[App] = loop.create_future()
        self.keeping = loop.create_task(self._keep())

    async def _keep(self) -> None:
        try:
            app = await build(read_settings(os.environ))
        except Exception as error:
            self.ready.set_exception(error)
            return
        self.ready.set_result(app)
        try:
            await asyncio.Event().wait()  # until it is cancelled
        finally:
            await app.close()

    @property
    def failed(self) -> bool:
        return self.keeping.done()


UNHEALTHY = Response(status=503, body={"status": "Unhealthy"})

_kept: dict[asyncio.AbstractEventLoop, _Kept] = {}


async def the_app() -> App:
    """This process's scheduler, built at first use; a failed build is tried again by the next call."""
    loop = asyncio.get_running_loop()
    if loop not in _kept or _kept[loop].failed:
        _kept[loop] = _Kept()
    return await asyncio.shield(_kept[loop].ready)


async def answer(
    request: func.HttpRequest,
    route: Callable[[Api], Operation],
    without_app: Response | None = None,
) -> func.HttpResponse:
    """What the API's `route` answers to an HTTP trigger's request.

    `without_app` is the answer where the app cannot be built; a problem, unless given.
    """

    async def operation(asked: Request) -> Response:
        try:
            app = await the_app()
        except TimerJobsError as error:
            if without_app is None:
                raise
            log.error("%s", error, extra={"action": "start"})
            return without_app
        return await route(app.api)(asked)

    return await answer_alone(request, operation)


async def answer_alone(request: func.HttpRequest, operation: Operation) -> func.HttpResponse:
    """What an operation that needs no app answers to an HTTP trigger's request."""
    asked = Request(
        url=request.url,
        headers={name.lower(): value for name, value in request.headers.items()},
        route=dict(request.route_params),
        query=dict(request.params),
        body=request.get_body(),
    )
    given = await respond(operation, asked)
    headers = {"Content-Type": "application/json"} | dict(given.headers)
    return func.HttpResponse(
        given.content(), status_code=given.status, headers=headers, mimetype=headers["Content-Type"]
    )


async def carry_out(message: func.QueueMessage) -> None:
    """What a queue trigger's ticket says."""
    ticket = read_ticket(message.get_body().decode())
    await (await the_app()).dispatcher.carry_out(ticket)


async def detect() -> None:
    """One tick of the timer trigger."""
    await (await the_app()).detector.tick()


async def drop_poison(message: func.QueueMessage) -> None:
    """Logs a ticket that failed again and again. Detection looks at every partition anyway."""
    log.error("a poison ticket is dropped: %r", message.get_body()[:500], extra={"action": "poison", "count": 1})
