"""What passes between an app and storage, to be counted, held up, broken or cut."""

import asyncio
import re
from base64 import b64decode
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any
from urllib.parse import unquote, urlsplit

from aiohttp import web
from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from azure.core.pipeline.transport import AioHttpTransport

from shared.storage.tickets import Ticket, read_ticket


class Killed(BaseException):
    """The process is dead: nothing of it goes on, and no handler of errors takes notice."""


class Fate(Enum):
    """What becomes of one storage request."""

    DONE = "done"
    DIE_BEFORE = "the process dies before it"
    DIE_AFTER = "the process dies after it, before its answer comes"
    LOST = "carried out, the answer lost"
    UNSENT = "it reaches nobody"
    BUSY = "answered 503, not carried out"
    BROKEN = "answered 500, not carried out"
    BROKEN_AFTER = "carried out, and answered 500"


@dataclass
class Wire:
    """What passes between the app and storage: each request sent, as `METHOD path?query`.

    `hold` is awaited before a request is sent; `fate` says what becomes of it; `lose_answer` of which request
    the answer gets lost on the way back. `mail` is given each ticket that was sent and how long it stays
    invisible. `dead`: the process was killed, so that every further request of its kills who makes it; `died` is
    called at that moment.
    """

    requests: list[str] = field(default_factory=list)
    hold: Callable[[str], Awaitable[None]] | None = None
    fate: Callable[[str], Fate] = lambda line: Fate.DONE
    lose_answer: Callable[[str], bool] = lambda line: False
    mail: Callable[[Ticket, timedelta], None] = lambda ticket, delay: None
    dead: bool = False
    died: Callable[[], None] = lambda: None
    faulty: "FaultyStorage | None" = None

    def transport(self) -> AioHttpTransport:
        """A client's transport over this wire."""
        return _Tapped(self)

    def die(self) -> None:
        """Ends the process at this point."""
        self.dead = True
        self.died()
        raise Killed

    def post(self, line: str, body: Any) -> None:
        """Tells `mail` of a ticket, if this request sent one."""
        if line.startswith("POST") and "/messages?" in line and "popreceipt" not in line:
            delay = re.search(r"visibilitytimeout=(\d+)", line)
            text = re.search(r"<MessageText>([^<]*)<", body.decode() if isinstance(body, bytes) else str(body))
            assert text, body
            try:
                ticket = read_ticket(b64decode(text[1]).decode())
            except ValueError:  # another queue's
                return
            self.mail(ticket, timedelta(seconds=int(delay[1]) if delay else 0))


class _Tapped(AioHttpTransport):  # type: ignore[misc]  # the client library does not export its type
    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    async def sleep(self, duration: float) -> None:
        """Pauses between attempts take no time here."""
        await asyncio.sleep(0)

    async def send(self, request: Any, **kwargs: Any) -> Any:
        wire = self._wire
        parts = urlsplit(request.url)
        line = f"{request.method} {unquote(parts.path)}?{unquote(parts.query)}"
        wire.requests.append(line)
        if wire.dead:
            raise Killed
        if wire.hold:
            await wire.hold(line)
        fate = wire.fate(line)
        if fate is Fate.DIE_BEFORE:
            wire.die()
        if fate is Fate.UNSENT:
            raise ServiceRequestError("storage cannot be reached")
        if fate in (Fate.BUSY, Fate.BROKEN):
            return await self._failing(request, fate, **kwargs)
        answer = await super().send(request, **kwargs)
        if answer.status_code < 300:
            wire.post(line, request.body if hasattr(request, "body") else request.content)
        if fate is Fate.DIE_AFTER:
            wire.die()
        if fate is Fate.BROKEN_AFTER:
            return await self._failing(request, fate, **kwargs)
        if fate is Fate.LOST or wire.lose_answer(line):
            raise ServiceResponseError("the answer was lost on the way")
        return answer

    async def _failing(self, request: Any, fate: Fate, **kwargs: Any) -> Any:
        """The answer of a server that only fails, as if it were storage's."""
        assert self._wire.faulty
        url, request.url = request.url, self._wire.faulty.url(503 if fate is Fate.BUSY else 500)
        try:
            return await super().send(request, **kwargs)
        finally:
            request.url = url


class FaultyStorage:
    """A server that answers as storage does when it cannot serve. Open it as a context."""

    def __init__(self) -> None:
        self._opened = AsyncExitStack()
        self._port = 0

    def url(self, status: int) -> str:
        """Where it answers with this status."""
        return f"http://127.0.0.1:{self._port}/{status}"

    async def __aenter__(self) -> "FaultyStorage":
        server = web.Application(client_max_size=8 * 1024 * 1024)
        server.router.add_route("*", "/{status}", self._answer)
        runner = web.AppRunner(server, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        self._opened.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._port = runner.addresses[0][1]
        return self

    async def __aexit__(self, *exit_: object) -> None:
        await self._opened.aclose()

    async def _answer(self, request: web.Request) -> web.Response:
        await request.read()
        code = "ServerBusy" if request.match_info["status"] == "503" else "InternalError"
        text = f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code><Message>no</Message></Error>'
        return web.Response(status=int(request.match_info["status"]), text=text, content_type="application/xml")
