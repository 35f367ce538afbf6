"""The host: all listeners of an app, from start to stop."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from aiohttp import web

from devhost.functions import Functions
from devhost.http_server import HttpServer
from devhost.queues import LOCK_SECONDS, QueueListener
from devhost.settings import HostConfig, storage_connection
from devhost.stopping import Listener
from devhost.timers import TimerListener
from devhost.worker import kill, time_limit

log = logging.getLogger("devhost")

CLOSE_SECONDS = 0.5  # for connections that are still open when all invocations have ended


class Host:
    """Runs the functions of an app until it is stopped."""

    def __init__(
        self,
        functions: Functions,
        config: HostConfig,
        *,
        restart: Callable[[], NoReturn],
        key: str | None = None,
        lock_seconds: int = LOCK_SECONDS,
    ) -> None:
        """Needs a running loop. Raises DevhostError if a schedule, a route or a connection is wrong.

        `restart` is called when an invocation exceeds functionTimeout; `lock_seconds` is the queues' (tests).
        """
        if config.function_timeout is not None:
            seconds = config.function_timeout.total_seconds()
            functions = functions.watched(partial(time_limit, seconds, self._expired))
        self._restart = restart
        self._http = HttpServer(functions.http, config.route_prefix, key)
        self._listeners: list[Listener] = [
            self._http,
            *(TimerListener(each) for each in functions.timers),
            *(
                QueueListener(each, storage_connection(each.connection), config.queues, lock_seconds=lock_seconds)
                for each in functions.queues
            ),
        ]
        self._stop = asyncio.Event()
        self._drain_seconds: float | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def stop(self) -> None:
        """Begin to stop; called again, do not wait any longer."""
        if self._stop.is_set():
            for task in self._tasks:
                task.cancel()
        self._stop.set()

    def drain(self, seconds: float) -> None:
        """Begin to end as an instance that is scaled in: take nothing new, let open invocations end.

        When none is open, or after so many seconds, the process is killed, whatever tasks still run in it.
        """
        if not self._stop.is_set():
            self._drain_seconds = seconds
            self._stop.set()

    async def run(self, server: socket.socket, grace: float, ready: Callable[[], None]) -> None:
        """Serve on a listening socket until `stop`, then give running invocations `grace` seconds to end."""
        runner = web.AppRunner(self._http.app, access_log=None, shutdown_timeout=CLOSE_SECONDS)
        await runner.setup()
        try:
            await web.SockSite(runner, server).start()
            self._tasks = [asyncio.create_task(each.run(self._stop)) for each in self._listeners]
            ready()
            await self._until_stopped(grace)
        finally:
            await runner.cleanup()

    async def _until_stopped(self, grace: float) -> None:
        """Returns after `stop`. A listener that ends before, as none should, ends the host with its error."""
        stopped = asyncio.create_task(self._stop.wait())
        await asyncio.wait([stopped, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        self._stop.set()
        if self._drain_seconds is not None:
            await self._end_drained(self._drain_seconds)
        _, late = await asyncio.wait(self._tasks, timeout=grace)
        if late:
            log.warning("Not all invocations ended within %g s; storage will bring their messages again", grace)
        for task in late:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _end_drained(self, seconds: float) -> NoReturn:
        _, late = await asyncio.wait(self._tasks, timeout=seconds)
        if late:
            log.warning("Not all invocations ended within %g s of draining; the process is killed", seconds)
        else:
            log.info("Drained: no invocation is open; the process is killed")
        kill(1 if late else 0)

    def _expired(self, function: str) -> None:
        log.error(
            "Function %s exceeded functionTimeout: the worker process ends with all that runs in it", function
        )
        if not self._stop.is_set():
            try:
                self._restart()
            except Exception:
                log.exception("The worker process cannot be started anew")
        kill(1)
