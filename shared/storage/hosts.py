"""Hosts of other service types, the events raised for them, and attempts to activate them, as rows.

They lie in a partition of their own: `host:{id}`, `event:{serviceType}`, `wake:{serviceType}`, and `used`.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from shared.jobs.model import FORMAT_VERSION
from shared.jobs.times import from_row_text, row_text
from shared.storage.formats import check_format, is_newer
from shared.storage.rows import type_of_text, type_text
from shared.storage.table import Refused, Row, Table, Verb, Write

log = logging.getLogger("timerjobs.store")

PARTITION = "hosts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What can run instances of its service types while its lease lasts. `activation_type` is a generic host's."""

    id: str
    service_types: Sequence[str]
    locked_until: datetime
    activation_type: str = ""
    etag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Attempts to activate hosts of a service type: how many in a row, and when the next may be made."""

    service_type: str
    tries: int
    next_at: datetime
    etag: str = ""


@dataclass(slots=True)
class Census:
    """All that is known of hosts. `used`: whether any job ever had a service type but TimerJob; `raised`: the
    service types whose events are raised."""

    used: bool = False
    hosts: list[Host] = field(default_factory=list)
    raised: set[str] = field(default_factory=set)
    wakes: dict[str, Wake] = field(default_factory=dict)


class Hosts:
    """The rows of hosts. An event is raised while its row is there: raising it again changes nothing."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._used = False

    async def census(self) -> Census:
        """All of it, by one reading."""
        census = Census()
        for row in await self._table.scan(PARTITION, " ", "\x7f"):
            try:
                _count(census, row)
            except (KeyError, ValueError, TypeError):
                log.exception("a row of hosts cannot be read: %s", row["RowKey"], extra={"action": "read"})
        return census

    async def use(self) -> None:
        """Notes that there may be jobs of service types but TimerJob, once a process: only then are their runs
        looked for. Call it before the first is created."""
        if not self._used:
            await self._written(Write(Verb.INSERT, {"RowKey": "used", "v": FORMAT_VERSION}))
            self._used = True

    async def get(self, host_id: str) -> Host | None:
        """The host, whether or not its lease has run out. Raises NewerFormat."""
        row = await self._table.get(PARTITION, f"host:{host_id}")
        return _host(row) if row else None

    async def add(self, host: Host) -> None:
        """Registers a host. What was tried to activate its service types is forgotten, since it lives."""
        await self._table.commit(PARTITION, [Write(Verb.PUT, _host_row(host))])
        for name in host.service_types:
            await self.forget_wake(name)

    async def renew(self, host: Host) -> None:
        """Writes a host's lease. Raises Refused if it has changed, or is gone."""
        await self._table.commit(PARTITION, [Write(Verb.REPLACE, _host_row(host), host.etag)])

    async def remove(self, host: Host) -> bool:
        """Takes a host away; False if it has changed, or is gone."""
        return await self._written(Write(Verb.DELETE, {"RowKey": f"host:{host.id}"}, host.etag))

    async def raised(self, service_type: str) -> bool:
        """Whether the type's event is raised."""
        return await self._table.get(PARTITION, _event_key(service_type)) is not None

    async def raise_event(self, service_type: str) -> bool:
        """Raises the type's event; False if it was raised. Call it after what it tells of is committed."""
        return await self._written(Write(Verb.INSERT, {"RowKey": _event_key(service_type), "v": FORMAT_VERSION}))

    async def clear(self, service_type: str) -> None:
        """Clears the type's event, so that it may be raised again. Call it before looking for instances: what
        comes to wait after the look then raises it."""
        await self._written(Write(Verb.DELETE, {"RowKey": _event_key(service_type)}))

    async def forget_wake(self, service_type: str) -> None:
        """Forgets what was tried to activate a service type."""
        await self._written(Write(Verb.DELETE, {"RowKey": _wake_key(service_type)}))

    async def claim(self, wake: Wake) -> bool:
        """Writes an attempt to activate over the version it was read at; False if somebody else did."""
        row = _wake_row(wake.service_type, wake.tries, wake.next_at)
        return await self._written(Write(Verb.REPLACE if wake.etag else Verb.INSERT, row, wake.etag))

    async def _written(self, write: Write) -> bool:
        try:
            await self._table.commit(PARTITION, [write])
        except Refused:
            return False
        return True


def _count(census: Census, row: Row) -> None:
    """Counts a row. Hosts and attempts of a newer format are a newer version's affair."""
    kind, _, name = row["RowKey"].partition(":")
    if kind in ("host", "wake") and is_newer(row):
        return
    if kind == "host":
        census.hosts.append(_host(row))
    elif kind == "event":
        census.raised.add(type_of_text(name))
    elif kind == "wake":
        census.wakes[type_of_text(name)] = _wake(row)
    elif kind == "used":
        census.used = True


def _event_key(service_type: str) -> str:
    return f"event:{type_text(service_type)}"


def _wake_key(service_type: str) -> str:
    return f"wake:{type_text(service_type)}"


def _host_row(host: Host) -> dict[str, object]:
    return {
        "RowKey": f"host:{host.id}",
        "serviceTypes": json.dumps(list(host.service_types)),
        "activationType": host.activation_type,
        "lockedUntil": row_text(host.locked_until),
        "v": FORMAT_VERSION,
    }


def _host(row: Row) -> Host:
    check_format(row)
    return Host(
        id=row["RowKey"].removeprefix("host:"),
        service_types=tuple(json.loads(row["serviceTypes"])),
        activation_type=row["activationType"],
        locked_until=from_row_text(row["lockedUntil"]),
        etag=row["etag"],
    )


def _wake_row(service_type: str, tries: int, next_at: datetime) -> dict[str, object]:
    return {
        "RowKey": _wake_key(service_type),
        "tries": tries,
        "nextAt": row_text(next_at),
        "v": FORMAT_VERSION,
    }


def _wake(row: Row) -> Wake:
    return Wake(
        service_type=type_of_text(row["RowKey"].removeprefix("wake:")),
        tries=row["tries"],
        next_at=from_row_text(row["nextAt"]),
        etag=row["etag"],
    )
