"""The runs that one pass executes side by side; how they leave their rows is in `leave`."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType

from shared.engine.announce import Announcer
from shared.engine.clock import Clock
from shared.engine.events import Events
from shared.engine.lease import Lease, LeaseLost
from shared.engine.leave import Leaver
from shared.engine.logs import about
from shared.engine.perform import Resting
from shared.engine.workflows import Performers
from shared.jobs.model import Run
from shared.storage.endings import Ending, Rest
from shared.storage.runs import Runs
from shared.storage.table import pack_units

log = logging.getLogger("timerjobs.execute")

GATHER = 0.05  # seconds that a completion waits for others while runs are executing
PATIENCE = 5.0  # seconds for which one stands in line for room
FULL = 33  # completions that fill a transaction


class Capacity:
    """How many runs this process executes at once. Passes reserve what they may start before they look for it."""

    def __init__(self, limit: int) -> None:
        self.executing = 0
        self.in_line = 0
        self.patience = PATIENCE
        self._limit = limit
        self._reserved = 0
        self._line = asyncio.Lock()  # first come, first served
        self._freed = asyncio.Event()

    def reserve(self, most: int) -> int:
        """Room for up to `most` runs; give it back by `release` when they have started."""
        room = max(0, min(most, self._free))
        self._reserved += room
        return room

    def has_room(self, most: int) -> bool:
        """Whether there is room for them all, and nobody stands in line for it."""
        return not self.in_line and self._free >= most

    async def stand_in_line(self, most: int) -> int:
        """As `reserve`, but waits until there is room for all of them; after 5 s it takes what there is."""
        self.in_line += 1
        try:
            async with asyncio.timeout(self.patience), self._line:
                while self._free < min(most, self._limit):
                    self._freed.clear()
                    await self._freed.wait()
        except TimeoutError:
            pass
        finally:
            self.in_line -= 1
        return self.reserve(most)

    def release(self, room: int) -> None:
        """Gives back what was reserved."""
        self._reserved -= room
        self._freed.set()

    def ended(self) -> None:
        """A run is no longer executing."""
        self.executing -= 1
        self._freed.set()

    @property
    def _free(self) -> int:
        return self._limit - self.executing - self._reserved


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every crew of a process works with. `longest_lock`: the longest that any lock lasts, also a host's; one
    that reaches further ahead was written by a wrong clock."""

    runs: Runs
    performer: Performers
    leaver: Leaver
    announcer: Announcer
    events: Events
    capacity: Capacity
    lock_duration: timedelta
    longest_lock: timedelta
    clock: Clock


class Crew:
    """Executes the runs of one partition that a pass hands it. Leaving the context awaits them all."""

    def __init__(self, partition: str, shop: Workshop) -> None:
        self._partition = partition
        self._shop = shop
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: list[Ending | Rest] = []
        self._changed = asyncio.Event()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._closing = False
        self.again = False  # whether the end of a run has put a baton back that is due already

    async def __aenter__(self) -> "Crew":
        self._completer = asyncio.create_task(self._complete_all())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        self._changed.set()
        try:
            if not isinstance(error, asyncio.CancelledError):
                await self._completer
        finally:  # only a cancelled pass leaves anything to cancel
            await _cancelled(*self._tasks, self._completer)

    async def settled(self) -> None:
        """Waits until nothing is executing and all has been committed."""
        await self._quiet.wait()

    def start(self, run: Run) -> None:
        """Begins to execute a run that this process has locked."""
        self._shop.capacity.executing += 1
        self._quiet.clear()
        task = asyncio.create_task(self._execute(run))
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._finished(task, run))

    def leave(self, unit: Ending | Rest) -> None:
        """Hands on how a run that nobody executes leaves its row."""
        self._quiet.clear()
        self._ready.append(unit)
        self._changed.set()

    def _finished(self, task: asyncio.Task[None], run: Run) -> None:
        self._tasks.discard(task)
        self._shop.capacity.ended()
        self._changed.set()
        if not task.cancelled() and task.exception() is not None:
            error = task.exception()
            log.error("a run was left to its lease", exc_info=error, extra={"action": "execute", **about(run)})

    async def _execute(self, run: Run) -> None:
        """Executes a run as far as it goes, and hands how it leaves its row to be committed.

        1. The run is locked by this process. A crash from here on: the lock runs out and another takes over.
        2. Its actions are performed while the lease is kept, each step but the last stored; a lost lease
           stops them and nothing more is written.
        3. Renewal has ended before it is handed on; a crash before the commit: as in 1, and what was not
           stored is repeated with the same idempotency keys.
        """
        lease = Lease(run, self._shop.runs, self._shop.lock_duration, self._shop.clock)
        if lease.expired(self._shop.clock()) and not await self._regained(lease):
            return
        keeping = asyncio.create_task(lease.keep())
        performing = asyncio.create_task(self._shop.performer.perform(run, lease.checkpoint))
        try:
            await asyncio.wait({keeping, performing}, return_when=asyncio.FIRST_COMPLETED)
            if not performing.done():
                await keeping  # it ended first, so it raises
            lease.release()
            await keeping
            result = await performing
        except LeaseLost as loss:
            log.warning("lost the lease: %s", loss, extra={"action": "execute", **about(run)})
            return
        finally:
            await _cancelled(keeping, performing)
        leaver = self._shop.leaver
        unit: Ending | Rest
        if isinstance(result, Resting):
            unit = leaver.rest(lease.run, result)
        else:
            unit = await leaver.ending(lease.run, result)
        self._ready.append(unit)  # only now: what is ready is swapped while others are committed

    async def _regained(self, lease: Lease) -> bool:
        """Whether a lock that ran out before its run began is still to be had."""
        try:
            await lease.renew()
        except LeaseLost as loss:
            message = "lost the lease before it began: %s"
            log.warning(message, loss, extra={"action": "execute", **about(lease.run)})
            return False
        return True

    async def _complete_all(self) -> None:
        try:
            while self._tasks or self._ready or not self._closing:
                await self._changed.wait()
                self._changed.clear()
                if self._ready:
                    await self._gather()
                    await self._commit_ready()
                if not self._tasks and not self._ready:
                    self._quiet.set()
        finally:
            self._quiet.set()

    async def _commit_ready(self) -> None:
        """Commits how runs leave: in bulk, and those that count at a gate one by one, last since they may take
        long. What goes wrong with some is no matter of the others."""
        ready, self._ready = self._ready, []
        for unit in ready:
            if isinstance(unit, Ending):
                await self._shop.events.ended(unit.run.job_id, unit.run.stamp, [unit.ended])
        gated = [unit for unit in ready if unit.run.gated and isinstance(unit, Ending)]
        free = [unit for unit in ready if not unit.run.gated or isinstance(unit, Rest)]
        batches: list[Sequence[Ending | Rest]] = [*pack_units(free), *([unit] for unit in gated)]
        for batch in batches:
            try:
                await self._commit(batch)
            except Exception:
                about_them = {**about(batch[0].run), "count": len(batch)}
                log.exception("runs were left to their leases", extra={"action": "complete", **about_them})

    async def _commit(self, batch: Sequence[Ending | Rest]) -> None:
        leaver, now = self._shop.leaver, self._shop.clock()
        left = await leaver.commit(self._partition, await leaver.held(self._partition, batch))
        await self._shop.announcer.written(self._partition, left.dues, now)
        for run in left.runs:
            self.start(run)
        if left.others:
            await self._shop.announcer.runs(self._partition, left.others)
        self.again = self.again or left.again

    async def _gather(self) -> None:
        """Waits up to 50 ms for further endings while runs are executing."""
        try:
            async with asyncio.timeout(GATHER):
                while self._tasks and len(self._ready) < FULL:
                    await self._changed.wait()
                    self._changed.clear()
        except TimeoutError:
            pass


async def _cancelled(*tasks: asyncio.Task[object]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
