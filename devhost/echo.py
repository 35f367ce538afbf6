"""`/echo`: a target for actions, which answers what it was sent, as the query says."""

from __future__ import annotations

import asyncio
import logging

from aiohttp import web

log = logging.getLogger("devhost.echo")

PATH = "/echo"
LONGEST_DELAY = 300.0  # seconds
LOGGED_HEADERS = {
    "job": "x-timerjobs-job-id",
    "scheduled": "x-timerjobs-scheduled-time",
    "key": "Idempotency-Key",
}


async def echo(request: web.Request) -> web.Response:
    """Answer with the request as JSON; `?status=500` sets the status, `?delay=2` waits two seconds first."""
    known = [f"{name}={request.headers[key]}" for name, key in LOGGED_HEADERS.items() if key in request.headers]
    log.info("%s", " ".join([request.method, request.path_qs, *known]))
    try:
        status = int(request.query.get("status", "200"))
        delay = float(request.query.get("delay", "0"))
    except ValueError:
        status, delay = 0, 0.0
    if not (200 <= status <= 599 and delay >= 0):
        return web.Response(status=400, text="status is 200 to 599; delay is a number of seconds\n")
    body = await request.read()
    await asyncio.sleep(min(delay, LONGEST_DELAY))
    return web.json_response(
        {
            "method": request.method,
            "query": dict(request.query),
            "headers": dict(request.headers),
            "body": body.decode(errors="replace"),
        },
        status=status,
    )
