"""The composition root: the only place that builds clients, and all that works with them."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import aiohttp
import azure.functions as func
from azure.core.exceptions import ResourceExistsError
from azure.core.pipeline.transport import AioHttpTransport, AsyncHttpTransport
from azure.data.tables.aio import TableClient
from azure.storage.queue import TextBase64EncodePolicy
from azure.storage.queue.aio import QueueClient

from shared.engine.actions.http import HttpAction
from shared.engine.admin import Admin
from shared.engine.announce import Announcer
from shared.engine.clock import Clock, utc_now
from shared.engine.crew import Capacity, Workshop
from shared.engine.detect import Detector
from shared.engine.dispatch import Dispatcher, Line
from shared.engine.fire import Firer
from shared.engine.perform import Performer
from shared.engine.removal import Remover
from shared.errors import Fault, Misconfigured, TimerJobsError
from shared.settings import STORAGE, Settings, read_settings
from shared.storage.jobs import Jobs
from shared.storage.ledger import Ledger
from shared.storage.runs import Runs
from shared.storage.table import Table, service_errors
from shared.storage.tickets import Tickets, read_ticket
from shared.storage.timers import Timers
from shared.web.api import Api, respond
from shared.web.exchange import Request, Response
from shared.web.health import HealthRoute, Thresholds
from shared.web.jobs import JobRoutes
from shared.web.preview import PreviewRoute

log = logging.getLogger("timerjobs")

Transport = AsyncHttpTransport[Any, Any]

# The storage emulator's published account, which UseDevelopmentStorage=true stands for.
EMULATOR = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
    "QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
    "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """All of storage, for those who look into it as a whole (tests do)."""

    table: Table
    jobs: Jobs
    timers: Timers
    runs: Runs
    ledger: Ledger
    tickets: Tickets


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """The scheduler of one process."""

    settings: Settings
    store: Store
    admin: Admin
    dispatcher: Dispatcher
    workshop: Workshop
    detector: Detector
    api: Api
    closing: AsyncExitStack

    async def close(self) -> None:
        """Closes its clients."""
        await self.closing.aclose()


async def build(
    settings: Settings, *, clock: Clock = utc_now, transport: Callable[[], Transport] = AioHttpTransport
) -> App:
    """Builds the scheduler, with its table and queue made where they are missing.

    `transport` makes what sends a storage client's requests.
    Raises Misconfigured where the settings are wrong or do not fit the table, StoreFailed where storage
    does not answer.
    """
    try:
        table_client, queue_client = _clients(settings, transport)
    except ValueError as error:  # its text may hold a key
        raise Misconfigured([Fault(STORAGE, "is not a storage connection string")]) from error
    async with AsyncExitStack() as opened:
        await opened.enter_async_context(table_client)
        await opened.enter_async_context(queue_client)
        session = await opened.enter_async_context(_http_session(settings))
        for create in (table_client.create_table, queue_client.create_queue):
            with service_errors(), suppress(ResourceExistsError):
                await create()
        table = Table(table_client)
        store = Store(
            table=table,
            jobs=Jobs(table, settings.partitions),
            timers=Timers(table),
            runs=Runs(table, settings.partitions),
            ledger=Ledger(table),
            tickets=Tickets(queue_client, clock),
        )
        await store.ledger.agree_on_partitions(settings.partitions)
        return _assemble(settings, store, session, clock, opened.pop_all())


def _http_session(settings: Settings) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        headers={"User-Agent": "timerjobs"},
        auto_decompress=False,
        connector=aiohttp.TCPConnector(limit=settings.max_executing),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
    )


def _clients(settings: Settings, transport: Callable[[], Transport]) -> tuple[TableClient, QueueClient]:
    connection = EMULATOR if settings.storage == "UseDevelopmentStorage=true" else settings.storage
    table = TableClient.from_connection_string(
        connection,
        settings.table_name,
        transport=transport(),
        retry_total=4,
        retry_backoff_factor=0.3,
        retry_backoff_max=5,
    )
    queue = QueueClient.from_connection_string(
        connection,
        settings.queue_name,
        message_encode_policy=TextBase64EncodePolicy(),
        transport=transport(),
        retry_total=4,
        initial_backoff=1,
        increment_base=1,
    )
    return table, queue


def _assemble(
    settings: Settings, store: Store, session: aiohttp.ClientSession, clock: Clock, closing: AsyncExitStack
) -> App:
    announcer = Announcer(store.tickets, settings.horizon)
    remover = Remover(store.jobs)
    admin = Admin(store.jobs, remover, announcer)
    workshop = Workshop(
        runs=store.runs,
        performer=Performer({"Http": HttpAction(session)}, clock),
        capacity=Capacity(settings.max_executing),
        lock_duration=settings.lock_duration,
        clock=clock,
    )
    line = Line(
        timers=store.timers,
        tickets=store.tickets,
        announcer=announcer,
        firer=Firer(store.timers, store.runs, settings.default_max_lateness),
        remover=remover,
    )
    detector = Detector(
        store.jobs,
        store.timers,
        store.runs,
        store.ledger,
        store.tickets,
        announcer,
        period=settings.detection_period,
        horizon=settings.horizon,
        clock=clock,
    )
    thresholds = Thresholds(
        detection_age=settings.health_max_detection_age,
        overdue=settings.health_max_overdue,
        key=settings.health_key,
    )
    return App(
        settings=settings,
        store=store,
        admin=admin,
        dispatcher=Dispatcher(line, workshop, owner=_owner()),
        workshop=workshop,
        detector=detector,
        api=Api(
            jobs=JobRoutes(admin, store.jobs, store.runs, clock),
            preview=PreviewRoute(clock),
            health=HealthRoute(store.jobs, store.timers, store.ledger, thresholds, clock),
        ),
        closing=closing,
    )


def _owner() -> str:
    """A name that no other start of a process has."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{uuid4().hex[:12]}"


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
    route: Callable[[Api], Callable[[Request], Awaitable[Response]]],
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
