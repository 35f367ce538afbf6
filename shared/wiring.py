"""The composition root: builds all of the app, and what works with what."""

import logging
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

import aiohttp
from azure.core.exceptions import ResourceExistsError
from azure.core.pipeline.transport import AioHttpTransport

from shared.clients import Clients
from shared.engine.actions.auth import (
    Authorizer,
    CredentialFactory,
    managed_identity,
    parse_identity_targets,
    parse_secret_hosts,
)
from shared.engine.actions.connections import Connections
from shared.engine.actions.http import HttpAction
from shared.engine.actions.outbound import GuardedConnector, Lookups, Outbound, identity_endpoints, parse_places
from shared.engine.actions.outcome import Action
from shared.engine.actions.queue import QueueAction, parse_queue_targets
from shared.engine.actions.wait import WaitAction
from shared.engine.activation import GenericHost, Search, Watch
from shared.engine.admin import Admin
from shared.engine.aiming import Aimer
from shared.engine.announce import Announcer
from shared.engine.bulk import Bulk
from shared.engine.clock import Clock, utc_now
from shared.engine.crew import Workshop
from shared.engine.detect import Detector
from shared.engine.dispatch import Dispatcher, Line
from shared.engine.events import Events
from shared.engine.fire import Firer
from shared.engine.handwork import Handwork
from shared.engine.hosting import GRACE, Hosting
from shared.engine.instances import RETRIES, InstanceLoader
from shared.engine.invocations import Invocations
from shared.engine.leave import Leaver
from shared.engine.loading import Loader
from shared.engine.perform import Performer
from shared.engine.policy import Policy
from shared.engine.removal import Remover
from shared.engine.saving import Saver
from shared.engine.slots import Slots
from shared.engine.taking import Taker
from shared.engine.workflows import Performers
from shared.errors import Fault, Misconfigured
from shared.jobs.limits import Limits
from shared.settings import Account, Settings
from shared.storage.hosts import Hosts
from shared.storage.jobs import Jobs
from shared.storage.ledger import Ledger
from shared.storage.loads import Loads
from shared.storage.outbox import Outbox
from shared.storage.run_list import RunList
from shared.storage.runs import Runs
from shared.storage.table import Table, service_errors
from shared.storage.tickets import Tickets
from shared.storage.timers import Timers
from shared.storage.transport import Transport
from shared.web.api import Api
from shared.web.bulk import BulkRoute
from shared.web.health import HealthRoute, Thresholds
from shared.web.hosts import HostRoutes
from shared.web.jobs import JobRoutes
from shared.web.preview import PreviewRoute
from shared.web.runs import RunRoutes
from shared.web.template import TemplateRoute, read_template_action

T = TypeVar("T")

# The client libraries tell of each request at level INFO, at length.
logging.getLogger("azure").setLevel(logging.WARNING)

MAX_ANSWER_HEADERS = 128
"""An answer with more of them, or one longer than 8,190 bytes, is a fault of the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """All of storage, for those who look into it as a whole (tests do)."""

    table: Table
    jobs: Jobs
    timers: Timers
    runs: Runs
    run_list: RunList
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


async def build(
    settings: Settings, *, clock: Clock = utc_now, transport: Callable[[], Transport] = AioHttpTransport
) -> App:
    """Builds the scheduler, with its table and queue made where they are missing.

    `transport` makes what sends a storage client's requests.
    Raises Misconfigured where the settings are wrong or do not fit the table, StoreFailed where storage
    does not answer.
    """
    async with AsyncExitStack() as opened:
        clients = Clients(settings.account, transport)
        opened.push_async_callback(clients.close)
        table_client = await clients.table(settings.table_name)
        queue_client = await clients.queue(settings.queue_name)
        outbound = _outbound(settings, table_client.url, queue_client.url)
        lookups = Lookups(settings.max_executing)
        opened.push_async_callback(lookups.close)
        session = await opened.enter_async_context(_http_session(outbound, lookups))
        parts = await _parts(settings, clients, session, outbound, clock)
        opened.push_async_callback(parts.authorizer.close)
        for create in (table_client.create_table, queue_client.create_queue):
            with service_errors(), suppress(ResourceExistsError):
                await create()
        table = Table(table_client)
        store = Store(
            table=table,
            jobs=Jobs(table, settings.partitions),
            timers=Timers(table),
            runs=(runs := Runs(table, settings.partitions)),
            run_list=RunList(table, settings.partitions, runs),
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
    policy: Policy
    template_action: Mapping[str, Any] | None
    outbox: Outbox | None


def _outbound(settings: Settings, *own: str) -> Outbound:
    """Where jobs may call: never the app's own storage, or where its identity gives tokens."""
    return Outbound(
        _parsed("OUTBOUND_ALLOW", settings.outbound_allow, parse_places),
        _parsed("OUTBOUND_DENY", settings.outbound_deny, parse_places),
        [*own, *identity_endpoints(os.environ)],
    )


async def _parts(
    settings: Settings, clients: Clients, session: aiohttp.ClientSession, outbound: Outbound, clock: Clock
) -> _Parts:
    own = settings.queue_name
    targets = _parsed("QUEUE_TARGETS", settings.queue_targets, lambda text: parse_queue_targets(text, own))
    authorizer = Authorizer(
        _parsed("IDENTITY_TARGETS", settings.identity_targets, parse_identity_targets),
        _parsed("SECRET_HOSTS", settings.secret_hosts, parse_secret_hosts),
        os.environ,
        own_identity(settings.account),
    )
    actions: dict[str, Action] = {
        "Http": HttpAction(session, Connections(settings.max_connections_per_host), authorizer),
        "Queue": QueueAction(clients.queue, targets, own),
        "Wait": WaitAction(),
    }
    limits = Limits(min_interval=settings.min_interval, max_actions=settings.max_actions)
    policy = Policy(authorizer, outbound, targets, own, limits)
    template_action = read_template_action(settings.template_action, policy, clock())
    outbox = None
    if settings.events_queue:
        events = await clients.queue(settings.events_queue)
        with service_errors(), suppress(ResourceExistsError):
            await events.create_queue()
        outbox = Outbox(events)
    return _Parts(
        session=session,
        actions=actions,
        authorizer=authorizer,
        policy=policy,
        template_action=template_action,
        outbox=outbox,
    )


def own_identity(account: Account) -> CredentialFactory:
    """The identity that jobs mean unless they name one: that by which the app uses its storage."""
    return lambda client_id: managed_identity(client_id or account.client_id or None)


def _http_session(outbound: Outbound, lookups: Lookups) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        headers={"User-Agent": "timerjobs"},
        auto_decompress=False,
        connector=GuardedConnector(outbound, lookups),
        max_headers=MAX_ANSWER_HEADERS,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
    )


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
    admin = Admin(store.jobs, store.runs, remover, announcer, parts.policy, events, store.hosts)
    keeps = settings.instance_completion_action == "DeleteNothing"
    handwork = Handwork(admin, store.jobs, store.runs, store.run_list, announcer, events, keeps)
    loader = Loader(store.loads, store.runs)
    lease = settings.host_lock_renewal_period + GRACE
    longest_lock = max(settings.lock_duration, lease)
    slots = Slots(settings.max_executing, settings.max_executing_per_job)
    workshop = Workshop(
        runs=store.runs,
        performer=Performers(Performer(parts.actions, slots, clock), clock),
        leaver=Leaver(store.jobs, store.runs, slots, owner, settings.lock_duration, clock, keeps),
        announcer=announcer,
        events=events,
        slots=slots,
        lock_duration=settings.lock_duration,
        longest_lock=longest_lock,
        clock=clock,
    )
    aimer = Aimer(store.jobs, store.runs, settings.default_max_lateness, settings.max_waiting_per_job)
    invocations = Invocations()
    closing.push_async_callback(invocations.close)
    line = Line(
        timers=store.timers,
        tickets=store.tickets,
        announcer=announcer,
        firer=Firer(store.timers, store.runs, aimer, events, clock),
        remover=remover,
        taker=Taker(workshop, store.loads, loader, owner, settings.default_max_lateness),
        invocations=invocations,
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
            jobs=JobRoutes(admin, store.jobs, search, clock, settings.max_body),
            bulk=BulkRoute(Bulk(admin, handwork, store.jobs, announcer), clock, settings.max_body),
            runs=RunRoutes(admin, handwork, store.run_list, clock),
            template=TemplateRoute(admin, store.jobs, clock, settings.max_body, parts.template_action),
            preview=PreviewRoute(clock, settings.max_body),
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
