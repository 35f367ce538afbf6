"""Requests and answers as the API sees them, whatever carries them; bodies in, problems out."""

import json
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from shared.errors import MAX_TOLD, Fault, InvalidInput, TimerJobsError, TooLarge, UnsupportedMediaType

log = logging.getLogger("timerjobs.web")

MAX_ANSWER = 4 * 1024 * 1024
"""Bytes of a page of an answer: it ends before the item that would be beyond."""
MAX_DEPTH = 50
MAX_DIGITS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`headers` by lower-case name; `route` the parameters in the path, `query` those behind it."""

    url: str
    headers: Mapping[str, str]
    route: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer. Its `body` is a JSON value, or bytes as they are; None is no body at all."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        """The body's bytes. What no character is, as a header quoted in a problem may hold, becomes `?`."""
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else _as_json(self.body)


class Page:
    """A page of an answer, made item by item up to a bound in bytes."""

    def __init__(self) -> None:
        self._items: list[bytes] = []
        self._size = 0

    def add(self, item: Any) -> bool:
        """Takes a JSON value in, a first one however large it is; False if it does not fit."""
        text = _as_json(item)
        if self._items and self._size + len(text) > MAX_ANSWER:
            return False
        self._items.append(text)
        self._size += len(text)
        return True

    def answer(self, continuation: str | None) -> Response:
        """The page, with what leads on from there; None at the end."""
        head, tail = b'{"value": [', b'], "continuation": ' + _as_json(continuation) + b"}"
        return Response(status=200, body=head + b", ".join(self._items) + tail)


def _as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def told_error(error: Exception) -> TimerJobsError:
    """The error as it is told; an error of ours is logged, and told by its number."""
    if isinstance(error, TimerJobsError):
        if error.status >= 500:
            log.warning("%s", error, extra={"action": "answer"})
        return error
    number = uuid4().hex
    log.error("error %s while answering", number, exc_info=error, extra={"action": "answer"})
    return TimerJobsError(f"an error of the scheduler's own; its log has it as {number}")


def problem(error: TimerJobsError) -> Response:
    """The error as RFC 9457 has it; what is wrong with the input as `errors`, up to 100 of them."""
    faults: list[Fault] = []
    if isinstance(error, InvalidInput):
        faults = [Fault(_short(f.field), _short(f.reason)) for f in error.faults[:MAX_TOLD]]
    elif isinstance(error, TooLarge):
        faults = [Fault("body", str(error))]
    elif isinstance(error, UnsupportedMediaType):
        faults = [Fault("Content-Type", str(error))]
    body: dict[str, Any] = {
        "type": error.problem_type,
        "title": error.title,
        "status": error.status,
        "detail": error.told(),
    }
    if isinstance(error, InvalidInput):
        body["detail"] = "; ".join(f"{f.field} {f.reason}" for f in faults[:5])
    if faults:
        body["errors"] = [{"field": f.field, "reason": f.reason} for f in faults]
    return Response(status=error.status, body=body, headers={"Content-Type": "application/problem+json"})


def _short(text: str) -> str:
    return text if len(text) <= 500 else f"{text[:500]}…"


def read_json(request: Request, limit: int) -> Any:
    """The JSON value in a request's body, of at most `limit` bytes.

    Raises TooLarge, UnsupportedMediaType, and InvalidInput as `parse_json` does.
    """
    check_size(request.body, limit)
    check_media_type(request, "application/json")
    return parse_json(request.body)


def known_body(request: Request) -> None:
    """Raises InvalidInput for a body where a route takes none: what it asks would not be done."""
    if request.body.strip() not in (b"", b"{}", b"null"):
        shown = request.body[:80].decode(errors="replace")
        raise InvalidInput(
            [Fault("body", f"must be empty: this route takes none, and {shown!r} would do nothing")]
        )


def check_size(body: bytes, limit: int) -> None:
    """Raises TooLarge for a body over `limit` bytes."""
    if len(body) > limit:
        raise TooLarge(f"the body is {len(body)} bytes long; the limit is {limit}")


def check_media_type(request: Request, *allowed: str) -> None:
    """Raises UnsupportedMediaType unless the body is of one of these types, or says nothing; where the first is
    application/json, others made of it will do."""
    media_type = request.headers.get("content-type", allowed[0]).split(";")[0].strip().lower()
    is_json = allowed[0] == "application/json" and media_type.endswith("+json")
    if media_type not in allowed and not is_json:
        raise UnsupportedMediaType(f"the body must be {allowed[0]}, not {media_type[:80] or 'of no type'}")


def parse_json(text: bytes) -> Any:
    """The JSON value in a text.

    Raises InvalidInput on `body` for what is not JSON in UTF-8, for values JSON does not have, for numbers beyond
    those of a computer, for a name given twice in an object and for nesting over 50 levels.
    """
    try:
        value = _parse(text.decode("utf-8"))
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise _bad(f"is not UTF-8: byte {error.start} is {error.reason}") from None
    except UnicodeEncodeError:
        raise _bad("holds half of a surrogate pair, which is no character") from None
    except RecursionError:
        raise _bad(f"is nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise _bad(f"is not JSON: {error}") from None
    except ValueError as error:
        raise _bad(str(error)) from None
    if _deeper_than(MAX_DEPTH, value):
        raise _bad(f"is nested deeper than {MAX_DEPTH} levels")
    return value


def _bad(reason: str) -> InvalidInput:
    return InvalidInput([Fault("body", reason)])


def _parse(text: str) -> Any:
    if not text.strip():
        raise ValueError("is empty")
    if text.startswith("\ufeff"):
        raise ValueError("begins with a byte order mark, which is no part of JSON")
    return json.loads(
        text, object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_float
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, item in pairs:
        if name in value:
            raise ValueError(f"names {name[:80]!r} twice in one object")
        value[name] = item
    return value


def _constant(name: str) -> None:
    raise ValueError(f"holds {name}, which is no JSON number")


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"holds a number of {len(text)} digits; the limit is {MAX_DIGITS}")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"holds a number that is too large: {text[:80]}")
    return value


def _deeper_than(levels: int, value: Any) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [
            child
            for item in layer
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not layer:
            return False
    return True


def path_of(request: Request) -> str:
    """The path in the request's address, as it was written; whatever host stands before it."""
    _, _, rest = request.url.partition("://")
    return "/" + rest.partition("?")[0].partition("/")[2].rstrip("/")


def etag_condition(header: str | None) -> Callable[[str], bool] | None:
    """What an If-Match header demands of an entity tag; None if it is absent. `*` demands any."""
    if header is None:
        return None
    wanted = {tag.strip() for tag in header.split(",")}
    return lambda tag: "*" in wanted or tag in wanted


def whole_number(request: Request, name: str, default: int, low: int, high: int) -> int:
    """A number in the query. Raises InvalidInput naming it."""
    text = request.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and low <= int(text) <= high):
        raise InvalidInput([Fault(name, f"must be an integer from {low} to {high}")])
    return int(text)


def flag(request: Request, name: str) -> bool:
    """True or false in the query; false if it is absent. Raises InvalidInput naming it."""
    text = request.query.get(name, "false")
    if text not in ("true", "false"):
        raise InvalidInput([Fault(name, "must be true or false")])
    return text == "true"


def known_query(request: Request, *names: str) -> None:
    """Raises InvalidInput for every query parameter that is none of `names` (`code` carries the key)."""
    unknown = [name for name in request.query if name not in names and name != "code"]
    if unknown:
        raise InvalidInput(Fault(name[:80], "is not a query parameter of this route") for name in unknown)
