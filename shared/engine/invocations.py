"""Invocations: a ticket's is open until its pass has fired; one is kept open while runs are under way.

The platform counts on open invocations: an instance that has none may be stopped at any moment. But an invocation
that waits for its runs holds its ticket, and the queue's listener takes no new ones while it holds many. So of all
invocations of a process only the newest waits for the runs; it is relieved by the next.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

log = logging.getLogger("timerjobs.dispatch")

# Seconds after which the one kept calls for another. The listener renews a message's invisibility each 5 minutes.
TERM = 240.0
RETRY = 30.0  # and again, until another has come
LAST = 1200.0  # seconds after which it returns all the same: functionTimeout would end the process, runs and all


class Firing:
    """How far a pass has come: it has fired all that was due, or failed to, and awaits runs alone."""

    def __init__(self) -> None:
        self._ended = asyncio.Event()
        self.error: Exception | None = None

    @property
    def has_ended(self) -> bool:
        """Whether what was due has been fired, or failed to be."""
        return self._ended.is_set()

    def end(self, error: Exception | None = None) -> None:
        """It has been fired; or not, for an `error`."""
        self.error = error if not self.has_ended else self.error
        self._ended.set()

    async def wait(self) -> None:
        """Waits for that."""
        await self._ended.wait()


class Invocations:
    """The passes of a process, and the invocation that is kept open for them."""

    def __init__(self, term: float = TERM, retry: float = RETRY, last: float = LAST) -> None:
        self._term = term
        self._retry = retry
        self._last = last
        self._passes: set[asyncio.Task[None]] = set()
        self._newest: asyncio.Future[None] | None = None

    async def carry(
        self,
        work: Callable[[Firing], Coroutine[Any, Any, None]],
        again: Callable[[Exception], Awaitable[None]],
        call: Callable[[], Awaitable[None]],
    ) -> None:
        """Carries out a pass as a task of the process, within an invocation that ends with its firing; or later,
        if it is the newest of the process.

        What the pass raises before it has fired fails the invocation, and its ticket comes again. Where runs are
        under way already it is `again` that tells of it and sends the ticket, so that the invocation stays open
        for them. `call` calls for another invocation.
        """
        firing = Firing()
        task = asyncio.create_task(work(firing))
        self._passes.add(task)
        task.add_done_callback(self._passes.discard)
        fired = asyncio.create_task(firing.wait())
        try:
            await asyncio.wait({task, fired}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            fired.cancel()
        if task.done():
            task.result()
        else:
            task.add_done_callback(_told)
            if firing.error:
                await again(firing.error)
        await self._keep(call)

    async def _keep(self, call: Callable[[], Awaitable[None]]) -> None:
        """Waits until no pass is under way or another invocation has taken this one's place, in the same turn of
        the loop."""
        if not self._passes:
            return
        loop = asyncio.get_running_loop()
        place: asyncio.Future[None] = loop.create_future()
        if self._newest and not self._newest.done():
            self._newest.set_result(None)
        self._newest = place
        began = loop.time()
        calls_at = began + self._term
        while self._passes and not place.done():
            wait = max(0.0, min(calls_at, began + self._last) - loop.time())
            await asyncio.wait({place, *self._passes}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            if not self._passes or place.done():
                return
            if loop.time() >= began + self._last:
                message = "runs go on without an invocation: none has come for %g s, and this one must end"
                log.warning(message, self._last, extra={"action": "keep", "count": len(self._passes)})
                return
            if loop.time() >= calls_at:
                calls_at = loop.time() + self._retry
                await call()

    async def close(self) -> None:
        """Cancels what is under way: runs are left to their leases."""
        passes = list(self._passes)
        for task in passes:
            task.cancel()
        await asyncio.gather(*passes, return_exceptions=True)


def _told(task: asyncio.Task[None]) -> None:
    """What a pass raises after it has fired has been told by then; the task's own complaint is of no use."""
    if not task.cancelled():
        task.exception()
