"""What tests of actions work with: attempts, an Http action over a session like the app's, scripted targets."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.abc import AbstractResolver

from shared.engine.actions.auth import Authorizer
from shared.engine.actions.connections import Connections
from shared.engine.actions.http import HttpAction
from shared.engine.actions.outbound import GuardedConnector, Lookups, Outbound, parse_places
from shared.engine.actions.outcome import Attempt, Later, Outcome
from shared.jobs.model import Status
from tests.harness import Hit, Receiver

NOW = datetime(2026, 9, 8, 12, 0, tzinfo=UTC)
KEY = "a:stamp:20260908T120000Z:Call"
HEADERS = {
    "Idempotency-Key": KEY,
    "x-timerjobs-job-id": "a",
    "x-timerjobs-attempt": "1",
    "traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01",
}

SECRET = 'Bearer s3cr3t/w0rd+"q"&<x>'
AUDIENCE = "https://storage.azure.com"
IDENTITY: dict[str, Any] = {"type": "ManagedServiceIdentity", "audience": AUDIENCE}
RAW: dict[str, Any] = {"type": "Raw", "value": {"setting": "SECRET_TOKEN"}}
THIS_MACHINE = Outbound(parse_places('["127.0.0.0/8"]'))
NO_RETRY: dict[str, Any] = {"retryPolicy": {"type": "none"}}


def an_attempt(inputs: Mapping[str, Any], **changed: Any) -> Attempt:
    """The first attempt with these inputs, or another."""
    told: dict[str, Any] = {
        "action": {"type": "Any", "inputs": inputs},
        "headers": HEADERS,
        "timeout": timedelta(seconds=20),
        "number": 1,
        "memo": {},
        "now": NOW,
        "tell": silent,
    }
    return Attempt(inputs=inputs, **told | changed)


async def silent(reason: str) -> None:
    """Tells nobody what an attempt waits for."""


def a_call(url: str, **more: Any) -> dict[str, Any]:
    """Inputs of an Http action."""
    return {"method": "POST", "uri": url, "body": {"hello": "world"}} | more


@asynccontextmanager
async def http_action(
    authorizer: Authorizer | None = None,
    elapsed: Callable[[], float] = lambda: 0.0,
    outbound: Outbound = THIS_MACHINE,
    resolver: AbstractResolver | None = None,
    connections: Connections | None = None,
) -> AsyncIterator[HttpAction]:
    """An Http action for which no time passes unless `elapsed` says so."""
    async with aiohttp.ClientSession(
        connector=GuardedConnector(outbound, resolver or Lookups(4)),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
    ) as session:
        yield HttpAction(session, connections or Connections(50), authorizer, elapsed)


async def once(inputs: Mapping[str, Any], authorizer: Authorizer | None = None, **changed: Any) -> Outcome | Later:
    """What one attempt gives."""
    async with http_action(authorizer) as action:
        return await action.attempt(an_attempt(inputs, **changed))


def ended(result: Outcome | Later, status: Status) -> Outcome:
    """The result, which must be an outcome of this status."""
    assert isinstance(result, Outcome), result
    assert result.status == status, result
    return result


def goes_on(result: Outcome | Later) -> Later:
    """The result, which must be to go on later."""
    assert isinstance(result, Later), result
    return result


def told(result: Outcome | Later) -> str:
    """All that a result would make known."""
    return f"{result.reason} {json.dumps(result.response)} {json.dumps(getattr(result, 'memo', {}))}"


def answers(receiver: Receiver, *responses: dict[str, Any]) -> None:
    """Has the receiver give these answers (arguments of a response) in turn, the last one again and again."""
    left = list(responses)

    async def answer(hit: Hit) -> web.Response:
        return web.Response(**(left.pop(0) if len(left) > 1 else left[0]))

    receiver.answer = answer


@asynccontextmanager
async def raw_server(answer: bytes, piece: int = 1 << 20) -> AsyncIterator[str]:
    """A server whose every answer is these bytes, sent in pieces, after which it closes the connection."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        with suppress(ConnectionError):  # the other end may have what it wants
            for start in range(0, len(answer), piece):
                writer.write(answer[start : start + piece])
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    finally:
        server.close()
        await server.wait_closed()
