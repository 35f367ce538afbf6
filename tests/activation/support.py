"""What the tests of activation work with: hosts of a service type, and what they ask."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from shared.web.exchange import Response
from tests.harness import NOON, Bench

NIGHTLY = "acme/nightly"


def hosted(every: int = 3600, service_type: str = NIGHTLY, start: datetime | None = NOON, **more: Any) -> Any:
    """A job whose runs are those of a host elsewhere."""
    recurrence: dict[str, Any] = {"frequency": "Second", "interval": every}
    if start:
        recurrence["startTime"] = start.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"serviceType": service_type, "trigger": {"type": "Recurrence", "recurrence": recurrence}} | more


@dataclass
class RemoteHost:
    """A registered host. Each method asks one route, and gives the answer's body; `refused` gives the problem."""

    at: Bench
    id: str
    types: list[str] = field(default_factory=list)

    async def ask(self, route: str, body: Any = None, **query: str) -> Response:
        return await self.at.call(route, "hosts", body=body, query=query, host=self.id)

    async def told(self, route: str, body: Any = None, **query: str) -> Any:
        response = await self.ask(route, body, **query)
        assert response.status in (200, 204), response.body
        return response.body

    async def refused(self, route: str, body: Any = None) -> str:
        """The type of the problem."""
        response = await self.ask(route, body)
        assert response.status >= 400, response.body
        kind: str = response.body["type"]
        return kind

    async def events(self) -> list[str]:
        """The service types of the events that stand now."""
        return [event["serviceType"] for event in (await self.told("events", wait="0"))["value"]]

    async def try_load(self) -> Any:
        """An instance, or None."""
        return await self.told("try_load")

    async def save(self, instance: Any, **more: Any) -> Any:
        return await self.told("save", saving(instance, **more))

    async def renew(self, *instances: Any) -> Any:
        return await self.told("renew", {"instances": [named(each) for each in instances]})


def named(instance: Any) -> dict[str, Any]:
    """An instance as a request names it."""
    return {name: instance[name] for name in ("jobId", "run", "fencingToken")}


def saving(instance: Any, **more: Any) -> dict[str, Any]:
    """A save of an instance as it was loaded."""
    return named(instance) | {"version": instance["version"]} | more


async def host(at: Bench, *types: str, **more: Any) -> RemoteHost:
    """A host that has just registered."""
    body = {"serviceTypes": list(types or (NIGHTLY,))} | more
    response = await at.call("register", "hosts", body=body)
    assert response.status == 201, response.body
    return RemoteHost(at, response.body["id"], list(types or (NIGHTLY,)))


async def fired(at: Bench, job_id: str = "a", **more: Any) -> None:
    """A hosted job whose first run has been fired."""
    await at.create(id=job_id, **hosted(**more))
    await at.dispatch(job_id)


async def lapse(at: Bench, **by: float) -> None:
    """Lets time pass, and detection with what it announces do its part."""
    at.clock.now += timedelta(**by)
    await at.app.detector.tick()
    await at.take_runs()
