"""Hosts elsewhere: registered with a lease, renewed, released; what they are told."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

from shared.engine.activation import Search
from shared.engine.contention import TRIES, pause
from shared.errors import HostLockExpired, InstancePersistenceError
from shared.jobs.hostwork import Held, Registration
from shared.jobs.instance import ANY, WAS, Activation
from shared.jobs.model import Run
from shared.storage.hosts import Host, Hosts
from shared.storage.runs import Runs
from shared.storage.table import Refused

# A lock lasts this much longer than the period in which it is to be renewed.
GRACE = timedelta(seconds=30)
LOOK_EVERY = 1.0  # seconds, while a host waits for an event


class Hosting:
    """What hosts ask for themselves. `lease` is how long a host's locks last: its renewal period and 30 s."""

    def __init__(self, hosts: Hosts, runs: Runs, search: Search, renewal_period: timedelta) -> None:
        self._hosts = hosts
        self._runs = runs
        self._search = search
        self.renewal_period = renewal_period
        self.lease = renewal_period + GRACE

    async def register(self, asked: Registration, now: datetime) -> Host:
        """A new host, living until its lease runs out. Raises InstancePersistenceError for an activation type
        other than WAS."""
        asked.check_activation_type()
        host = Host(
            id=new_host_id(),
            service_types=tuple(dict.fromkeys(asked.service_types)),
            activation_type=asked.activation_type or "",
            locked_until=now + self.lease,
        )
        await self._hosts.add(host)
        return host

    async def live(self, host_id: str, now: datetime) -> Host:
        """The host, while its lease lasts. Raises HostLockExpired."""
        host = await self._hosts.get(host_id)
        if host is None or host.locked_until <= now:
            raise HostLockExpired("the host's lease has run out, or it never registered: register anew")
        return host

    async def renew(self, host_id: str, held: Sequence[Held], now: datetime) -> tuple[Host, list[Held]]:
        """Prolongs the host's lease and its locks on the instances it names; gives it, and which of them are its
        own no more. Raises HostLockExpired: what has run out cannot be renewed."""
        for attempt in range(TRIES):
            await pause(attempt)
            host = await self.live(host_id, now)
            host = replace(host, locked_until=now + self.lease)
            with suppress(Refused):
                await self._hosts.renew(host)
                break
        else:
            raise HostLockExpired("the host keeps being changed")
        kept = await asyncio.gather(*(self._relocked(host, each) for each in held))
        return host, [each for each, is_kept in zip(held, kept, strict=True) if not is_kept]

    async def _relocked(self, host: Host, held: Held) -> bool:
        for attempt in range(TRIES):
            await pause(attempt)
            run = await self._runs.get(held.job_id, held.run)
            if not is_held(run, host.id, held.fencing_token) or run is None:
                return False
            with suppress(Refused):
                await self._runs.lock(
                    self._runs.partition(run.job_id), [replace(run, locked_until=host.locked_until)]
                )
                return True
        return False

    async def release(self, host_id: str) -> None:
        """Ends the host's lease, if it has one. What it still holds waits for its locks to run out."""
        for attempt in range(TRIES):
            await pause(attempt)
            host = await self._hosts.get(host_id)
            if host is None or await self._hosts.remove(host):
                return

    async def events(self, host_id: str, wait: float, now: datetime) -> list[str]:
        """The service types of the host whose events are raised; `Any` stands for HasActivatableWorkflow.

        Waits up to `wait` seconds for the first. An event stands, and is told to every host of its type that
        asks, until it is cleared by the host's turn. Raises HostLockExpired.
        """
        host = await self.live(host_id, now)
        loop = asyncio.get_running_loop()
        end = loop.time() + wait
        while True:
            raised = await self._raised(host.service_types)
            left = end - loop.time()
            if raised or left <= 0:
                return raised
            await asyncio.sleep(min(LOOK_EVERY, left))

    async def _raised(self, names: Iterable[str]) -> list[str]:
        names = list(names)
        raised = await asyncio.gather(*(self._hosts.raised(name) for name in names))
        return [name for name, is_raised in zip(names, raised, strict=True) if is_raised]

    async def query_activatable(self, host_id: str, now: datetime) -> dict[str, list[Activation]]:
        """QueryActivatableWorkflows, for a generic host. Raises HostLockExpired; InstancePersistenceError for any
        other host."""
        host = await self.live(host_id, now)
        if ANY not in host.service_types:
            raise InstancePersistenceError(f"only a generic host (service type {ANY}, {WAS}) may ask this")
        return await self._search.activatable(now)


def new_host_id() -> str:
    """An id that no other host has."""
    return uuid4().hex


def is_held(run: Run | None, host_id: str, fencing_token: int) -> bool:
    """Whether the host holds the run by this very lock."""
    return run is not None and (run.owner, run.fencing_token) == (host_id, fencing_token)
