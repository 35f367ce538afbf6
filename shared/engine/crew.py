"""The runs that one pass executes side by side; how they leave their rows is in `leave`."""

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, TypeVar

from shared import metrics
from shared.engine.announce import Announcer
from shared.engine.clock import Clock
from shared.engine.events import Events
from shared.engine.lease import Lease, LeaseLost
from shared.engine.leave import Leaver
from shared.engine.left import Left
from shared.engine.logs import about
from shared.engine.perform import Resting
from shared.engine.slots import LONGEST, Slots
from shared.engine.workflows import Performers
from shared.jobs.model import Run
from shared.storage.endings import Ending, Rest
from shared.storage.runs import Runs
from shared.storage.table import pack_units

log = logging.getLogger("timerjobs.execute")

T = TypeVar("T")

GATHER = 0.05  # seconds that a completion waits for others while runs are executing
FULL = 33  # completions that fill a transaction


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every crew of a process works with. `longest_lock`: the longest that any lock lasts, also a host's; one
    that reaches further ahead was written by a wrong clock."""

    runs: Runs
    performer: Performers
    leaver: Leaver
    announcer: Announcer
    events: Events
    slots: Slots
    lock_duration: timedelta
    longest_lock: timedelta
    clock: Clock


class Crew:
    """Executes the runs of one partition that a pass hands it. Leaving the context awaits them all.

    What their ends let through a gate is executed here too, until the instant `until`.
    """

    def __init__(self, partition: str, shop: Workshop, until: datetime) -> None:
        self.partition = partition
        self._shop = shop
        self._until = until
        self._tasks: set[asyncio.Task[Any]] = set()
        self._slots: Counter[tuple[str, int]] = Counter()  # of runs; one that rests and wakes here may have two
        self.patience_left = LONGEST  # seconds for which slots are still waited for
        self._ready: list[Ending | Rest] = []
        self._changed = asyncio.Event()
        self._told = asyncio.Event()
        self._quiet = True  # nothing is executing, and all has been committed
        self._put_back = False  # the end of a run has put a baton back that is due already
        self._closing = False

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
                if self._put_back:  # the pass has failed meanwhile, and fires it no more
                    now = self._shop.clock()
                    await self._shop.announcer.written(self.partition, [now], now)
        finally:  # only a cancelled pass leaves anything to cancel
            while self._tasks or not self._completer.done():
                await _cancelled(*self._tasks, self._completer)
            for job_id, _ in self._slots.elements():
                self._shop.slots.give(job_id)
            self._slots.clear()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is executing, and all has been committed."""
        return self._quiet

    async def put_back(self) -> bool:
        """Waits until the end of a run has put a baton back that is due; False once nothing is executing."""
        while not self._put_back and not self._quiet:
            self._told.clear()
            await self._told.wait()
        put_back, self._put_back = self._put_back, False
        return put_back

    def start(self, run: Run) -> None:
        """Begins to execute a run that this process has locked, and that has a slot."""
        self._slots[run.job_id, run.seq] += 1
        task = self._begin(self._execute(run))
        task.add_done_callback(lambda task: self._finished(task, run))

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Begins what is to be awaited like a run."""
        self._begin(work)

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        self._quiet = False
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._changed.set()
        if not task.cancelled():
            task.exception()  # told by whoever it concerns

    async def leave(self, units: Sequence[Ending | Rest]) -> int:
        """Commits how runs that nobody executes leave their rows; returns when it has been tried, with the number
        of those that could not."""
        return await self._begin(self._commit_all(units)) if units else 0

    def _finished(self, task: asyncio.Task[bool], run: Run) -> None:
        error = None if task.cancelled() else task.exception()
        if not task.cancelled() and error is None and task.result():
            return  # its slot is given back when it has left its row
        self._give_slot(run)
        if error is not None:
            metrics.faults.add(1)
            log.error("a run was left to its lease", exc_info=error, extra={"action": "execute", **about(run)})

    def _give_slot(self, run: Run) -> None:
        if self._slots[run.job_id, run.seq]:
            self._slots[run.job_id, run.seq] -= 1
            self._shop.slots.give(run.job_id)

    async def _execute(self, run: Run) -> bool:
        """Executes a run as far as it goes, and hands how it leaves its row to be committed; False if it was lost.

        1. The run is locked by this process. A crash from here on: the lock runs out and another takes over.
        2. Its actions are performed while the lease is kept, each step but the last stored; a lost lease
           stops them and nothing more is written.
        3. Renewal has ended before it is handed on; a crash before the commit: as in 1, and what was not
           stored is repeated with the same idempotency keys.
        """
        lease = Lease(run, self._shop.runs, self._shop.lock_duration, self._shop.clock)
        if lease.expired(self._shop.clock()) and not await self._regained(lease):
            return False
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
            return False
        finally:
            await _cancelled(keeping, performing)
        leaver = self._shop.leaver
        unit: Ending | Rest
        if isinstance(result, Resting):
            unit = leaver.rest(lease.run, result)
        else:
            unit = await leaver.ending(lease.run, result)
        self._ready.append(unit)  # only now: what is ready is swapped while others are committed
        return True

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
                    ready, self._ready = self._ready, []
                    await self._commit_all(ready)
                if not self._tasks and not self._ready:
                    self._settle()
        finally:
            self._settle()

    def _settle(self) -> None:
        self._quiet = True
        self._told.set()

    async def _commit_all(self, ready: Sequence[Ending | Rest]) -> int:
        """Commits how runs leave: in bulk, and those that count at a gate one by one, last since they may take
        long. A failure of some does not affect the others. Gives the number of those that stayed."""
        stuck = 0
        gated = [unit for unit in ready if unit.run.gated and isinstance(unit, Ending)]
        free = [unit for unit in ready if not unit.run.gated or isinstance(unit, Rest)]
        batches: list[Sequence[Ending | Rest]] = [*pack_units(free), *([unit] for unit in gated)]
        for batch in batches:
            try:
                stuck += await self._commit(batch)
            except Exception:
                stuck += len(batch)
                metrics.faults.add(1)
                about_them = {**about(batch[0].run), "count": len(batch)}
                log.exception("runs were left to their leases", extra={"action": "complete", **about_them})
            finally:
                for unit in batch:
                    self._give_slot(unit.run)
        return stuck

    async def _commit(self, batch: Sequence[Ending | Rest]) -> int:
        leaver, now = self._shop.leaver, self._shop.clock()
        for unit in batch:
            if isinstance(unit, Ending):
                await self._shop.events.ended(unit.run.job_id, unit.run.stamp, [unit.ended])
        held = await leaver.held(self.partition, batch)
        left = Left(starts=now < self._until)
        try:
            await leaver.commit(self.partition, held, left)
        finally:  # also where a later one of them failed
            for run in left.runs:
                self.start(run)
        if left.put_back:
            self._put_back = True
            self._told.set()
        await self._shop.announcer.written(self.partition, left.dues, now)
        if left.others:
            await self._shop.announcer.runs(self.partition, left.others)
        return left.stuck

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
