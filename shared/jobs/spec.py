"""What a request may say of a job: the models that validate it, and the canonical definition they give.

Every fault of a request is told at once, each with its field's path (API.md, RECURRENCE.md V13).
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic.alias_generators import to_camel

from shared.errors import Fault, InvalidInput
from shared.jobs.definition import DEFAULT_HISTORY_LIMIT
from shared.jobs.identity import check_id
from shared.recurrence import Schedule, compile_trigger, parse_duration

READ_ONLY = frozenset(
    {"nextOccurrence", "fired", "missed", "skipped", "lastRun", "createdAt", "updatedAt", "generation"}
    | {"evaluatedRecurrence", "describe", "warnings"}
)
MAX_TIMEOUT = timedelta(minutes=5)
_ACTION_NAME = r"^[A-Za-z0-9_-]{1,80}$"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_OWN_HEADER = re.compile(
    r"(?i)x-timerjobs-.*|idempotency-key|traceparent|tracestate|host|content-length|transfer-encoding"
    r"|connection|keep-alive|te|trailer|upgrade|expect|proxy-.*"
)


def _duration(low: timedelta, high: timedelta) -> AfterValidator:
    def check(text: str) -> str:
        if not low <= parse_duration(text) <= high:
            raise ValueError(f"must last from {low} to {high}")
        return text

    return AfterValidator(check)


def _check_uri(uri: str) -> str:
    if not uri.isascii() or any(ord(c) <= 32 or ord(c) == 127 for c in uri):
        raise ValueError("must be ASCII without spaces or control characters; percent-encode others")
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"is not a URI: {error}") from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError("must be an absolute http or https URI")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold credentials")
    return uri


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a header name")
        if _OWN_HEADER.fullmatch(name):
            raise ValueError(f"{name!r} is set by the scheduler or its connection")
        if any(c not in "\t" and not 32 <= ord(c) < 127 for c in value):
            raise ValueError(f"the value of {name!r} holds characters that a header cannot carry")
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("names a header twice")
    return headers


class Model(BaseModel):
    """Strict: unknown properties and wrong types are errors; names are camelCase in JSON."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel, frozen=True)


class RetryPolicy(Model):
    """How a failed call is repeated. A call is made once."""

    type: Literal["none"]


class HttpInputs(Model):
    """The request that an Http action sends."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
    uri: Annotated[str, Field(max_length=8192), AfterValidator(_check_uri)]
    headers: Annotated[dict[str, str], Field(max_length=50), AfterValidator(_check_headers)] = {}
    queries: Annotated[dict[str, str | int | float | bool], Field(max_length=100)] = {}
    body: JsonValue = None
    retry_policy: RetryPolicy | None = None


class Limit(Model):
    """How long one attempt may take."""

    timeout: Annotated[str, _duration(timedelta(seconds=1), MAX_TIMEOUT)]


class HttpAction(Model):
    """One HTTP call."""

    type: Literal["Http"]
    inputs: HttpInputs
    limit: Limit | None = None


class Trigger(Model):
    """When a job runs. The calendar rules themselves are checked by `shared.recurrence`."""

    type: Literal["Recurrence", "Once"]
    recurrence: JsonValue = None
    run_at: JsonValue = None
    skip_initial_run: JsonValue = None
    max_lateness: Annotated[str, _duration(timedelta(0), timedelta(days=3660))] | None = None


class JobRequest(Model):
    """The body of `POST /jobs` and `PUT /jobs/{id}`."""

    id: str | None = None
    description: Annotated[str, Field(max_length=4096)] | None = None
    tags: Annotated[dict[str, Annotated[str, Field(max_length=256)]], Field(max_length=50)] | None = None
    state: Literal["Enabled", "Completed"] = "Enabled"  # Completed: as an answer said it; changes nothing
    trigger: Trigger
    actions: Annotated[
        dict[Annotated[str, Field(pattern=_ACTION_NAME)], HttpAction], Field(min_length=1, max_length=1)
    ]
    parameters: dict[str, JsonValue] | None = None
    service_type: Literal["TimerJob"] = "TimerJob"
    history_limit: Annotated[int, Field(ge=1, le=1000)] = DEFAULT_HISTORY_LIMIT


def parse_job(body: JsonValue, created: datetime) -> tuple[str | None, dict[str, Any]]:
    """The id (None if the caller gave none) and the canonical definition of a request.

    `created` is the instant C of the calendar rules. Raises InvalidInput with every fault.
    """
    if not isinstance(body, dict):
        raise InvalidInput([Fault("body", "must be a JSON object")])
    plain, faults = _without_short_forms({k: v for k, v in body.items() if k not in READ_ONLY})
    try:
        request = JobRequest.model_validate(plain)
    except ValidationError as error:
        faults += [fault_of(details, plain) for details in error.errors()]
    faults += _expression_faults(plain.get("actions"), "actions")
    faults += _id_faults(plain.get("id"))
    if not any(f.field.split(".")[0] == "trigger" for f in faults):
        faults += trigger_faults(plain["trigger"], plain.get("parameters"), created)
    if faults:
        raise InvalidInput(_as_written(f, body) for f in faults)
    return request.id, _canonical(plain)


def parse_trigger(trigger: Any, parameters: Mapping[str, Any] | None, created: datetime) -> Schedule:
    """The schedule of a trigger object on its own. Raises InvalidInput, its paths starting at `trigger`."""
    faults: list[Fault] = []
    try:
        Trigger.model_validate(trigger)
    except ValidationError as error:
        faults = [fault_of(details, trigger).under("trigger") for details in error.errors()]
    faults += [] if faults else trigger_faults(trigger, parameters, created)
    if faults:
        raise InvalidInput(faults)
    return compile_trigger(trigger, created, parameters)


def trigger_faults(trigger: Any, parameters: Any, created: datetime) -> list[Fault]:
    """What the calendar finds wrong with a trigger whose shape is right."""
    faults = []
    if trigger["type"] == "Once" and trigger.get("maxLateness") is not None:
        faults.append(Fault("trigger.maxLateness", "does not apply to Once, which runs whenever it can"))
    try:
        compile_trigger(trigger, created, parameters if isinstance(parameters, dict) else {})
    except InvalidInput as error:
        faults += [f if f.field.split(".")[0] == "parameters" else f.under("trigger") for f in error.faults]
    return faults


def _without_short_forms(body: dict[str, JsonValue]) -> tuple[dict[str, JsonValue], list[Fault]]:
    """The body with `trigger` for `triggers` and `actions` for `action`."""
    faults = []
    for short, long in (("trigger", "triggers"), ("action", "actions")):
        if body.get(short) is not None and body.get(long) is not None:
            faults.append(Fault(long, f"must not be given beside {short}"))
    body = dict(body)
    triggers = body.pop("triggers", None)
    if triggers is not None and "trigger" not in body:
        if not isinstance(triggers, dict) or len(triggers) != 1:
            faults.append(Fault("triggers", "must be an object with exactly one member"))
        else:
            (body["trigger"],) = triggers.values()
    action = body.pop("action", None)
    if action is not None and "actions" not in body:
        body["actions"] = {"Action": action}
    return body, faults


def _as_written(fault: Fault, body: Mapping[str, JsonValue]) -> Fault:
    """The fault, its path in the form the caller used."""
    if body.get("action") is not None and fault.field.startswith("actions.Action"):
        return Fault(fault.field.replace("actions.Action", "action", 1), fault.reason)
    triggers = body.get("triggers")
    if isinstance(triggers, dict) and len(triggers) == 1 and fault.field.split(".")[0] == "trigger":
        return Fault(fault.field.replace("trigger", f"triggers.{next(iter(triggers))}", 1), fault.reason)
    return fault


def fault_of(details: Any, body: Any) -> Fault:
    """A pydantic error as a fault."""
    path = [str(part) for part in details["loc"] if part != "[key]"]
    kind = details["type"]
    if kind == "extra_forbidden":
        reason = "is not a property of this version"
    elif kind == "missing":
        reason = "is required"
    elif kind == "value_error":
        reason = str(details["ctx"]["error"])
    else:
        reason = details["msg"][0].lower() + details["msg"][1:]
    if path == ["trigger"] and kind == "missing" and "triggers" in body:
        path = ["triggers"]
    return Fault(".".join(path) or "body", reason)


def _expression_faults(value: JsonValue, path: str) -> list[Fault]:
    """Strings in action inputs that are expressions; a leading `@@` stands for a literal `@`."""
    if isinstance(value, dict):
        return [f for key, child in value.items() for f in _expression_faults(child, f"{path}.{key}")]
    if isinstance(value, list):
        return [f for n, child in enumerate(value) for f in _expression_faults(child, f"{path}.{n}")]
    if isinstance(value, str) and ("@{" in value or (value[:1] == "@" and value[1:2] != "@")):
        return [Fault(path, f"is an expression, which action inputs do not take: {value[:60]!r}")]
    return []


def _id_faults(job_id: JsonValue) -> list[Fault]:
    if not isinstance(job_id, str):
        return []  # absent, or the model has told
    try:
        check_id(job_id)
    except InvalidInput as error:
        return list(error.faults)
    return []


def _canonical(plain: Mapping[str, JsonValue]) -> dict[str, Any]:
    """The definition as it is stored: what was given, without nulls, with defaults where reading needs them."""
    definition = {k: v for k, v in plain.items() if v is not None and k not in ("id", "state")}
    trigger = definition["trigger"]
    assert isinstance(trigger, dict)
    definition["trigger"] = {k: v for k, v in trigger.items() if v is not None}
    return {"serviceType": "TimerJob", "historyLimit": DEFAULT_HISTORY_LIMIT} | definition
