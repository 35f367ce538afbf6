"""HTTP triggers: requests in, functions called, answers out."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Iterable

import azure.functions as func
from aiohttp import web
from multidict import CIMultiDict, MultiMapping

from devhost import echo
from devhost.functions import HttpFunction
from devhost.routes import Match, RouteTable

log = logging.getLogger("devhost.http")

LARGEST_BODY = 100 * 1024 * 1024


class HttpServer:
    """Answers for the functions with an HTTP trigger, and for `/echo`.

    Once told to stop it takes no more requests for functions (503), while `/echo` goes on: functions that are
    still running may be calling it.
    """

    def __init__(self, functions: Iterable[HttpFunction], prefix: str, key: str | None = None) -> None:
        """With a key, functions of level function or admin demand it; without, none does, as with `func`."""
        self._routes = RouteTable(functions, prefix)
        self._key = key
        self._in_work: set[asyncio.Task[object]] = set()
        self.stopping = False
        self.app = web.Application(client_max_size=LARGEST_BODY)
        self.app.router.add_route("*", echo.PATH, echo.echo)
        self.app.router.add_route("*", r"/{path:[\s\S]*}", self._answer)  # a line break is no end

    async def run(self, stop: asyncio.Event) -> None:
        """Wait for `stop`, then for the requests under way."""
        await stop.wait()
        self.stopping = True
        while self._in_work:
            await asyncio.wait(self._in_work)

    async def _answer(self, request: web.Request) -> web.Response:
        if self.stopping:
            return web.Response(status=503, text="The host is stopping.\n")
        task = asyncio.current_task()
        assert task is not None
        self._in_work.add(task)  # the task, since it lasts until the answer is sent
        task.add_done_callback(self._in_work.discard)
        matches = self._routes.match(request.rel_url.raw_path)
        found = next((each for each in matches if each.function.allows(request.method)), None)
        if found is not None:
            return await self._call(found, request) if self._may(found, request) else web.Response(status=401)
        if matches:
            allowed = {method for each in matches for method in each.function.methods}
            return web.Response(status=405, headers={"Allow": ", ".join(sorted(allowed))})
        return web.Response(status=404)

    def _may(self, match: Match, request: web.Request) -> bool:
        if self._key is None or match.function.auth_level == "anonymous":
            return True
        given = request.headers.get("x-functions-key") or request.query.get("code", "")
        return hmac.compare_digest(given.encode(errors="replace"), self._key.encode())

    async def _call(self, match: Match, request: web.Request) -> web.Response:
        function = match.function
        argument = await _to_function(request, match.parameters)
        try:
            return _from_function(await function.invoke(argument))
        except Exception:
            log.exception("Function %s failed, %s %s", function.name, request.method, request.path)
            return web.Response(status=500)


async def _to_function(request: web.Request, parameters: dict[str, str]) -> func.HttpRequest:
    return func.HttpRequest(
        request.method,
        f"{request.scheme}://{request.host}{request.rel_url.raw_path_qs}",
        headers=_joined(request.headers),
        # The worker gets no parameter whose value is empty.
        params={name: value for name, value in _joined(request.query).items() if value},
        route_params=parameters,
        body=await request.read(),
    )


def _joined(values: MultiMapping[str]) -> dict[str, str]:
    """One value a name, whatever its case; several are joined by commas, as the Functions host does."""
    joined: CIMultiDict[str] = CIMultiDict()
    for name, value in values.items():
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return dict(joined)


def _from_function(result: object) -> web.Response:
    if result is None:
        return web.Response(status=204)
    if isinstance(result, str):
        return web.Response(text=result)
    if not isinstance(result, func.HttpResponse):
        raise TypeError(f"an HTTP function returns an HttpResponse or a str, not {type(result).__name__}")
    headers = CIMultiDict((name, value) for name, value in result.headers.items())
    headers.pop("Content-Length", None)
    is_text = result.mimetype.startswith("text/")
    headers.setdefault(
        "Content-Type", f"{result.mimetype}; charset={result.charset}" if is_text else result.mimetype
    )
    return web.Response(status=result.status_code, headers=headers, body=result.get_body())
