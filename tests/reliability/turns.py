"""A scheduler of storage requests: who may send the next one, in an order laid down beforehand."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tests.harness import Bench


class _Player:
    """One process at its work; every request it is about to send waits here."""

    def __init__(self, at: Bench) -> None:
        self._at = at
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[Any] | None = None

    def begin(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Starts the work, up to its first request."""
        self._at.wire.hold = self._hold
        self._task = asyncio.ensure_future(self._work(work))

    async def _work(self, work: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await work()
        finally:
            self._changed.set()

    async def _hold(self, line: str) -> None:
        permit = asyncio.get_running_loop().create_future()
        self._waiting.append(permit)
        self._changed.set()
        await permit

    async def is_at_a_request(self) -> bool:
        """Waits until it wants to send a request (True) or has ended."""
        assert self._task
        while not self._waiting and not self._task.done():
            self._changed.clear()
            await self._changed.wait()
        return bool(self._waiting)

    async def step(self) -> bool:
        """Lets one request through, up to the next; False if none was left."""
        if not await self.is_at_a_request():
            return False
        self._waiting.popleft().set_result(None)
        await self.is_at_a_request()
        return True

    async def end(self) -> Any:
        """Lets all that is left through; gives the work's result."""
        while await self.step():
            pass
        self._at.wire.hold = None
        assert self._task
        return await self._task


async def interleave(
    players: Sequence[tuple[Bench, Callable[[], Awaitable[Any]]]], first: int, second: int
) -> tuple[Any, Any]:
    """Two processes at work: the first sends `first` requests, then the other `second`, then the first goes on to
    its end, and the other to its own: two switches. Gives both results."""
    one, other = (_Player(at) for at, _ in players)
    for player, (_, work) in zip((one, other), players, strict=True):
        player.begin(work)
    for player, count in ((one, first), (other, second)):
        for _ in range(count):
            await player.step()
    return await one.end(), await other.end()
