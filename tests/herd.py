"""A herd: many jobs due at one second, written straight as the rows that creation writes; and the host's queue
trigger within this process."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import azure.functions as func

from devhost.functions import QueueFunction
from devhost.queues import QueueListener
from devhost.settings import QueueOptions
from shared.jobs.model import Job, State
from shared.jobs.spec import parse_job
from shared.jobs.times import floor_second
from shared.jobs.transitions import created
from shared.storage.jobs import timer_row
from shared.storage.records import job_row
from shared.storage.table import Verb, Write, pack_units
from shared.storage.tickets import Ticket, read_ticket
from shared.wiring import App, Store


@dataclass(frozen=True)
class _New:
    """What creation writes for one job."""

    writes: Sequence[Write]


def new_jobs(bodies: Iterable[dict[str, Any]], now: datetime) -> list[Job]:
    """Jobs as creation makes them at `now`. The bodies are as POST takes them, with an `id`."""
    asked = [parse_job(body, floor_second(now)) for body in bodies]
    return [created(str(each.id), each.definition, State.ENABLED, now) for each in asked]


async def write_jobs(store: Store, jobs: Iterable[Job]) -> None:
    """Writes new jobs in transactions of up to 100 rows, without tickets."""
    units: dict[str, list[_New]] = defaultdict(list)
    for job in jobs:
        units[store.jobs.partition(job.id)].append(_New(_rows(job)))
    await asyncio.gather(*(_write(store, partition, units[partition]) for partition in units))


def _rows(job: Job) -> list[Write]:
    timer = timer_row(job)
    assert timer
    return [Write(Verb.INSERT, job_row(job, "herd")), Write(Verb.INSERT, timer)]


async def _write(store: Store, partition: str, units: list[_New]) -> None:
    for batch in pack_units(units):
        await store.table.commit(partition, [write for unit in batch for write in unit.writes])


@dataclass
class Queue:
    """What a host's queue trigger has done: the tickets it received, and how many are being carried out."""

    received: list[Ticket] = field(default_factory=list)
    in_work: int = 0

    async def quiet(self, store: Store) -> None:
        """Waits until the first tickets have come, and nothing is carried out nor waits for an executor."""
        done = False
        while not done:
            await asyncio.sleep(0.1)
            done = bool(self.received) and not self.in_work and await nothing_executes(store)


@asynccontextmanager
async def listening(app: App) -> AsyncIterator[Queue]:
    """The host's queue trigger for this app, as host.json sets it; left when what it received is carried out."""
    queue = Queue()

    async def carry_out(msg: func.QueueMessage) -> None:
        ticket = read_ticket(msg.get_body().decode())
        queue.received.append(ticket)
        queue.in_work += 1
        try:
            await app.dispatcher.carry_out(ticket)
        finally:
            queue.in_work -= 1

    settings = app.settings
    listener = QueueListener(
        QueueFunction("dispatch", carry_out, "msg", settings.queue_name),
        settings.account.connection,
        QueueOptions(max_polling_interval=timedelta(seconds=1), visibility_timeout=timedelta(seconds=5)),
    )
    stop = asyncio.Event()
    running = asyncio.create_task(listener.run(stop))
    try:
        yield queue
    finally:
        stop.set()
        await running


async def nothing_executes(store: Store) -> bool:
    """Whether no run is executing or waits for an executor."""
    partitions = store.jobs.partitions
    return not any(await asyncio.gather(*(store.table.scan(p, "run:", "run;", limit=1) for p in partitions)))


async def announce(app: App, due: datetime) -> None:
    """A ticket for `due` in each partition, as whoever writes timers sends them."""
    await asyncio.gather(*(app.store.tickets.announce(p, [due]) for p in app.store.jobs.partitions))
