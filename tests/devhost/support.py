"""What several tests of the local host need."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, web

from devhost.azurite import Ports, connection_string

BUSY = "<?xml version='1.0'?><Error><Code>ServerBusy</Code><Message>The server is busy.\nTime:x</Message></Error>"
SAMPLE = Path(__file__).parent / "sample"


async def eventually(condition: Callable[[], object]) -> None:
    """Return when the condition holds; fail if that takes very long."""
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about")


def eventually_sync(condition: Callable[[], object]) -> None:
    """The same where nothing is async."""
    for _ in range(1500):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come about")


class Proxy:
    """Stands between a listener and Azurite's queue service: notes each request; can fail some, or answer late."""

    def __init__(self, upstream: Ports) -> None:
        self.requests: list[str] = []
        self.fail_once: set[str] = set()
        self.answers_after: dict[str, asyncio.Event] = {}
        self.port = 0
        self._upstream = upstream
        self._session: ClientSession | None = None
        self.app = web.Application()
        self.app.router.add_route("*", "/{path:.*}", self._forward)
        self.app.cleanup_ctx.append(self._client)

    @property
    def connection_string(self) -> str:
        """Leads to Azurite, with the queue service by way of this proxy."""
        return connection_string(self._upstream._replace(queue=self.port))

    def count(self, request: str) -> int:
        """How often a request was made that starts like this."""
        return sum(each.startswith(request) for each in self.requests)

    async def _client(self, app: web.Application) -> Any:
        async with ClientSession() as self._session:
            yield

    async def _forward(self, request: web.Request) -> web.Response:
        assert self._session is not None
        if request.method in self.fail_once:
            self.fail_once.remove(request.method)
            self._note(request, 503)
            return web.Response(status=503, text=BUSY, content_type="application/xml")
        async with self._session.request(
            request.method,
            f"http://127.0.0.1:{self._upstream.queue}{request.raw_path}",
            headers=request.headers,
            data=await request.read() or None,
            skip_auto_headers=["Content-Type"],  # it would be missing in the signature
        ) as answer:
            body = await answer.read()
            self._note(request, answer.status)
            if request.method in self.answers_after:
                await self.answers_after[request.method].wait()
            headers = {name: value for name, value in answer.headers.items() if name.startswith("x-ms-")}
            content_type = answer.headers.get("Content-Type", "application/xml")
            return web.Response(status=answer.status, body=body, headers={**headers, "Content-Type": content_type})

    def _note(self, request: web.Request, status: int) -> None:
        path = re.sub(r"^/devstoreaccount1|(?<=/messages)/.*", "", request.path)
        query = "&".join(
            f"{name}={value}" for name, value in sorted(request.query.items()) if name != "popreceipt"
        )
        self.requests.append(f"{request.method} {path}{'?' + query if query else ''} {status}")
