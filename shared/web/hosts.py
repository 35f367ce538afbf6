"""The routes of hosts: what can run instances of other service types, and the instances it loads and saves."""

import re
from typing import Any, TypeVar

from pydantic import BaseModel

from shared.engine.clock import Clock
from shared.engine.hosting import Hosting
from shared.engine.instances import Delays, InstanceLoader
from shared.engine.saving import Saver
from shared.errors import HostLockExpired, InvalidInput
from shared.jobs.definition import load_definition
from shared.jobs.faults import read_model
from shared.jobs.hostwork import Asked, Registration, Renewal, Saving
from shared.jobs.instance import ANY, read_activation, readable_state
from shared.jobs.model import Run
from shared.jobs.times import duration_text, json_text
from shared.storage.hosts import Host
from shared.web.exchange import Request, Response, known_query, read_json, whole_number

M = TypeVar("M", bound=BaseModel)

MAX_ASKED = 64 * 1024
MAX_SAVE = 1024 * 1024
MAX_WAIT = 30
_HOST = re.compile(r"[0-9a-f]{32}")


class HostRoutes:
    """`/hosts` and what lies below it."""

    def __init__(
        self, hosting: Hosting, loader: InstanceLoader, saver: Saver, delays: Delays, clock: Clock
    ) -> None:
        self._hosting = hosting
        self._loader = loader
        self._saver = saver
        self._delays = delays
        self._clock = clock

    async def register(self, request: Request) -> Response:
        """POST /hosts."""
        host = await self._hosting.register(_body(request, Registration), self._clock())
        return Response(status=201, body=self._view(host))

    async def renew(self, request: Request) -> Response:
        """POST /hosts/{host}/renew: the lease, and the locks on the instances named; `lost` are held no more."""
        asked = _body(request, Renewal)
        host, lost = await self._hosting.renew(_host(request), asked.instances, self._clock())
        names = [{"jobId": each.job_id, "run": each.run, "fencingToken": each.fencing_token} for each in lost]
        return Response(status=200, body=self._view(host) | {"lost": names})

    async def release(self, request: Request) -> Response:
        """DELETE /hosts/{host}."""
        known_query(request)
        await self._hosting.release(_host(request))
        return Response(status=204)

    async def try_load(self, request: Request) -> Response:
        """POST /hosts/{host}/tryLoadRunnable: an instance, or 204 if none is runnable."""
        known_query(request)
        run = await self._loader.try_load(_host(request), self._clock())
        return Response(status=200, body=instance_view(run)) if run else Response(status=204)

    async def load(self, request: Request) -> Response:
        """POST /hosts/{host}/load: the instance named."""
        asked = _body(request, Asked)
        run = await self._loader.load(_host(request), asked, self._delays, self._clock)
        return Response(status=200, body=instance_view(run))

    async def save(self, request: Request) -> Response:
        """POST /hosts/{host}/save: the instance's version from now on."""
        asked = _body(request, Saving, MAX_SAVE)
        version = await self._saver.save(_host(request), asked, self._clock())
        return Response(status=200, body={"jobId": asked.job_id, "run": asked.run, "version": version})

    async def events(self, request: Request) -> Response:
        """GET /hosts/{host}/events: those raised for the host, as soon as there are any, at most `wait` seconds
        later."""
        known_query(request, "wait")
        wait = whole_number(request, "wait", 20, 0, MAX_WAIT)
        names = await self._hosting.events(_host(request), wait, self._clock())
        return Response(status=200, body={"value": [_event(name) for name in names]})

    async def query_activatable(self, request: Request) -> Response:
        """POST /hosts/{host}/queryActivatable: the activation parameters of what nobody alive can load."""
        known_query(request)
        found = await self._hosting.query_activatable(_host(request), self._clock())
        return Response(
            status=200,
            body={
                "value": [
                    {"serviceType": name, **parameters.view()}
                    for name, several in sorted(found.items())
                    for parameters in several
                ]
            },
        )

    def _view(self, host: Host) -> dict[str, Any]:
        view: dict[str, Any] = {"id": host.id, "serviceTypes": list(host.service_types)}
        if host.activation_type:
            view["activationType"] = host.activation_type
        period = duration_text(self._hosting.renewal_period)
        return view | {"lockedUntil": json_text(host.locked_until), "renewalPeriod": period}


def instance_view(run: Run) -> dict[str, Any]:
    """An instance as the host that has loaded it gets it."""
    view: dict[str, Any] = {
        "jobId": run.job_id,
        "run": run.seq,
        "serviceType": run.service_type,
        "version": run.version,
        "fencingToken": run.fencing_token,
        "idempotencyKey": run.idempotency_key(run.service_type),
        "lockedUntil": json_text(run.locked_until) if run.locked_until else None,
        "scheduledTime": json_text(run.scheduled),
        "startTime": json_text(run.started_or_fired),
        "attempt": run.takeovers + 1,
        "parameters": load_definition(run.definition).parameters,
        "state": readable_state(run),
        "activation": read_activation(run.activation).view() if run.activation else None,
    }
    if run.window:
        view |= {"windowStartTime": json_text(run.window[0]), "windowEndTime": json_text(run.window[1])}
    return view


def _event(name: str) -> dict[str, str]:
    kind = "HasActivatableWorkflow" if name == ANY else "HasRunnableWorkflow"
    return {"type": kind, "serviceType": name}


def _host(request: Request) -> str:
    """The host in the path. What is no host's id is told as a host that is not there."""
    text = request.route["host"]
    if not _HOST.fullmatch(text):
        raise HostLockExpired("there is no such host: register")
    return text


def _body(request: Request, model: type[M], limit: int = MAX_ASKED) -> M:
    known_query(request)
    plain = read_json(request, limit) if request.body else {}
    value, faults = read_model(model, plain)
    if faults or value is None:
        raise InvalidInput(faults)
    return value
