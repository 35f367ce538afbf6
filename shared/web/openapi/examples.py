"""Requests and their answers, as they follow one another; a test sends them and compares."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ID = "cust-42.nightly-report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request and what it is answered. `path` and `query` are its parameters; None: no body."""

    title: str
    status: int
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    answer: Any = None


HOST = "0" * 32
HOSTED: dict[str, Any] = {
    "id": "acme.nightly",
    "serviceType": "acme/nightly",
    "trigger": {"type": "Once", "runAt": "2026-12-01T02:00:00Z"},
    "parameters": {"steps": 5},
    "activation": {
        "site": "https://jobs.acme.example",
        "applicationPath": "reports",
        "servicePath": "nightly",
    },
}
OF_JOB = {"id": ID}
OF_RUN = {"id": ID, "seq": "1"}
DAILY = {
    "frequency": "Day",
    "interval": 1,
    "timeZone": "Pacific Standard Time",
    "schedule": {"hours": [2], "minutes": [30]},
}
NIGHTLY = {
    "id": ID,
    "tags": {"team": "finance"},
    "trigger": {"type": "Recurrence", "recurrence": DAILY, "skipInitialRun": True},
    "actions": {
        "Call": {
            "type": "Http",
            "inputs": {
                "method": "POST",
                "uri": "https://example.org/report",
                "body": {"day": "@trigger().scheduledTime"},
            },
        },
        "Pause": {
            "type": "Wait",
            "inputs": {"interval": {"count": 5, "unit": "Minute"}},
            "runAfter": {"Call": ["Succeeded"]},
        },
    },
}
WRONG = NIGHTLY | {"trigger": {"type": "Recurrence", "recurrence": DAILY | {"schedule": {"hours": [24]}}}}


REMINDER = {
    "trigger": {"type": "Once", "runAt": "2026-10-01T07:00:00Z"},
    "action": {"type": "Http", "inputs": {"method": "POST", "uri": "https://example.org/invoices/1042/remind"}},
    "deleteAfter": "P7D",
}
NOON = "2026-09-08T12:00:00Z"
FOR_EXECUTOR, FOR_HOST = "waits for an executor", "waits for a host of acme/nightly"


NO_HOST = {
    "code": "NoHost",
    "detail": "neither a workflow of the app nor a host with a lease has the serviceType 'acme/nightly'",
}


def _job(**more: Any) -> dict[str, Any]:
    """A job as it is answered at its creation."""
    made = {"state": "Enabled", "serviceType": "TimerJob", "historyLimit": 100}
    counters = {"fired": 0, "missed": 0, "skipped": 0, "lastRun": None}
    written = {"createdAt": NOON, "updatedAt": NOON, "generation": 1, "warnings": []}
    return made | counters | written | more


def _nightly(**more: Any) -> dict[str, Any]:
    told = {"evaluatedRecurrence": DAILY, "describe": "Every day at 02:30, Pacific Standard Time"}
    return _job(**NIGHTLY, **told) | {"nextOccurrence": "2026-09-09T09:30:00Z"} | more


def _run(seq: int, status: str = "Waiting", **more: Any) -> dict[str, Any]:
    times = {"scheduledTime": NOON, "startTime": None, "endTime": None}
    return {"seq": seq} | times | {"status": status, "attempts": 1, "actions": {}} | more


def _problem(status: int, title: str, detail: str) -> dict[str, Any]:
    return {"type": "about:blank", "title": title, "status": status, "detail": detail}


def _invalid(field: str, reason: str) -> dict[str, Any]:
    problem = _problem(400, "Invalid input", f"{field} {reason}")
    return problem | {"errors": [{"field": field, "reason": reason}]}


def _lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


CANCELLED = _run(1, "Cancelled", startTime=NOON, endTime=NOON, lateness="PT0S", reason="cancelled by hand")

CREATE = (
    Example(title="A report every night", status=201, body=NIGHTLY, answer=_nightly()),
    Example(
        title="The id is taken",
        status=409,
        body=NIGHTLY,
        answer=_problem(409, "Conflict", f"job {ID!r} exists"),
    ),
    Example(
        title="An hour that is none",
        status=400,
        body=WRONG,
        answer=_invalid("trigger.recurrence.schedule.hours", "must be less than or equal to 23"),
    ),
)
LIST = (
    Example(
        title="By tag",
        status=200,
        query={"tag": "team:finance"},
        answer={"value": [_nightly()], "continuation": None},
    ),
    Example(
        title="A page of no size",
        status=400,
        query={"pageSize": "0"},
        answer=_invalid("pageSize", "must be an integer from 1 to 1000"),
    ),
)
PUT = (
    Example(
        title="With a description",
        status=200,
        path=OF_JOB,
        body=NIGHTLY | {"description": "For finance"},
        answer=_nightly(description="For finance", generation=2),
    ),
    Example(
        title="Only where it is new",
        status=412,
        path=OF_JOB,
        headers={"If-None-Match": "*"},
        body=NIGHTLY,
        answer=_problem(412, "Precondition failed", "If-None-Match: the job exists"),
    ),
    Example(
        title="A reminder",
        status=201,
        path={"id": "invoice-1042.reminder"},
        headers={"If-None-Match": "*"},
        body=REMINDER,
        answer=_job(
            id="invoice-1042.reminder",
            trigger=REMINDER["trigger"],
            actions={"Action": REMINDER["action"]},
            deleteAfter="P7D",
            describe="Once at 2026-10-01 07:00, UTC",
            nextOccurrence="2026-10-01T07:00:00Z",
        ),
    ),
    Example(
        title="For a host elsewhere",
        status=201,
        path={"id": HOSTED["id"]},
        headers={"If-None-Match": "*"},
        body=HOSTED,
        answer=_job(**HOSTED, describe="Once at 2026-12-01 02:00, UTC", nextOccurrence="2026-12-01T02:00:00Z")
        | {"warnings": [NO_HOST]},
    ),
)
GET = (
    Example(title="The job", status=200, path=OF_JOB, answer=_nightly(description="For finance", generation=2)),
)
SUSPEND = (
    Example(
        title="Suspended",
        status=200,
        path=OF_JOB,
        answer=_nightly(description="For finance", generation=3, state="Suspended", nextOccurrence=None),
    ),
)
RESUME = (
    Example(
        title="Enabled again",
        status=200,
        path=OF_JOB,
        answer=_nightly(description="For finance", generation=4),
    ),
)
OCCURRENCES = (
    Example(
        title="The next one",
        status=200,
        path=OF_JOB,
        query={"count": "1"},
        answer={
            "value": [
                {
                    "scheduledTime": "2026-09-09T09:30:00Z",
                    "dueTime": "2026-09-09T09:30:00Z",
                    "localTime": "2026-09-09T02:30:00-07:00",
                }
            ]
        },
    ),
)
RUN_NOW = (
    Example(title="Now", status=202, path=OF_JOB, answer=_run(1, reason=FOR_EXECUTOR)),
    Example(title="By a host", status=202, path={"id": HOSTED["id"]}, answer=_run(1, reason=FOR_HOST)),
)
RUNS = (
    Example(
        title="One that waits",
        status=200,
        path=OF_JOB,
        answer={"value": [_run(1, reason=FOR_EXECUTOR)], "continuation": None},
    ),
)
CANCEL = (
    Example(title="Cancelled", status=202, path=OF_RUN, answer=CANCELLED),
    Example(title="It has ended", status=409, path=OF_RUN, answer=_problem(409, "Conflict", "run 1 has ended")),
)
GET_RUN = (
    Example(title="Cancelled", status=200, path=OF_RUN, answer=CANCELLED),
    Example(
        title="No such run",
        status=404,
        path=OF_RUN | {"seq": "7"},
        answer=_problem(404, "Not found", f"job {ID!r} has no run 7"),
    ),
)
RESUBMIT = (Example(title="Once more", status=202, path=OF_RUN, answer=_run(2, reason=FOR_EXECUTOR)),)
DELETE = (
    Example(title="Deleted", status=204, path=OF_JOB),
    Example(
        title="No such job",
        status=404,
        path=OF_JOB,
        answer=_problem(404, "Not found", f"there is no job {ID!r}"),
    ),
)
PREVIEW = (
    Example(
        title="Over a change of clocks",
        status=200,
        body={
            "trigger": {"type": "Recurrence", "recurrence": DAILY, "skipInitialRun": True},
            "createdAt": "2026-03-07T20:00:00Z",
            "count": 1,
        },
        answer={
            "occurrences": [
                {
                    "scheduledTime": "2026-03-08T10:30:00Z",
                    "dueTime": "2026-03-08T10:30:00Z",
                    "localTime": "2026-03-08T03:30:00-07:00",
                    "note": "the clocks skip 02:30 on 2026-03-08; runs at 03:30 instead",
                }
            ],
            "completed": False,
            "describe": "Every day at 02:30, Pacific Standard Time",
            "warnings": [],
            "evaluatedRecurrence": DAILY,
        },
    ),
    Example(title="Nothing to look at", status=400, body={}, answer=_invalid("trigger", "is required")),
)
BULK = (
    Example(
        title="A reminder goes, another is not there",
        status=200,
        body=_lines({"op": "delete", "id": "invoice-1042.reminder"}, {"op": "delete", "id": "none"}),
        answer=_lines(
            {"line": 1, "op": "delete", "id": "invoice-1042.reminder", "status": 204},
            {"line": 2, "op": "delete", "id": "none", "status": 404}
            | {"problem": _problem(404, "Not found", "there is no job 'none'")},
        ),
    ),
)
TEMPLATE = (
    Example(
        title="Twice a day, three times",
        status=201,
        query={"unique": "true"},
        body={
            "timerjobid": "batch-7",
            "startTime": "2026-09-08T14:00:00+02:00",
            "jobRecurrence": {"frequency": "Hour", "interval": 12, "count": 3},
            "action": REMINDER["action"],
        },
        answer="Next execution time will be at 2026-09-09T00:00:00.0000000Z",
    ),
    Example(
        title="Without an id",
        status=400,
        body={"jobRecurrence": {"frequency": "Hour", "interval": 1}, "action": REMINDER["action"]},
        answer="Failed to create timer job\ntimerjobid is required",
    ),
)
HEALTH = (Example(title="Healthy", status=200, answer={"status": "Healthy"}),)
