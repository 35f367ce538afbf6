"""The composition root: the only place that builds clients, and all that works with them."""

import os
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

import aiohttp
from azure.core.exceptions import ResourceExistsError
from azure.core.pipeline.transport import AioHttpTransport, AsyncHttpTransport
from azure.data.tables.aio import TableClient
from azure.storage.queue import TextBase64EncodePolicy
from azure.storage.queue.aio import QueueClient

from shared.engine.actions.auth import Authorizer, parse_identity_targets, parse_secret_hosts
from shared.engine.actions.http import HttpAction
from shared.engine.actions.outcome import Action
from shared.engine.actions.queue import QueueAction, parse_queue_targets
from shared.engine.actions.wait import WaitAction
from shared.engine.activation import GenericHost, Search, Watch
from shared.engine.admin import Admin
from shared.engine.aiming import Aimer
from shared.engine.announce import Announcer
from shared.engine.clock import Clock, utc_now
from shared.engine.crew import Capacity, Workshop
from shared.engine.detect import Detector
from shared.engine.dispatch import Dispatcher, Line
from shared.engine.events import Events
from shared.engine.fire import Firer
from shared.engine.handwork import Handwork
from shared.engine.hosting import GRACE, Hosting
from shared.engine.instances import RETRIES, InstanceLoader
from shared.engine.leave import Leaver
from shared.engine.loading import Loader
from shared.engine.perform import Performer
from shared.engine.policy import Policy
from shared.engine.removal import Remover
from shared.engine.saving import Saver
from shared.engine.workflows import Performers
from shared.errors import Fault, Misconfigured
from shared.settings import STORAGE, Settings
from shared.storage.hosts import Hosts
from shared.storage.jobs import Jobs
from shared.storage.ledger import Ledger
from shared.storage.loads import Loads
from shared.storage.outbox import Outbox
from shared.storage.runs import Runs
from shared.storage.table import Table, service_errors
from shared.storage.tickets import Tickets
from shared.storage.timers import Timers
from shared.web.api import Api
from shared.web.health import HealthRoute, Thresholds
from shared.web.hosts import HostRoutes
from shared.web.jobs import JobRoutes
from shared.web.preview import PreviewRoute
from shared.web.runs import RunRoutes

T = TypeVar("T")

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
    loads: Loads
    hosts: Hosts


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


class _Clients:
    """Storage clients, opened as they are asked for and closed together."""

    def __init__(self, settings: Settings, transport: Callable[[], Transport]) -> None:
        emulated = settings.storage == "UseDevelopmentStorage=true"
        self._connection = EMULATOR if emulated else settings.storage
        self._transport = transport
        self._opened = AsyncExitStack()
        self._queues: dict[str, QueueClient] = {}

    async def close(self) -> None:
        """Closes all."""
        await self._opened.aclose()

    async def table(self, name: str) -> TableClient:
        """The client of a table."""
        with _connection_text():
            client = TableClient.from_connection_string(
                self._connection,
                name,
                transport=self._transport(),
                retry_total=4,
                retry_backoff_factor=0.3,
                retry_backoff_max=5,
            )
        return await self._opened.enter_async_context(client)

    async def queue(self, name: str) -> QueueClient:
        """The client of a queue, one for each name."""
        if name not in self._queues:
            with _connection_text():
                client = QueueClient.from_connection_string(
                    self._connection,
                    name,
                    message_encode_policy=TextBase64EncodePolicy(),
                    transport=self._transport(),
                    retry_total=4,
                    initial_backoff=1,
                    increment_base=1,
                )
            self._queues[name] = await self._opened.enter_async_context(client)
        return self._queues[name]


async def build(
    settings: Settings, *, clock: Clock = utc_now, transport: Callable[[], Transport] = AioHttpTransport
) -> App:
    """Builds the scheduler, with its table and queue made where they are missing.

    `transport` makes what sends a storage client's requests.
    Raises Misconfigured where the settings are wrong or do not fit the table, StoreFailed where storage
    does not answer.
    """
    async with AsyncExitStack() as opened:
        clients = _Clients(settings, transport)
        opened.push_async_callback(clients.close)
        table_client = await clients.table(settings.table_name)
        queue_client = await clients.queue(settings.queue_name)
        session = await opened.enter_async_context(_http_session())
        parts = await _parts(settings, clients, session)
        opened.push_async_callback(parts.authorizer.close)
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
            loads=Loads(table),
            hosts=Hosts(table),
        )
        await store.ledger.agree_on_partitions(settings.partitions)
        return _assemble(settings, store, parts, clock, opened.pop_all())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What the operator's settings make of actions and events."""

    session: aiohttp.ClientSession
    actions: Mapping[str, Action]
    authorizer: Authorizer
    queue_targets: Collection[str]
    outbox: Outbox | None


async def _parts(settings: Settings, clients: _Clients, session: aiohttp.ClientSession) -> _Parts:
    own = settings.queue_name
    targets = _parsed("QUEUE_TARGETS", settings.queue_targets, lambda text: parse_queue_targets(text, own))
    authorizer = Authorizer(
        _parsed("IDENTITY_TARGETS", settings.identity_targets, parse_identity_targets),
        _parsed("SECRET_HOSTS", settings.secret_hosts, parse_secret_hosts),
        os.environ,
    )
    actions: dict[str, Action] = {
        "Http": HttpAction(session, authorizer),
        "Queue": QueueAction(clients.queue, targets, own),
        "Wait": WaitAction(),
    }
    outbox = None
    if settings.events_queue:
        events = await clients.queue(settings.events_queue)
        with service_errors(), suppress(ResourceExistsError):
            await events.create_queue()
        outbox = Outbox(events)
    return _Parts(session=session, actions=actions, authorizer=authorizer, queue_targets=targets, outbox=outbox)


def _http_session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        headers={"User-Agent": "timerjobs"},
        auto_decompress=False,
        # A kept connection may be closed by its other end just as the next request goes out.
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
    )


@contextmanager
def _connection_text() -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # its text may hold a key
        raise Misconfigured([Fault(STORAGE, "is not a storage connection string")]) from error


def _parsed(name: str, text: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise Misconfigured([Fault(name, str(error))]) from error


def _assemble(settings: Settings, store: Store, parts: _Parts, clock: Clock, closing: AsyncExitStack) -> App:
    owner = _owner()
    announcer = Announcer(store.tickets, store.hosts, settings.horizon)
    remover = Remover(store.jobs, store.runs)
    events = Events(parts.outbox)
    policy = Policy(parts.authorizer, parts.queue_targets, settings.queue_name)
    admin = Admin(store.jobs, store.runs, remover, announcer, policy, events, store.hosts)
    keeps = settings.instance_completion_action == "DeleteNothing"
    handwork = Handwork(admin, store.jobs, store.runs, announcer, events, keeps)
    loader = Loader(store.loads, store.runs)
    lease = settings.host_lock_renewal_period + GRACE
    longest_lock = max(settings.lock_duration, lease)
    workshop = Workshop(
        runs=store.runs,
        performer=Performers(Performer(parts.actions, clock), clock),
        leaver=Leaver(store.jobs, store.runs, owner, settings.lock_duration, clock, keeps),
        announcer=announcer,
        events=events,
        capacity=Capacity(settings.max_executing),
        lock_duration=settings.lock_duration,
        longest_lock=longest_lock,
        clock=clock,
    )
    line = Line(
        timers=store.timers,
        tickets=store.tickets,
        announcer=announcer,
        firer=Firer(store.timers, store.runs, Aimer(store.jobs, settings.default_max_lateness), events),
        remover=remover,
        loader=loader,
    )
    search = Search(store.hosts, store.loads, store.jobs.partitions, lease)
    generic = GenericHost(store.hosts, search, parts.session)
    hosting = Hosting(store.hosts, store.runs, search, settings.host_lock_renewal_period)
    detector = Detector(
        store.jobs,
        store.timers,
        store.runs,
        store.ledger,
        store.tickets,
        Watch(store.hosts, search, generic, store.tickets, lease),
        longest_lock=longest_lock,
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
        dispatcher=Dispatcher(line, workshop, owner),
        workshop=workshop,
        detector=detector,
        api=Api(
            jobs=JobRoutes(admin, store.jobs, clock),
            runs=RunRoutes(admin, handwork, store.runs, clock),
            preview=PreviewRoute(clock),
            health=HealthRoute(store.jobs, store.timers, store.ledger, thresholds, clock),
            hosts=HostRoutes(
                hosting,
                InstanceLoader(hosting, store.hosts, store.loads, loader, store.runs, store.jobs.partitions),
                Saver(hosting, admin, handwork, store.runs, announcer),
                RETRIES[settings.instance_locked_exception_action],
                clock,
            ),
        ),
        closing=closing,
    )


def _owner() -> str:
    """A name that no other start of a process has."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{uuid4().hex[:12]}"
