"""How many connections this process has to one host: a slow host keeps no more runs at it than that."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from yarl import URL

TELL_AFTER = 1.0  # seconds of waiting


@dataclass(slots=True)
class _Host:
    places: asyncio.Semaphore
    users: int = 0


class Connections:
    """`limit` at once to each scheme, host and port. Who finds them all taken waits, first come, first served."""

    def __init__(self, limit: int, tell_after: float = TELL_AFTER) -> None:
        self._limit = limit
        self._tell_after = tell_after
        self._hosts: dict[str, _Host] = {}

    @asynccontextmanager
    async def to(
        self, url: URL, tell: Callable[[str], Awaitable[None]], time: asyncio.Timeout
    ) -> AsyncIterator[None]:
        """One connection to the host of `url`. `time`, the target's, does not run while it is waited for; `tell`
        is told of a wait that takes longer than a moment, and by '' that it is over."""
        name = str(url.origin())
        host = self._hosts.setdefault(name, _Host(asyncio.Semaphore(self._limit)))
        host.users += 1
        try:
            if host.places.locked():
                await self._wait(host, f"waits for a connection to {name}: {self._limit} are open", tell, time)
            else:
                await host.places.acquire()
            try:
                yield
            finally:
                host.places.release()
        finally:
            host.users -= 1
            if not host.users:
                del self._hosts[name]

    async def _wait(
        self, host: _Host, reason: str, tell: Callable[[str], Awaitable[None]], time: asyncio.Timeout
    ) -> None:
        loop = asyncio.get_running_loop()
        end = time.when()
        left = None if end is None else end - loop.time()
        time.reschedule(None)
        place = asyncio.create_task(host.places.acquire())
        try:
            done, _ = await asyncio.wait({place}, timeout=self._tell_after)
            if not done:
                await tell(reason)
                await place
                await tell("")
        except BaseException:
            if not place.cancel() and not place.cancelled():
                host.places.release()
            raise
        if left is not None:
            time.reschedule(loop.time() + left)
