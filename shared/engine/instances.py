"""Loading: hosts elsewhere lock and get instances of their service types."""

import asyncio
import logging
import math
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from shared.engine.clock import Clock
from shared.engine.contention import TRIES, pause
from shared.engine.hosting import Hosting
from shared.engine.lease import locked
from shared.engine.loading import Loader
from shared.engine.logs import about
from shared.errors import Conflict, InstanceLocked, InstancePersistenceError, NotFound, Unavailable
from shared.jobs.definition import load_definition
from shared.jobs.hostwork import Asked
from shared.jobs.instance import ANY, readable_state
from shared.jobs.model import Idle, Run
from shared.storage.hosts import Host, Hosts
from shared.storage.loads import Loads
from shared.storage.runs import SKEW, Runs
from shared.storage.table import Refused

log = logging.getLogger("timerjobs.execute")

# How long one request may wait for an instance that is locked.
PATIENCE = 30.0

Delays = Callable[[], Iterator[float]]


def no_retry() -> Iterator[float]:
    """InstanceLockedExceptionAction NoRetry: the fault is told at once."""
    yield from ()


def basic_retry() -> Iterator[float]:
    """BasicRetry: again every 5 seconds."""
    while True:
        yield 5.0


def aggressive_retry() -> Iterator[float]:
    """AggressiveRetry: again after 100 ms times a random number that may be greater each time, at most 10 s."""
    most = 1.0
    while True:
        most = min(most * 2, 100.0)
        yield 0.1 * random.uniform(1.0, most)


RETRIES: dict[str, Delays] = {
    "NoRetry": no_retry,
    "BasicRetry": basic_retry,
    "AggressiveRetry": aggressive_retry,
}


class InstanceLoader:
    """Loads instances for hosts, each by one conditional transaction. Every method raises HostLockExpired."""

    def __init__(
        self, hosting: Hosting, hosts: Hosts, loads: Loads, loader: Loader, runs: Runs, partitions: Sequence[str]
    ) -> None:
        self._hosting = hosting
        self._hosts = hosts
        self._loads = loads
        self._loader = loader
        self._runs = runs
        self._partitions = partitions
        self._lease = hosting.lease

    async def try_load(self, host_id: str, now: datetime) -> Run | None:
        """TryLoadRunnableWorkflow: locks and gives a runnable instance of one of the host's types, or none.

        Raises InstancePersistenceError for a generic host.

        1. Clears the types' events: what comes to wait after the search raises them again.
        2. Looks for what waits, partition by partition from any one on, the oldest of each first.
        3. Locks it, at the version read; one that another host took is passed over. A crash after the commit,
           or its answer lost: the lock runs out, since the host does not name the instance when it renews.
        """
        host = await self._hosting.live(host_id, now)
        if ANY in host.service_types:
            raise InstancePersistenceError("a generic host activates others; it loads nothing itself")
        for name in random.sample(host.service_types, len(host.service_types)):
            await self._hosts.clear(name)
            for partition in random.sample(self._partitions, len(self._partitions)):
                if loaded := await self._first(partition, name, host, now):
                    return loaded
        return None

    async def _first(self, partition: str, service_type: str, host: Host, now: datetime) -> Run | None:
        for _, job_id, seq in await self._loads.keys(partition, service_type):
            waiting = await self._loads.get(partition, service_type, job_id, seq)
            if waiting is None or not _is_readable(waiting):
                continue
            if loaded := await self._loader.take(waiting, host.id, now, now + self._lease):
                return loaded
        return None

    async def load(self, host_id: str, asked: Asked, delays: Delays, clock: Clock) -> Run:
        """LoadWorkflow: locks and gives this very instance, also before its pending timer is due.

        Raises NotFound; Conflict if it is of a type the host is not for; InstanceLocked if another host holds it
        and still does after the `delays`, at most 30 s.
        """
        host = await self._hosting.live(host_id, clock())
        delays_left, waited, races = delays(), 0.0, 0
        while races < TRIES:
            await pause(races)
            run, idle = await self._found(asked, host)
            now = clock()
            if run.owner == host.id:  # by a request whose answer was lost
                if held := await self._relocked(replace(run, locked_until=now + self._lease)):
                    return held
                races += 1
                continue
            if idle is None and run.locked_until is not None and now <= run.locked_until + SKEW:
                delay = next(delays_left, math.inf)
                waited += delay
                if waited > PATIENCE:
                    raise InstanceLocked(f"run {asked.run} of job {asked.job_id!r} is held by another host")
                await asyncio.sleep(delay)
            elif taken := await self._taken(run, idle, host, now):
                return taken
            else:
                races += 1
        raise Unavailable(f"run {asked.run} of job {asked.job_id!r} keeps being changed")

    async def _found(self, asked: Asked, host: Host) -> tuple[Run, Idle | None]:
        """The run and, if it is in nobody's memory, its row. Raises NotFound, Conflict."""
        run = await self._runs.get(asked.job_id, asked.run)
        idle = None if run else await self._runs.idle(asked.job_id, asked.run)
        run = idle.run if idle else run
        if run is None:
            raise NotFound(f"job {asked.job_id!r} has no run {asked.run} under way")
        if run.service_type not in host.service_types:
            raise Conflict(f"the run is of service type {run.service_type}, which the host is not registered for")
        return run, idle

    async def _taken(self, run: Run, idle: Idle | None, host: Host, now: datetime) -> Run | None:
        """The run, locked for the host, if nobody else was quicker."""
        until = now + self._lease
        if idle is not None:
            return await self._loader.take(idle, host.id, now, until)
        return await self._relocked(locked(run, host.id, now, until))

    async def _relocked(self, wanted: Run) -> Run | None:
        """The run, locked as wanted, unless it has changed."""
        with suppress(Refused):
            (run,) = await self._runs.lock(self._runs.partition(wanted.job_id), [wanted])
            return run
        return None


def _is_readable(waiting: Idle) -> bool:
    """Whether a host can be given it: what no version of this app reads stops no other."""
    try:
        readable_state(waiting.run)
        load_definition(waiting.run.definition)
    except (ValueError, KeyError, zlib.error):
        log.exception("a waiting run cannot be read", extra={"action": "load", **about(waiting.run)})
        return False
    return True
