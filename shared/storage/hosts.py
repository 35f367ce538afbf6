"""Hosts of other service types, the events raised for them, and attempts to activate them, as rows.

They lie in a partition of their own: `host:{id}`, `event:{serviceType}`, `wake:{serviceType}`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from shared.jobs.times import from_row_text, row_text
from shared.storage.rows import type_of_text, type_text
from shared.storage.table import Refused, Row, Table, Verb, Write

PARTITION = "hosts"
TRIES = 10


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
    """All that is known of hosts. `raised` has each service type that any job ever had, and whether its event is
    raised."""

    hosts: list[Host] = field(default_factory=list)
    raised: dict[str, bool] = field(default_factory=dict)
    wakes: dict[str, Wake] = field(default_factory=dict)


class Hosts:
    """The rows of hosts. An event is raised until it is cleared, and raising it again changes nothing."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: set[str] = set()

    async def census(self) -> Census:
        """All of it, by one reading."""
        census = Census()
        for row in await self._table.scan(PARTITION, " ", "\x7f"):
            kind, _, name = row["RowKey"].partition(":")
            if kind == "host":
                census.hosts.append(_host(row))
            elif kind == "event":
                census.raised[type_of_text(name)] = row["raised"]
            elif kind == "wake":
                census.wakes[type_of_text(name)] = _wake(row)
        return census

    async def get(self, host_id: str) -> Host | None:
        """The host, whether or not its lease has run out."""
        row = await self._table.get(PARTITION, f"host:{host_id}")
        return _host(row) if row else None

    async def add(self, host: Host) -> None:
        """Registers a host. What was tried to activate its service types is forgotten, since it lives."""
        await self._table.commit(
            PARTITION,
            [Write(Verb.PUT, _host_row(host))]
            + [Write(Verb.PUT, _wake_row(name, 0, host.locked_until)) for name in host.service_types],
        )

    async def renew(self, host: Host) -> None:
        """Writes a host's lease. Raises Refused if it has changed, or is gone."""
        await self._table.commit(PARTITION, [Write(Verb.REPLACE, _host_row(host), host.etag)])

    async def remove(self, host: Host) -> None:
        """Takes a host away. Raises Refused if it has changed, or is gone."""
        await self._table.commit(PARTITION, [Write(Verb.DELETE, {"RowKey": f"host:{host.id}"}, host.etag)])

    async def know(self, service_type: str) -> None:
        """Notes that jobs of this service type may exist, once a process: only then are its runs looked for."""
        if service_type in self._known:
            return
        if await self._event(service_type) is None:
            await self._set(service_type, False, None)
        self._known.add(service_type)

    async def raised(self, service_type: str) -> bool:
        """Whether the type's event is raised."""
        row = await self._event(service_type)
        return bool(row and row["raised"])

    async def raise_event(self, service_type: str) -> bool:
        """Raises the type's event; False if it was raised, or somebody else changed it just now."""
        row = await self._event(service_type)
        if row and row["raised"]:
            return False
        return await self._set(service_type, True, row)

    async def clear(self, service_type: str) -> None:
        """Clears the type's event, so that it may be raised again. Call it before looking for instances: what
        comes to wait after the look then raises it."""
        for _ in range(TRIES):
            row = await self._event(service_type)
            if row is None or not row["raised"] or await self._set(service_type, False, row):
                return

    async def claim(self, wake: Wake) -> bool:
        """Writes an attempt to activate over the version it was read at; False if somebody else did."""
        row = _wake_row(wake.service_type, wake.tries, wake.next_at)
        return await self._written(Write(Verb.REPLACE if wake.etag else Verb.INSERT, row, wake.etag))

    async def _event(self, service_type: str) -> Row | None:
        return await self._table.get(PARTITION, f"event:{type_text(service_type)}")

    async def _set(self, service_type: str, raised: bool, old: Row | None) -> bool:
        row = {"RowKey": f"event:{type_text(service_type)}", "raised": raised}
        return await self._written(Write(Verb.REPLACE, row, old["etag"]) if old else Write(Verb.INSERT, row))

    async def _written(self, write: Write) -> bool:
        try:
            await self._table.commit(PARTITION, [write])
        except Refused:
            return False
        return True


def _host_row(host: Host) -> dict[str, object]:
    return {
        "RowKey": f"host:{host.id}",
        "serviceTypes": json.dumps(list(host.service_types)),
        "activationType": host.activation_type,
        "lockedUntil": row_text(host.locked_until),
    }


def _host(row: Row) -> Host:
    return Host(
        id=row["RowKey"].removeprefix("host:"),
        service_types=tuple(json.loads(row["serviceTypes"])),
        activation_type=row["activationType"],
        locked_until=from_row_text(row["lockedUntil"]),
        etag=row["etag"],
    )


def _wake_row(service_type: str, tries: int, next_at: datetime) -> dict[str, object]:
    return {"RowKey": f"wake:{type_text(service_type)}", "tries": tries, "nextAt": row_text(next_at)}


def _wake(row: Row) -> Wake:
    return Wake(
        service_type=type_of_text(row["RowKey"].removeprefix("wake:")),
        tries=row["tries"],
        next_at=from_row_text(row["nextAt"]),
        etag=row["etag"],
    )
