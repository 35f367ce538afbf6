"""The Http action: one request to the address the job names."""

import asyncio
import json
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from shared.engine.actions.outcome import Outcome
from shared.jobs.model import Status

MAX_READ = 64 * 1024


class HttpAction:
    """Sends a job's request. Redirects are not followed: a 3xx answer is a failure."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def attempt(
        self, inputs: Mapping[str, Any], headers: Mapping[str, str], timeout_seconds: float
    ) -> Outcome:
        """One request; an answer below 300 is a success. Faults of the connection are outcomes, not errors."""
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._send(inputs, headers)
        except TimeoutError:
            return Outcome(status=Status.TIMED_OUT, reason=f"no answer within {timeout_seconds:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Outcome(status=Status.FAILED, reason=f"{type(error).__name__}: {error}"[:1000])

    async def _send(self, inputs: Mapping[str, Any], headers: Mapping[str, str]) -> Outcome:
        body, content_type = _body(inputs.get("body"))
        merged = CIMultiDict({"traceparent": _traceparent()} | content_type)
        merged.update(_literals(inputs.get("headers", {})))
        merged.update(headers)
        async with self._session.request(
            inputs["method"], target(inputs), data=body, headers=merged, allow_redirects=False
        ) as answer:
            await answer.content.read(MAX_READ)
            response = {"statusCode": answer.status}
            if answer.status < 300:
                return Outcome(status=Status.SUCCEEDED, response=response)
            return Outcome(status=Status.FAILED, reason=f"the target answered {answer.status}", response=response)


def target(inputs: Mapping[str, Any]) -> URL:
    """The address, just as the job wrote it, with its `queries` behind whatever query it has."""
    parts = urlsplit(inputs["uri"])
    queries = {k: _query_text(v) for k, v in inputs.get("queries", {}).items()}
    query = "&".join(part for part in (parts.query, urlencode(queries)) if part)
    return URL(urlunsplit(parts._replace(query=query, fragment="")), encoded=True)


def _query_text(value: Any) -> str:
    return _literals(value) if isinstance(value, str) else json.dumps(value)


def _body(body: Any) -> tuple[bytes | None, dict[str, str]]:
    """The bytes of a body and the content type they have unless the job says another; text goes as it is."""
    if body is None:
        return None, {}
    if isinstance(body, str):
        return _literals(body).encode(), {"Content-Type": "text/plain; charset=utf-8"}
    return json.dumps(_literals(body)).encode(), {"Content-Type": "application/json"}


def _literals(value: Any) -> Any:
    """`value` with a leading `@@` of its strings as `@`: the only escape that expressions know."""
    if isinstance(value, str):
        return value[1:] if value.startswith("@@") else value
    if isinstance(value, dict):
        return {k: _literals(v) for k, v in value.items()}
    return [_literals(v) for v in value] if isinstance(value, list) else value


def _traceparent() -> str:
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"
