"""What the fields of a request are made of: their base model, and checks that more than one of them shares.

Texts that hold expressions are checked when they have values.
"""

import re
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from shared.errors import InvalidInput
from shared.jobs.identity import ID, check_id
from shared.jobs.times import duration_text
from shared.recurrence import parse_duration
from shared.recurrence.models import few_unknown, names_of

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_OWN_HEADER = re.compile(
    r"(?i)x-timerjobs-.*|idempotency-key|traceparent|tracestate|host|content-length|transfer-encoding"
    r"|connection|keep-alive|te|trailer|upgrade|expect|proxy-.*"
)
# What metadata services, and the platform's own endpoints, take for a sign that the caller may ask.
_PLATFORM_HEADER = re.compile(
    r"(?i)x-identity-header|metadata(-flavor)?|x-google-metadata-request|x-aws-ec2-metadata-.*"
    r"|x-ms-client-principal(-.*)?|x-ms-token-.*"
)
_HEADER_VALUE = re.compile(r"[\t -~]*")
_OPENING = re.compile(r"@@\{|@\{")
QUEUE_NAME = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*")
MAX_URI = 8192
MAX_HEADER = 8192
MAX_HEADERS = 32768  # names and values of all
MAX_SENT = 1024 * 1024
"""Bytes of a body."""
MAX_MESSAGE = 48 * 1024
"""Bytes of UTF-8: what a queue's message of 64 KiB holds in base64."""
# For those who read the schema: what a regular expression can say of such texts.
DURATION = r"^P([0-9]+W|([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?)$"
INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,7})?)?Z$"
JOB_ID = {"pattern": f"^{ID.pattern}$", "not": {"enum": [".", ".."]}}
URI_OR_EXPRESSION = r"^([Hh][Tt][Tt][Pp][Ss]?://[!-~]+|[^@]*@.*)$"
_HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*")


def told_as(reason: str) -> WrapValidator:
    """Whatever is wrong with a value is told by this one sentence."""

    def check(value: Any, inner: ValidatorFunctionWrapHandler) -> Any:
        try:
            return inner(value)
        except ValidationError:
            raise ValueError(reason) from None

    return WrapValidator(check)


class Bounds:
    """For Annotated[int, …]: an integer from `low` to `high`, told so by one sentence."""

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        reason = f"must be an integer from {self._low} to {self._high}"
        bounds = Field(ge=self._low, le=self._high)
        return handler.generate_schema(Annotated[int, bounds, told_as(reason)])


class AtMost:
    """For Annotated[dict, …]: an object of at most `count` members. They are counted before one is looked at."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def check(value: Any) -> Any:
            if isinstance(value, dict) and len(value) > self._count:
                bound = {"max_length": self._count}
                raise PydanticCustomError("too_long", "has too many members: the limit is {max_length}", bound)
            return value

        bounded = {**handler(source), "max_length": self._count}
        return core_schema.no_info_before_validator_function(check, bounded)


class Lasting:
    """For Annotated[str, …]: an ISO 8601 duration from `low` to `high`."""

    def __init__(self, low: timedelta, high: timedelta) -> None:
        self._low, self._high = low, high

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        bounds = f"{duration_text(self._low)} to {duration_text(self._high)}"

        def check(text: str) -> str:
            if not self._low <= parse_duration(text) <= self._high:
                raise ValueError(f"must last from {bounds}")
            return text

        shown = Field(description=f"ISO 8601 duration, {bounds}", json_schema_extra={"pattern": DURATION})
        return handler.generate_schema(Annotated[str, AfterValidator(check), shown])


def matching(pattern: str) -> Any:
    """For Annotated[str, …]: what the schema says of a text that a validator checks in its own words."""
    return Field(json_schema_extra={"pattern": pattern})


class OfModel:
    """For Annotated[Any, …], where a model describes what is checked elsewhere."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(self._model.__pydantic_core_schema__)


def holds_expression(value: Any) -> bool:
    """Whether a JSON value, or a text in it, is known only when the action runs."""
    if isinstance(value, dict):
        return any(map(holds_expression, value.values()))
    if isinstance(value, list):
        return any(map(holds_expression, value))
    return isinstance(value, str) and "@" in value and _has_opening(value)


def _has_opening(text: str) -> bool:
    if text.startswith("@") and not text.startswith("@@"):
        return True
    plain = text if text.startswith("@@{") else text.removeprefix("@@")
    return any(found != "@@{" for found in _OPENING.findall(plain))


def check_job_id(job_id: str) -> str:
    """A job's id."""
    try:
        return check_id(job_id)
    except InvalidInput as error:
        raise ValueError(error.faults[0].reason) from None


def check_uri(uri: str) -> str:
    """An absolute http or https URI, or a text that expressions make one."""
    return uri if holds_expression(uri) else plain_uri(uri)


def plain_uri(uri: str) -> str:
    """An absolute http or https URI without credentials. Raises ValueError, which says what it must be."""
    if len(uri) > MAX_URI:
        raise ValueError(f"must be at most {MAX_URI} characters long")
    if not uri.isascii() or any(ord(c) <= 32 or ord(c) == 127 or c == "\\" for c in uri):
        raise ValueError("must be ASCII without spaces, backslashes or control characters; percent-encode others")
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


def check_queue_name(name: str) -> str:
    """The name of a storage queue."""
    if not QUEUE_NAME.fullmatch(name):
        raise ValueError("must be a queue's name: 3 to 63 of a-z 0-9 and single hyphens between them")
    return name


def check_header_name(name: str) -> str:
    """The name of a header that a job may set."""
    if not HEADER_NAME.fullmatch(name):
        raise ValueError("is not a header name")
    if _OWN_HEADER.fullmatch(name):
        raise ValueError("is set by the scheduler or its connection")
    if _PLATFORM_HEADER.fullmatch(name):
        raise ValueError("is for the platform's own endpoints")
    return name


def check_header_value(value: str) -> str:
    """What a header can carry, or a text that expressions make one."""
    return value if holds_expression(value) else plain_header_value(value)


def plain_header_value(value: str) -> str:
    """What a header can carry. Raises ValueError, which says what is wrong with it."""
    if len(value) > MAX_HEADER:
        raise ValueError(f"must be at most {MAX_HEADER} characters long")
    if not _HEADER_VALUE.fullmatch(value):
        raise ValueError("holds characters that a header cannot carry")
    return value


def name_once(headers: dict[str, str]) -> dict[str, str]:
    """Headers that name none twice."""
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("names a header twice")
    return headers


def options(*allowed: str) -> AfterValidator:
    """A comma-separated list of operation options."""

    def check(text: str) -> str:
        unknown = [option for option in text.split(",") if option.strip() not in allowed]
        if unknown:
            raise ValueError(f"must be {' or '.join(allowed)}, not {unknown[0].strip()[:80]!r}")
        return text

    return AfterValidator(check)


class Model(BaseModel):
    """Strict: unknown properties and wrong types are errors; names are camelCase in JSON; null is absent."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        names = names_of(cls)
        told = few_unknown(given, cls)
        return {name: value for name, value in told.items() if value is not None or name not in names}
