"""Which instances of other service types are runnable or activatable; the generic host that is built in."""

import asyncio
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import aiohttp

from shared.engine.actions import outbound
from shared.engine.workflows import is_own
from shared.jobs.instance import ANY, WAS, Activation, read_activation
from shared.storage.hosts import Census, Host, Hosts, Wake
from shared.storage.loads import Loads
from shared.storage.runs import SKEW
from shared.storage.tickets import Ticket, Tickets

log = logging.getLogger("timerjobs.activate")

FORGET_AFTER = timedelta(hours=1)
BACK_OFF_FIRST = timedelta(seconds=30)
BACK_OFF_LONGEST = timedelta(hours=1)
ANSWER_WITHIN = 10  # seconds
MOST_AT_ONCE = 100


def is_live(host: Host, now: datetime, lease: timedelta) -> bool:
    """Whether others must count a host as living; a lease longer than any was written by a wrong clock."""
    return now - SKEW <= host.locked_until <= now + lease + 2 * SKEW


@dataclass(frozen=True, slots=True)
class Runnable:
    """What waits for hosts: each service type with the partitions its runs wait in; `activatable` are those whose
    runs nobody alive can load."""

    partitions: Mapping[str, Sequence[str]]
    activatable: Sequence[str]


class Search:
    """Finds what waits for hosts, by key range: at a cost of what waits, whatever the number of jobs."""

    def __init__(self, hosts: Hosts, loads: Loads, partitions: Sequence[str], lease: timedelta) -> None:
        self._hosts = hosts
        self._loads = loads
        self._partitions = partitions
        self._lease = lease

    async def runnable(self, census: Census, now: datetime) -> Runnable:
        """The runs that wait, by service type."""
        found: dict[str, list[str]] = {}
        types = await asyncio.gather(*(self._loads.types(partition) for partition in self._partitions))
        for partition, names in zip(self._partitions, types, strict=True):
            for name in names:
                found.setdefault(name, []).append(partition)
        served = self._served(census, now)
        activatable = [name for name in found if not is_own(name) and name not in served]
        return Runnable(found, activatable)

    async def unserved(self, service_types: Iterable[str], now: datetime) -> set[str]:
        """Those of the service types that neither a workflow of the app nor a living host has. One request, if
        there are any but the app's own."""
        foreign = {name for name in service_types if not is_own(name)}
        return foreign - self._served(await self._hosts.census(), now) if foreign else foreign

    def _served(self, census: Census, now: datetime) -> set[str]:
        return {name for host in census.hosts if is_live(host, now, self._lease) for name in host.service_types}

    async def activatable(self, now: datetime) -> dict[str, list[Activation]]:
        """QueryActivatableWorkflows: the activation parameters of the instances that nobody alive can load, by
        service type. The event may be raised again from here on."""
        await self._hosts.clear(ANY)
        return await self.parameters(await self.runnable(await self._hosts.census(), now))

    async def parameters(self, runnable: Runnable) -> dict[str, list[Activation]]:
        """The activation parameters of what is activatable; a service type that has none is left out."""
        found = {}
        for name in runnable.activatable:
            texts = [await self._loads.activations(partition, name) for partition in runnable.partitions[name]]
            parameters = [read_activation(text) for text in sorted({text for some in texts for text in some})]
            if parameters:
                found[name] = parameters
        return found


class GenericHost:
    """The generic host that is built in: it activates hosts by one request to the endpoint that the activation
    parameters name, and again after a growing while if none has registered since."""

    def __init__(self, hosts: Hosts, search: Search, session: aiohttp.ClientSession) -> None:
        self._hosts = hosts
        self._search = search
        self._session = session

    async def serve(self, runnable: Runnable, wakes: Mapping[str, Wake], now: datetime) -> None:
        """Activates hosts of those activatable service types whose turn has come, up to 100 of them.

        1. Clears the event, as whoever asks for the parameters does. A crash after it: it is raised again.
        2. Claims each attempt, with the time of the next one. A crash after it: the next attempt comes then.
        3. Sends the requests. Their answers are logged; what counts is whether a host registers.
        """
        longest = BACK_OFF_LONGEST + 2 * SKEW  # a later time was written by a wrong clock
        waits = {name for name, wake in wakes.items() if now < wake.next_at <= now + longest}
        due = [name for name in runnable.activatable if name not in waits]
        some = random.sample(due, min(len(due), MOST_AT_ONCE))
        parameters = await self._search.parameters(replace(runnable, activatable=some))
        if parameters:
            await self._hosts.clear(ANY)
        known = {name: Wake(service_type=name, tries=0, next_at=now) for name in parameters} | dict(wakes)
        attempts = (self._attempt(known[name], several, now) for name, several in parameters.items())
        await asyncio.gather(*attempts)

    async def _attempt(self, wake: Wake, several: Sequence[Activation], now: datetime) -> None:
        """One request; each attempt in a row goes to the next of the endpoints that instances name."""
        pause = min(BACK_OFF_FIRST * 2 ** min(wake.tries, 10), BACK_OFF_LONGEST)
        if await self._hosts.claim(replace(wake, tries=wake.tries + 1, next_at=now + pause)):
            await self._activate(wake.service_type, several[wake.tries % len(several)])

    async def _activate(self, service_type: str, activation: Activation) -> None:
        body = {"activationType": WAS, "serviceType": service_type} | activation.view()
        try:
            async with (
                asyncio.timeout(ANSWER_WITHIN),
                self._session.post(activation.endpoint, json=body, allow_redirects=False) as answer,
            ):
                told = f"its endpoint answered {answer.status}"
        except (aiohttp.ClientError, OSError, ValueError, outbound.Refused) as error:
            told = f"{type(error).__name__}: {error}"
        log.info("activated %s: %s", service_type, told, extra={"action": "activate", "type": service_type})


class Watch:
    """The part of detection that concerns hosts."""

    def __init__(
        self, hosts: Hosts, search: Search, generic: GenericHost, tickets: Tickets, lease: timedelta
    ) -> None:
        self._hosts = hosts
        self._search = search
        self._generic = generic
        self._tickets = tickets
        self._lease = lease

    async def cycle(self, now: datetime) -> None:
        """Raises the events of what is runnable, and of what is activatable; lets the generic host do its part.

        One request while no job ever had a service type but TimerJob; else one more for each partition, and for
        each service type that waits there. A crash anywhere: the next cycle does the same again.
        """
        census = await self._hosts.census()
        await self._forget(census, now)
        if not census.used:
            return
        runnable = await self._search.runnable(census, now)
        for name in census.wakes.keys() - runnable.partitions.keys():
            await self._hosts.forget_wake(name)
        for name, partitions in runnable.partitions.items():
            if is_own(name):
                for partition in partitions:
                    await self._tickets.send(Ticket(partition))
            elif name not in census.raised:
                await self._raise(name)
        if runnable.activatable:
            if ANY not in census.raised:
                await self._raise(ANY)
            generic = [host for host in census.hosts if ANY in host.service_types]
            if not any(is_live(host, now, self._lease) for host in generic):
                await self._generic.serve(runnable, census.wakes, now)

    async def _raise(self, service_type: str) -> None:
        if await self._hosts.raise_event(service_type):
            what = "activatable" if service_type == ANY else "runnable"
            log.info("%s has %s instances", service_type, what, extra={"action": "raise", "type": service_type})

    async def _forget(self, census: Census, now: datetime) -> None:
        for host in census.hosts:
            if host.locked_until < now - FORGET_AFTER:
                await self._hosts.remove(host)
