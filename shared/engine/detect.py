"""Detection: the periodic search for what no ticket led to. Reads key ranges only, whatever the number of jobs."""

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared import metrics
from shared.engine.activation import Watch
from shared.engine.clock import Clock
from shared.jobs.times import SECOND, floor_second
from shared.storage.jobs import Jobs
from shared.storage.ledger import Ledger, Progress
from shared.storage.runs import Runs
from shared.storage.table import StoreFailed
from shared.storage.tickets import Ticket, Tickets
from shared.storage.timers import Timers

log = logging.getLogger("timerjobs.detect")

OVERDUE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a cycle saw of a partition: since when a timer is overdue, and how many rows of a newer format were
    overdue or free."""

    overdue: datetime | None
    newer: int


class Detector:
    """Finds the runnable instances of the store; sends tickets for them, or raises the events of their hosts.

    The instance store considers a workflow instance runnable if the instance is not in the suspended state or the
    completed state and satisfies the following conditions:

    - The instance is not locked and has a pending timer that has expired. (Here: a timer row overdue.)
    - The instance has a lock that has already expired. (A run row whose lock ran out.)
    - The instance is not locked and its status is Executing. (A run row without an owner; a load row.)

    A workflow instance is considered activatable if the instance is runnable and no workflow host able to load the
    instance is running. (A load row, and no host whose lease lasts has the row's service type.)
    """

    def __init__(
        self,
        jobs: Jobs,
        timers: Timers,
        runs: Runs,
        ledger: Ledger,
        tickets: Tickets,
        watch: Watch,
        *,
        longest_lock: timedelta,
        period: timedelta,
        horizon: timedelta,
        clock: Clock,
    ) -> None:
        self._jobs = jobs
        self._timers = timers
        self._runs = runs
        self._ledger = ledger
        self._tickets = tickets
        self._watch = watch
        self._longest_lock = longest_lock
        self._period = period
        self._horizon = horizon
        self._clock = clock

    async def tick(self) -> bool:
        """One cycle of detection, unless less than a period has passed since the last one ended; whether it ran.

        1. Reads how far the last cycle came (`reach`).
        2. In each partition: a ticket if a timer is overdue, tickets for the timers between `reach` and the
           horizon, a ticket if a run is free. A crash here: the next cycle does the same again; a ticket too
           many does no harm.
        3. Raises the events of hosts elsewhere; a crash here: likewise.
        4. Moves `reach` to the horizon, if no other cycle has done so meanwhile.

        Rows of a newer format are counted, and get the one ticket a cycle that others would: whichever
        instance receives it, one of a newer version may.
        """
        now = self._clock()
        progress = await self._ledger.progress()
        if progress and timedelta(0) <= now - progress.cycle_ended < self._period:
            return False
        horizon = floor_second(now + self._horizon)
        since = max(progress.reach, now - OVERDUE) if progress else now - OVERDUE
        seen = await asyncio.gather(*(self._partition(p, now, since, horizon) for p in self._jobs.partitions))
        try:
            await self._watch.cycle(now)
        except StoreFailed:
            raise
        except Exception:  # whatever a damaged row can make it raise: the jobs of this app are no matter of hosts
            log.exception("the search for hosts' work failed", extra={"action": "detect"})
        newer = sum(of.newer for of in seen)
        ended = Progress(
            reach=horizon, cycle_ended=self._clock(), newer=newer, etag=progress.etag if progress else ""
        )
        self._report(seen, newer, now, ended.cycle_ended)
        if not await self._ledger.advance(ended):
            log.info("another cycle of detection ran beside this one", extra={"action": "detect"})
        return True

    def _report(self, seen: list[_Seen], newer: int, began: datetime, ended: datetime) -> None:
        oldest = min((of.overdue for of in seen if of.overdue), default=began)
        metrics.overdue_age.set((began - oldest).total_seconds())
        metrics.newer_rows.set(newer)
        metrics.detection_duration.record(max(timedelta(0), ended - began).total_seconds())
        if newer:
            message = "%d rows of a newer format version are overdue or free, and are left to newer versions"
            log.warning(message, newer, extra={"action": "leave", "count": newer})

    async def _partition(self, partition: str, now: datetime, since: datetime, horizon: datetime) -> _Seen:
        oldest, newer_timers = await self._timers.overdue(partition, floor_second(now - OVERDUE) + SECOND)
        if oldest is not None:
            log.info("timers are overdue since %s", oldest, extra={"action": "detect", "partition": partition})
            await self._tickets.send(Ticket(partition, floor_second(now)))
        if since < horizon:
            dues = await self._timers.dues(partition, since, horizon)
            await self._tickets.announce(partition, dues)
        free, newer_runs = await self._runs.any_free(partition, now, self._longest_lock)
        if free:
            await self._tickets.send(Ticket(partition))
        return _Seen(oldest, newer_timers + newer_runs)
