"""The request that an Http action's inputs stand for, and the one that asks for a later answer to it."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit

from multidict import CIMultiDict
from yarl import URL

from shared.engine.actions.inputs import BadInput, check_uri, host_of, mapping, member
from shared.engine.actions.outcome import Attempt
from shared.jobs.fields import HEADER_NAME, MAX_HEADERS, MAX_SENT, plain_header_value

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
REDIRECTS = frozenset({301, 302, 303, 307, 308})
UNCOMPRESSED = {"Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is sent. `authentication` is the job's, where the address may have what it stands for.

    `anywhere` are those of the headers that any address may see.
    """

    method: str
    url: URL
    headers: CIMultiDict[str]
    anywhere: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    authentication: Any = None


def first_request(attempt: Attempt) -> Request:
    """The request of the inputs, with what tells the target which occurrence it is for. Raises BadInput."""
    inputs = attempt.inputs
    method = member(inputs, "method")
    if method not in METHODS:
        raise BadInput("method", f"must be one of {', '.join(METHODS)}")
    body, content_type = _body(inputs.get("body"))
    occurrence = attempt.headers
    headers = CIMultiDict(UNCOMPRESSED | content_type)
    headers.update(_own_headers(inputs))
    headers.update(occurrence)
    return Request(
        method=method,
        url=target(inputs),
        headers=headers,
        anywhere={**UNCOMPRESSED, **occurrence},
        body=body,
        authentication=inputs.get("authentication"),
    )


def poll_request(attempt: Attempt, address: str) -> Request:
    """The request that asks `address` whether the work is done.

    What only the action's own target may see (the job's headers, and Authorization) stays away from another
    origin. Raises BadInput.
    """
    url, inputs = check_uri(address), attempt.inputs
    own, occurrence = same_origin(url, target(inputs)), attempt.headers
    headers = CIMultiDict(UNCOMPRESSED)
    if own:
        headers.update({k: v for k, v in _own_headers(inputs).items() if not k.lower().startswith("content-")})
    headers.update(occurrence)
    return Request(
        method="GET",
        url=url,
        headers=headers,
        anywhere={**UNCOMPRESSED, **occurrence},
        authentication=inputs.get("authentication") if own else None,
    )


def redirected(request: Request, status: int, location: str | None) -> Request | None:
    """The request that an answer of this status, with this Location, asks for instead; None where it is final.

    Only a GET or HEAD without a body is sent elsewhere. To another origin goes what any address may see, and what
    has been left behind there does not come back. Raises ValueError, whose text says what is wrong with the
    Location.
    """
    if (
        status not in REDIRECTS
        or not location
        or request.method not in ("GET", "HEAD")
        or request.body is not None
    ):
        return None
    url = check_uri(poll_address(location, request.url))
    if (request.url.scheme, url.scheme) == ("https", "http"):
        raise ValueError("leads from https to http")
    if same_origin(url, request.url):
        return replace(request, url=url)
    return replace(request, url=url, headers=CIMultiDict(request.anywhere), authentication=None)


def poll_address(location: str, asked: URL) -> str:
    """The absolute address that a Location in the answer of `asked` means.

    Raises ValueError, whose text says what is wrong with it, unless it is http or https without credentials.
    """
    try:
        address = urljoin(str(asked), location.strip())
    except ValueError:
        raise ValueError("is not a URI") from None
    return str(check_uri(address))


def same_origin(one: URL, other: URL) -> bool:
    """Whether scheme, host and port are the same."""
    return (one.scheme, host_of(one), one.port) == (other.scheme, host_of(other), other.port)


def target(inputs: Mapping[str, Any]) -> URL:
    """The address, just as the job wrote it, with its `queries` behind whatever query it has. Raises BadInput."""
    uri = member(inputs, "uri")
    try:
        check_uri(uri)
        queries = mapping(inputs.get("queries"), "queries")
        parts = urlsplit(uri)
        added = urlencode({name: _scalar(value, f"queries.{name}") for name, value in queries.items()})
        query = "&".join(part for part in (parts.query, added) if part)
        return check_uri(urlunsplit(parts._replace(query=query, fragment="")))
    except BadInput:
        raise
    except ValueError as error:
        raise BadInput("uri", str(error)) from None


def own_authorization(inputs: Mapping[str, Any]) -> list[str]:
    """The Authorization header that the job itself holds, if it does."""
    own = _own_headers(inputs)
    return own.getall("Authorization", [])


def _own_headers(inputs: Mapping[str, Any]) -> CIMultiDict[str]:
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in mapping(inputs.get("headers"), "headers").items():
        text = _scalar(value, f"headers.{name}")
        if not HEADER_NAME.fullmatch(name):
            raise BadInput(f"headers.{name[:80]}", "is not a header name")
        try:
            headers[name] = plain_header_value(text)
        except ValueError as error:
            raise BadInput(f"headers.{name}", str(error)) from None
    if sum(len(name) + len(value) for name, value in headers.items()) > MAX_HEADERS:
        raise BadInput("headers", f"must have at most {MAX_HEADERS} characters together")
    return headers


def _scalar(value: Any, field: str) -> str:
    """Text as it is; a number, true or false as JSON writes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return json.dumps(value)
    raise BadInput(field, "must be text, a number, true or false")


def _body(body: Any) -> tuple[bytes | None, dict[str, str]]:
    """The bytes of a body and the content type they have unless the job says another; text goes as it is."""
    if body is None:
        return None, {}
    is_text = isinstance(body, str)
    try:
        content = (body if is_text else json.dumps(body, allow_nan=False)).encode()
    except (TypeError, ValueError):
        raise BadInput("body", "must be text or JSON") from None
    if len(content) > MAX_SENT:
        raise BadInput("body", f"has {len(content)} bytes; the limit is {MAX_SENT}")
    return content, {"Content-Type": "text/plain; charset=utf-8" if is_text else "application/json"}
