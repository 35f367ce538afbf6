"""The runs that one pass executes side by side, and their completion in bulk."""

import asyncio
import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from types import TracebackType
from uuid import uuid4

from shared.engine.clock import Clock
from shared.engine.lease import SKEW, Lease, LeaseLost, same_holder
from shared.engine.perform import Performer
from shared.jobs.definition import DEFAULT_HISTORY_LIMIT, load_definition
from shared.jobs.model import Ended, Run
from shared.jobs.times import json_text
from shared.storage.runs import Ending, Runs
from shared.storage.table import Refused, StoreFailed, pack_units

log = logging.getLogger("timerjobs.execute")

GATHER = 0.05  # seconds that a completion waits for others while runs are executing
FULL = 33  # completions that fill a transaction


@dataclass(slots=True)
class Capacity:
    """How many runs this process executes at once. A soft bound: it decides what a pass starts itself."""

    limit: int
    executing: int = 0

    @property
    def free(self) -> int:
        """How many more may start now."""
        return max(0, self.limit - self.executing)


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every crew of a process works with."""

    runs: Runs
    performer: Performer
    capacity: Capacity
    lock_duration: timedelta
    clock: Clock


class Crew:
    """Executes the runs of one partition that a pass hands it. Leaving the context awaits them all."""

    def __init__(self, partition: str, shop: Workshop) -> None:
        self._partition = partition
        self._shop = shop
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: list[Ending] = []
        self._changed = asyncio.Event()
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
        finally:  # only a cancelled pass leaves anything to cancel
            await _cancelled(*self._tasks, self._completer)

    def start(self, run: Run) -> None:
        """Begins to execute a run that this process has locked."""
        self._shop.capacity.executing += 1
        task = asyncio.create_task(self._execute(run))
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._shop.capacity.executing -= 1
        self._changed.set()
        if not task.cancelled() and task.exception() is not None:
            log.error("a run was left to its lease", exc_info=task.exception(), extra={"action": "execute"})

    async def _execute(self, run: Run) -> None:
        """Executes a run and hands its ending to completion.

        1. The run is locked by this process. A crash from here on: the lock runs out and another takes over.
        2. Its actions are performed while the lease is kept; a lost lease stops them and nothing is written.
        3. Renewal has ended before the ending is handed on; a crash before its commit: as in 1, and the
           actions are repeated with the same idempotency keys.
        """
        lease = Lease(run, self._shop.runs, self._shop.lock_duration, self._shop.clock)
        keeping = asyncio.create_task(lease.keep())
        performing = asyncio.create_task(self._shop.performer.perform(run))
        try:
            await asyncio.wait({keeping, performing}, return_when=asyncio.FIRST_COMPLETED)
            if not performing.done():
                await keeping  # it ended first, so it raises
            lease.release()
            await keeping
            ended = await performing
        except LeaseLost as loss:
            log.warning("lost the lease: %s", loss, extra={"action": "execute", **about(run)})
            return
        finally:
            await _cancelled(keeping, performing)
        self._ready.append(await self._ending(lease.run, ended))

    async def _ending(self, run: Run, ended: Ended, reread: bool = False) -> Ending:
        limit = _history_limit(run)
        # A job fires at most once a second and records at most a stretch beside it: only if more than `limit`
        # such records fit into the run's life can its slot hold a later one.
        crowded = 2 * ((ended.ended - run.fired_at).total_seconds() + 2) >= limit
        slot = await self._shop.runs.slot(run.job_id, run.seq, limit) if crowded or reread else None
        return Ending(
            run=run, ended=ended, summary=summary(ended), history_limit=limit, mark=uuid4().hex, slot=slot
        )

    async def _complete_all(self) -> None:
        while self._tasks or self._ready or not self._closing:
            await self._changed.wait()
            self._changed.clear()
            if not self._ready:
                continue
            await self._gather()
            ready, self._ready = self._ready, []
            for batch in pack_units(ready):
                try:
                    await self._complete(batch)
                except Exception:
                    log.exception("runs were left to their leases", extra={"action": "complete"})

    async def _gather(self) -> None:
        """Waits up to 50 ms for further endings while runs are executing."""
        try:
            async with asyncio.timeout(GATHER):
                while self._tasks and len(self._ready) < FULL:
                    await self._changed.wait()
                    self._changed.clear()
        except TimeoutError:
            pass

    async def _complete(self, batch: Sequence[Ending]) -> None:
        """Commits endings; one at fault is found by halving and settled alone."""
        try:
            await self._shop.runs.complete(self._partition, batch)
        except Refused:
            if len(batch) == 1:
                await self._settle(batch[0])
            else:
                for half in (batch[: len(batch) // 2], batch[len(batch) // 2 :]):
                    await self._complete(half)
        except StoreFailed as failure:
            await self._again(batch, failure)

    async def _settle(self, ending: Ending) -> None:
        """A refused completion: one's own commit whose answer was lost, a changed row, or a lost run."""
        run = ending.run
        current = await self._shop.runs.get(run.job_id, run.seq)
        if current is not None and same_holder(current, run):
            await self._complete([replace(await self._ending(current, ending.ended, True), mark=ending.mark)])
            return
        slot = await self._shop.runs.slot(run.job_id, run.seq, ending.history_limit)
        if not slot or slot["mark"] != ending.mark:
            log.warning("completed by nobody here: it was taken over or removed", extra=about(run))

    async def _again(self, batch: Sequence[Ending], failure: StoreFailed) -> None:
        """Storage failed: tries again until the locks run out; after that the runs are somebody else's."""
        log.warning("completion waits for storage: %s", failure, extra={"action": "complete"})
        await asyncio.sleep(1)
        now = self._shop.clock()
        held = [e for e in batch if e.run.locked_until and now < e.run.locked_until - SKEW]
        if held:
            await self._complete(held)


def summary(ended: Ended) -> dict[str, object]:
    """The short account of a run that a job's `lastRun` gives."""
    return {
        "seq": ended.seq,
        "status": str(ended.status),
        "scheduledTime": json_text(ended.scheduled),
        "startTime": json_text(ended.started),
        "endTime": json_text(ended.ended),
    }


def about(run: Run) -> dict[str, object]:
    """What a log line about a run carries."""
    return {"job": run.job_id, "run": run.seq, "scheduled": json_text(run.scheduled)}


def _history_limit(run: Run) -> int:
    """The size of the job's history as of this run; of a run whose definition is unreadable, the default."""
    try:
        return load_definition(run.definition).history_limit
    except (ValueError, KeyError, zlib.error):
        return DEFAULT_HISTORY_LIMIT


async def _cancelled(*tasks: asyncio.Task[object]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
