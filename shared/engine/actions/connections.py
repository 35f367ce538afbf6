"""How many connections this process has to one host: a slow host keeps no more runs at it than that."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from yarl import URL

TELL_AFTER = 1.0  # seconds of waiting
KEPT = 5  # one in so many is kept for jobs that have none

Tell = Callable[[str], Awaitable[None]]


@dataclass(slots=True)
class _Host:
    """One host's connections: how many each job has, and who waits for one, in order."""

    limit: int
    by_job: Counter[str] = field(default_factory=Counter)
    waiting: list[tuple[str, asyncio.Future[None]]] = field(default_factory=list)

    @property
    def users(self) -> int:
        return self.by_job.total() + len(self.waiting)

    def take(self, job_id: str) -> bool:
        """Takes one if the job may have it."""
        free = self.limit - self.by_job.total()
        if free <= (self.limit // KEPT if self.by_job[job_id] else 0):
            return False
        self.by_job[job_id] += 1
        return True

    def give(self, job_id: str) -> None:
        """Gives one back, to the first that waits and may have it."""
        self.by_job[job_id] -= 1
        for waiting, place in list(self.waiting):
            if not place.done() and self.take(waiting):
                self.waiting.remove((waiting, place))
                place.set_result(None)


class Connections:
    """`limit` at once to each scheme, host and port. Who finds them all taken waits, first come, first served.

    A fifth of them is kept for jobs that have none there, so that a job whose calls hang does not keep others from
    the same host.
    """

    def __init__(self, limit: int, tell_after: float = TELL_AFTER) -> None:
        self._limit = limit
        self._tell_after = tell_after
        self._hosts: dict[str, _Host] = {}

    @asynccontextmanager
    async def to(self, url: URL, job_id: str, tell: Tell, time: asyncio.Timeout) -> AsyncIterator[None]:
        """One connection of a job to the host of `url`. `time` (the target's) stops during a wait. `tell` gets
        the reason of a wait of more than a moment, then '' when it is over."""
        name = str(url.origin())
        host = self._hosts.setdefault(name, _Host(self._limit))
        try:
            if not host.take(job_id):
                await self._wait(host, name, job_id, tell, time)
            try:
                yield
            finally:
                host.give(job_id)
        finally:
            if not host.users:
                self._hosts.pop(name, None)

    async def _wait(self, host: _Host, name: str, job_id: str, tell: Tell, time: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        end = time.when()
        left = None if end is None else end - loop.time()
        time.reschedule(None)
        place: asyncio.Future[None] = loop.create_future()
        host.waiting.append((job_id, place))
        try:
            done, _ = await asyncio.wait({place}, timeout=self._tell_after)
            if not done:
                await tell(self._reason(host, name))
                await place
                await tell("")
        except BaseException:
            if (job_id, place) in host.waiting:
                host.waiting.remove((job_id, place))
            else:
                host.give(job_id)
            raise
        if left is not None:
            time.reschedule(loop.time() + left)

    def _reason(self, host: _Host, name: str) -> str:
        taken = host.by_job.total()
        kept = "" if taken >= self._limit else f" of {self._limit}, the others are kept for other jobs"
        return f"waits for a connection to {name}: {taken} are open{kept}"
