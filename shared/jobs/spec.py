"""What a request may say of a job: the models that validate it, and the canonical definition they give.

Every fault of a request is told at once, each with its field's path (API.md, RECURRENCE.md V13).
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import chain
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.functional_validators import WrapValidator, model_validator

from shared.errors import Fault, InvalidInput
from shared.jobs.definition import DEFAULT_HISTORY_LIMIT
from shared.jobs.identity import check_id
from shared.jobs.times import duration_text
from shared.recurrence import Schedule, compile_trigger, parse_duration

READ_ONLY = frozenset(
    {"nextOccurrence", "fired", "missed", "skipped", "lastRun", "createdAt", "updatedAt", "generation"}
    | {"evaluatedRecurrence", "describe", "warnings"}
)
MAX_TIMEOUT = timedelta(minutes=5)
MAX_HISTORY = 1000
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_OWN_HEADER = re.compile(
    r"(?i)x-timerjobs-.*|idempotency-key|traceparent|tracestate|host|content-length|transfer-encoding"
    r"|connection|keep-alive|te|trailer|upgrade|expect|proxy-.*"
)
_HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*")

# What the models' own checks find, in plain words; the fields in braces are the error's context.
_REASONS = {
    "missing": "is required",
    "extra_forbidden": "is not a property of this version",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "string_type": "must be text",
    "string_too_long": "must be at most {max_length} characters long",
    "too_short": "has too few members: it needs {min_length}",
    "too_long": "has too many members: the limit is {max_length}",
    "literal_error": "must be {expected}",
    "value_error": "{error}",
}
# Where a `type` decides what else there may be: while it is wrong, nothing is said of the rest.
_TYPE = re.compile(r"(trigger\.|actions\.[^.]+\.(inputs\.retryPolicy\.)?)type")


def told_as(reason: str) -> WrapValidator:
    """Whatever is wrong with a value is told by this one sentence."""

    def check(value: Any, inner: Callable[[Any], Any]) -> Any:
        try:
            return inner(value)
        except ValidationError:
            raise ValueError(reason) from None

    return WrapValidator(check)


def _duration(low: timedelta, high: timedelta) -> AfterValidator:
    def check(text: str) -> str:
        if not low <= parse_duration(text) <= high:
            raise ValueError(f"must last from {duration_text(low)} to {duration_text(high)}")
        return text

    return AfterValidator(check)


def _check_id(job_id: str) -> str:
    try:
        return check_id(job_id)
    except InvalidInput as error:
        raise ValueError(error.faults[0].reason) from None


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
    if not _HOST.fullmatch(parts.hostname):
        raise ValueError(f"names no host that can be called: {parts.hostname[:80]!r}")
    return uri


def _check_header_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError("is not a header name")
    if _OWN_HEADER.fullmatch(name):
        raise ValueError("is set by the scheduler or its connection")
    return name


def _check_header_value(value: str) -> str:
    if any(c != "\t" and not 32 <= ord(c) < 127 for c in value):
        raise ValueError("holds characters that a header cannot carry")
    return value


def _name_once(headers: dict[str, str]) -> dict[str, str]:
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("names a header twice")
    return headers


ActionName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_-]{1,80}$"), told_as("must be named by 1 to 80 of A-Z a-z 0-9 _ -")
]
TagName = Annotated[str, Field(min_length=1, max_length=128), told_as("must be named by 1 to 128 characters")]
HeaderName = Annotated[str, AfterValidator(_check_header_name)]
HeaderValue = Annotated[str, AfterValidator(_check_header_value)]
QueryValue = Annotated[str | int | float | bool, told_as("must be text, a number, true or false")]


class Model(BaseModel):
    """Strict: unknown properties and wrong types are errors; names are camelCase in JSON; null is absent."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        names = {field.alias for field in cls.model_fields.values()}
        return {name: value for name, value in given.items() if value is not None or name not in names}


class RetryPolicy(Model):
    """How a failed call is repeated. A call is made once."""

    type: Literal["none"]


class HttpInputs(Model):
    """The request that an Http action sends."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
    uri: Annotated[str, Field(max_length=8192), AfterValidator(_check_uri)]
    headers: Annotated[dict[HeaderName, HeaderValue], Field(max_length=50), AfterValidator(_name_once)] = {}
    queries: Annotated[dict[str, QueryValue], Field(max_length=100)] = {}
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

    id: Annotated[str, AfterValidator(_check_id)] | None = None
    description: Annotated[str, Field(max_length=4096)] | None = None
    tags: Annotated[dict[TagName, Annotated[str, Field(max_length=256)]], Field(max_length=50)] | None = None
    state: Literal["Enabled", "Completed"] = "Enabled"  # Completed: as an answer said it; changes nothing
    trigger: Trigger
    actions: Annotated[dict[ActionName, HttpAction], Field(min_length=1, max_length=1)]
    parameters: dict[str, JsonValue] | None = None
    service_type: Literal["TimerJob"] = "TimerJob"
    history_limit: Annotated[
        int, Field(ge=1, le=MAX_HISTORY), told_as(f"must be an integer from 1 to {MAX_HISTORY}")
    ] = DEFAULT_HISTORY_LIMIT


def parse_job(body: JsonValue, created: datetime) -> tuple[str | None, dict[str, Any]]:
    """The id (None if the caller gave none) and the canonical definition of a request.

    `created` is the instant C of the calendar rules. Raises InvalidInput with every fault.
    """
    if not isinstance(body, dict):
        raise InvalidInput([Fault("body", "must be a JSON object")])
    plain, faults = _without_short_forms({k: v for k, v in body.items() if k not in READ_ONLY})
    request, of_shape = read_model(JobRequest, plain)
    faults = and_faults(faults, _expression_faults(plain.get("actions"), "actions"))
    faults = and_faults(faults, of_shape)
    faults = and_faults(faults, trigger_faults(plain.get("trigger"), plain.get("parameters"), created))
    if faults or request is None:
        raise InvalidInput(_as_written(f, body) for f in _without_dependent(faults))
    return request.id, _canonical(request)


def parse_trigger(trigger: Any, parameters: Mapping[str, Any] | None, created: datetime) -> Schedule:
    """The schedule of a trigger object on its own. Raises InvalidInput, its paths starting at `trigger`."""
    _, of_shape = read_model(Trigger, trigger, "trigger")
    faults = and_faults(of_shape, trigger_faults(trigger, parameters, created))
    if faults:
        raise InvalidInput(_without_dependent(faults))
    return compile_trigger(trigger, created, parameters)


def trigger_faults(trigger: Any, parameters: Any, created: datetime) -> list[Fault]:
    """What the calendar finds wrong with a trigger; nothing where its type is, which its model tells."""
    if not isinstance(trigger, dict) or trigger.get("type") not in ("Recurrence", "Once"):
        return []
    faults = []
    if trigger["type"] == "Once" and trigger.get("maxLateness") is not None:
        faults.append(Fault("trigger.maxLateness", "does not apply to Once, which runs whenever it can"))
    names = {field.alias for field in Trigger.model_fields.values()}
    known = {name: value for name, value in trigger.items() if name in names}
    try:
        compile_trigger(known, created, parameters if isinstance(parameters, dict) else {})
    except InvalidInput as error:
        faults += [f if f.field.split(".")[0] == "parameters" else f.under("trigger") for f in error.faults]
    return faults


def and_faults(told: list[Fault], later: list[Fault]) -> list[Fault]:
    """Both, without what a later check finds wrong with a field of which something has been told already."""
    fields = {fault.field for fault in told}
    return told + [fault for fault in later if fault.field not in fields]


def _without_dependent(faults: list[Fault]) -> list[Fault]:
    """The faults but those of things whose `type` is at fault: what they may hold is then not known."""
    owners = tuple(f.field.removesuffix("type") for f in faults if _TYPE.fullmatch(f.field))
    return [f for f in faults if _TYPE.fullmatch(f.field) or not f.field.startswith(owners)]


def _without_short_forms(body: dict[str, JsonValue]) -> tuple[dict[str, JsonValue], list[Fault]]:
    """The body with `trigger` for `triggers` and `actions` for `action`; faults in terms of these."""
    forms = (("trigger", "triggers"), ("action", "actions"))
    body = {k: v for k, v in body.items() if v is not None or k not in chain(*forms)}
    faults = [Fault(two, f"must not be given beside {one}") for one, two in forms if {one, two} <= body.keys()]
    triggers = body.pop("triggers", None)
    if triggers is not None and "trigger" not in body:
        if isinstance(triggers, dict) and len(triggers) == 1:
            (body["trigger"],) = triggers.values()
        else:
            faults.append(Fault("trigger", "must be an object with exactly one member"))
    action = body.pop("action", None)
    if action is not None and "actions" not in body:
        body["actions"] = {"Action": action}
    return body, faults


def _as_written(fault: Fault, body: Mapping[str, JsonValue]) -> Fault:
    """The fault, its path in the form the caller used."""
    triggers = body.get("triggers")
    if triggers is not None and body.get("trigger") is None:
        names = list(triggers) if isinstance(triggers, dict) else []
        fault = _renamed(fault, "trigger", f"triggers.{_step(names[0])}" if len(names) == 1 else "triggers")
    if body.get("action") is not None and body.get("actions") is None:
        fault = _renamed(fault, "actions.Action", "action")
    return fault


def _renamed(fault: Fault, ours: str, theirs: str) -> Fault:
    if fault.field != ours and not fault.field.startswith(f"{ours}."):
        return fault
    return Fault(theirs + fault.field.removeprefix(ours), fault.reason)


M = TypeVar("M", bound=Model)


def read_model(model: type[M], value: Any, path: str = "") -> tuple[M | None, list[Fault]]:
    """The value, which stands at `path` of the body, as a model; or what is wrong with it."""
    try:
        return model.model_validate(value), []
    except ValidationError as error:
        return None, [_fault_of(details, path) for details in error.errors()]


def _fault_of(details: Any, path: str) -> Fault:
    steps = [_step(part) for part in details["loc"] if part != "[key]"]
    known = _REASONS.get(details["type"])
    reason = known.format(**details.get("ctx", {})) if known else details["msg"]
    return Fault(".".join([path, *steps] if path else steps) or "body", reason)


def _step(name: str | int) -> str:
    """A name as it stands in a field's path."""
    text = str(name) or '""'
    return text if len(text) <= 80 else f"{text[:80]}…"


def _expression_faults(value: JsonValue, path: str) -> list[Fault]:
    """Strings in action inputs that are expressions; a leading `@@` stands for a literal `@`."""
    if isinstance(value, dict):
        return [f for key, child in value.items() for f in _expression_faults(child, f"{path}.{_step(key)}")]
    if isinstance(value, list):
        return [f for n, child in enumerate(value) for f in _expression_faults(child, f"{path}.{n}")]
    if isinstance(value, str) and ("@{" in value or (value[:1] == "@" and value[1:2] != "@")):
        return [Fault(path, f"is an expression, which action inputs do not take: {value[:60]!r}")]
    return []


def _canonical(request: JobRequest) -> dict[str, Any]:
    """The definition as it is stored: what was given, without nulls, with defaults where reading needs them."""
    given = request.model_dump(by_alias=True, exclude_unset=True, exclude={"id", "state"})
    return {"serviceType": "TimerJob", "historyLimit": DEFAULT_HISTORY_LIMIT} | given
