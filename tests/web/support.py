"""What the web room's tests share: a valid body to spoil, and a request to any route."""

import copy
import json
from collections.abc import Mapping
from typing import Any

from shared.storage.table import Verb, Write
from shared.web.api import Api, Operation, respond
from shared.web.exchange import Request, Response
from tests.documented import hold_to_document
from tests.harness import Bench

NOON_TEXT = "2026-09-08T12:00:00Z"
FACTS = ("createdAt", "nextOccurrence", "fired", "missed", "skipped", "lastRun")
OWN_ROWS = {"partitions", "reach"}


def valid(**more: Any) -> dict[str, Any]:
    """A job whose every property is right. `more` replaces what stands at the top; None takes it away."""
    body: dict[str, Any] = {
        "description": "every day",
        "tags": {"team": "finance"},
        "state": "Enabled",
        "trigger": {
            "type": "Recurrence",
            "recurrence": {
                "frequency": "Day",
                "interval": 1,
                "timeZone": "Pacific Standard Time",
                "startTime": "2026-10-01T08:00:00",
                "schedule": {"hours": [2], "minutes": [30]},
                "endTime": "2027-10-01T08:00:00",
                "count": 100,
            },
            "skipInitialRun": True,
            "maxLateness": "PT1H",
        },
        "action": {
            "type": "Http",
            "inputs": {
                "method": "POST",
                "uri": "https://example.org/report",
                "headers": {"x-a": "b"},
                "queries": {"q": 1},
                "body": {"n": [1, 2.5, True, None, "text"]},
                "retryPolicy": {"type": "none"},
            },
            "limit": {"timeout": "PT2M"},
        },
        "parameters": {"n": 6},
        "serviceType": "TimerJob",
        "historyLimit": 100,
    }
    body |= more
    return {name: value for name, value in body.items() if value is not None}


def daily(**recurrence: Any) -> dict[str, Any]:
    """A valid job with a recurrence of Day 1, changed as the arguments say."""
    return valid(trigger={"type": "Recurrence", "recurrence": {"frequency": "Day", "interval": 1} | recurrence})


def hourly(**more: Any) -> dict[str, Any]:
    """A job that runs at once and then every hour."""
    recurrence = {"frequency": "Hour", "interval": 1}
    return {"trigger": {"type": "Recurrence", "recurrence": recurrence}, "action": valid()["action"]} | more


def put_in(path: str, value: Any) -> dict[str, Any]:
    """A valid job with `value` at a path such as `action.inputs.uri`."""
    body = copy.deepcopy(valid())
    *above, last = path.split(".")
    owner = body
    for name in above:
        owner = owner[name]
    owner[last] = value
    return body


def left_out(path: str) -> dict[str, Any]:
    """A valid job without what stands at a path."""
    body = put_in(path, None)
    *above, last = path.split(".")
    owner = body
    for name in above:
        owner = owner[name]
    del owner[last]
    return body


async def ask(
    at: Bench,
    route: str,
    body: Any = None,
    *,
    raw: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
    job: str | None = None,
    seq: str | None = None,
    url: str | None = None,
) -> Response:
    """What a route of the API answers; `job` is the id in its path, `seq` the run's number there.

    The answer can be written as bytes.
    """
    path = {"preview": "preview", "health": "health"}.get(route, "jobs" if job is None else f"jobs/{job}")
    request = Request(
        url=url or f"http://localhost/api/{path}",
        headers={"content-type": "application/json"} | {k.lower(): v for k, v in (headers or {}).items()},
        route=({} if job is None else {"id": job}) | ({} if seq is None else {"seq": seq}),
        query=query or {},
        body=raw if raw is not None else b"" if body is None else json.dumps(body).encode(),
    )
    asked = operation(at.app.api, route)
    response = hold_to_document(at.app.api, asked, await respond(asked, request))
    assert response.body is None or json.loads(response.content()) is not None
    return response


def operation(api: Api, route: str) -> Operation:
    """A route by the name that tests call it; one of jobs, unless it is among these."""
    others: dict[str, Operation] = {
        "preview": api.preview.preview,
        "health": api.health.health,
        "runs": api.runs.list,
        "run": api.runs.get,
        "run_now": api.runs.run_now,
        "cancel": api.runs.cancel,
        "resubmit": api.runs.resubmit,
    }
    found: Operation = others.get(route) or getattr(api.jobs, route)
    return found


def fields(response: Response) -> list[str]:
    """The fields of a problem's errors."""
    return [error["field"] for error in response.body.get("errors", [])]


async def swept(at: Bench) -> list[str]:
    """The keys of all rows of the table but the ledger's; they are deleted, so that no later test meets them."""
    left = []
    for partition in [*at.partitions, "app"]:
        rows = await at.app.store.table.scan(partition, " ", "\x7f")
        keys = [row["RowKey"] for row in rows if row["RowKey"] not in OWN_ROWS]
        if keys:
            await at.app.store.table.commit(partition, [Write(Verb.DELETE, {"RowKey": key}) for key in keys])
        left += keys
    return left


async def put(at: Bench, job: str, body: Any, **headers: str) -> Response:
    """What PUT answers; headers as `If_Match`."""
    return await ask(at, "put", body, job=job, headers={k.replace("_", "-"): v for k, v in headers.items()})


async def got(at: Bench, job: str) -> Any:
    """The job as GET answers it, which it must."""
    response = await ask(at, "get", job=job)
    assert response.status == 200, response.body
    return response.body


async def every_row(at: Bench) -> list[Any]:
    """All rows of jobs, with their versions."""
    return [row for kind in ("job", "timer", "run", "idle", "past") for row in await at.rows(kind)]


def tag_of(response: Response) -> str:
    """The entity tag of an answer."""
    tag: str = response.headers["ETag"]
    return tag
