"""The entries of hosts in the table of routes, with examples that follow one another."""

from typing import Any

from shared.web.openapi.examples import HOST, HOSTED, NOON, Example
from shared.web.openapi.parts import Answer, Body, Route

_LATER = "2026-09-08T12:01:00Z"
_OF_HOST = {"host": HOST}
_NAME = {"jobId": HOSTED["id"], "run": 1, "fencingToken": 1000}
_HOST: dict[str, Any] = {
    "id": HOST,
    "serviceTypes": [HOSTED["serviceType"]],
    "lockedUntil": _LATER,
    "renewalPeriod": "PT30S",
}


def _instance(**more: Any) -> dict[str, Any]:
    made = {"serviceType": "acme/nightly", "version": 0, "lockedUntil": _LATER, "scheduledTime": NOON}
    key = "acme.nightly:20260908T120000Z-00000000:run-1:acme/nightly"
    told = {"startTime": NOON, "attempt": 1, "parameters": {"steps": 5}, "state": None, "idempotencyKey": key}
    return _NAME | made | told | {"activation": HOSTED["activation"]} | more


HOST_ROUTES = (
    Route(
        method="POST",
        path="hosts",
        name="register_host",
        says="Register a host of service types, with a lease; or a generic host: `Any`, of activation type `WAS`",
        body=Body(schema="Registration"),
        answers={201: Answer(says="The host", schema="Host")},
        problems=(413, 415),
        examples=(
            Example(title="A host", status=201, body={"serviceTypes": [HOSTED["serviceType"]]}, answer=_HOST),
            Example(
                title="A generic host",
                status=201,
                body={"serviceTypes": ["Any"], "activationType": "WAS"},
                answer=_HOST | {"id": "1" * 32, "serviceTypes": ["Any"], "activationType": "WAS"},
            ),
        ),
    ),
    Route(
        method="GET",
        path="hosts/{host}/events",
        name="host_events",
        says="The events that stand for the host, as soon as there are any",
        parameters=("wait",),
        answers={200: Answer(says="The events; none, if the wait was in vain", schema="HostEvents")},
        problems=(409,),
        examples=(
            Example(
                title="There is something to load",
                status=200,
                path=_OF_HOST,
                query={"wait": "0"},
                answer={"value": [{"type": "HasRunnableWorkflow", "serviceType": "acme/nightly"}]},
            ),
        ),
    ),
    Route(
        method="POST",
        path="hosts/{host}/queryActivatable",
        name="query_activatable",
        says="What no host alive can load, and where one is activated; for generic hosts",
        answers={200: Answer(says="The activation parameters", schema="Activatables")},
        problems=(409,),
        examples=(
            Example(title="A host of the type lives", status=200, path={"host": "1" * 32}, answer={"value": []}),
        ),
    ),
    Route(
        method="POST",
        path="hosts/{host}/tryLoadRunnable",
        name="try_load_runnable",
        says="Lock and get a runnable instance of the host's service types",
        answers={
            200: Answer(says="The instance", schema="Instance"),
            204: Answer(says="None is runnable"),
        },
        problems=(409,),
        examples=(
            Example(title="One", status=200, path=_OF_HOST, answer=_instance()),
            Example(title="None", status=204, path=_OF_HOST),
        ),
    ),
    Route(
        method="POST",
        path="hosts/{host}/renew",
        name="renew_host",
        says="Prolong the host's lease, and its locks on the instances named",
        body=Body(schema="Renewal", required=False),
        answers={200: Answer(says="The host, and what it holds no more", schema="RenewedHost")},
        problems=(409, 413, 415),
        examples=(
            Example(
                title="At work on one",
                status=200,
                path=_OF_HOST,
                body={"instances": [_NAME]},
                answer=_HOST | {"lost": []},
            ),
            Example(title="At work on nothing", status=200, path=_OF_HOST, answer=_HOST | {"lost": []}),
        ),
    ),
    Route(
        method="POST",
        path="hosts/{host}/save",
        name="save_instance",
        says="Save an instance; unlock or complete it. The very same save again changes nothing",
        body=Body(schema="Saving"),
        answers={200: Answer(says="Its version from now on", schema="Saved")},
        problems=(409, 412, 413, 415),
        examples=(
            Example(
                title="Half-way",
                status=200,
                path=_OF_HOST,
                body=_NAME | {"version": 0, "state": {"done": 2}},
                answer={"jobId": HOSTED["id"], "run": 1, "version": 1},
            ),
        ),
    ),
    Route(
        method="POST",
        path="hosts/{host}/load",
        name="load_instance",
        says="Lock and get this very instance, also before its pending timer is due",
        body=Body(schema="Asked"),
        answers={200: Answer(says="The instance", schema="Instance")},
        problems=(404, 409, 413, 415),
        examples=(
            Example(
                title="By its number",
                status=200,
                path=_OF_HOST,
                body={"jobId": HOSTED["id"], "run": 1},
                answer=_instance(version=1, state={"done": 2}),
            ),
        ),
    ),
    Route(
        method="DELETE",
        path="hosts/{host}",
        name="release_host",
        says="End the host's lease",
        answers={204: Answer(says="It lives no more")},
        problems=(409,),
        examples=(Example(title="Sleep", status=204, path=_OF_HOST),),
    ),
)
