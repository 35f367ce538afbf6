"""Detection: the periodic search for what no ticket led to. Reads key ranges only, whatever the number of jobs."""

import asyncio
import logging
from datetime import datetime, timedelta

from shared.engine.clock import Clock
from shared.jobs.times import SECOND, floor_second
from shared.storage.jobs import Jobs
from shared.storage.ledger import Ledger, Progress
from shared.storage.runs import Runs
from shared.storage.tickets import Ticket, Tickets
from shared.storage.timers import Timers

log = logging.getLogger("timerjobs.detect")

OVERDUE = timedelta(seconds=5)


class Detector:
    """Finds the runnable instances of the store and sends tickets for them.

    An instance is runnable if it is neither suspended nor completed and

    - it is not locked and has a pending timer that has expired: a timer row overdue; or
    - it has a lock that has expired: a run row whose lock ran out; or
    - it is not locked and its status is executing: a run row without an owner.
    """

    def __init__(
        self,
        jobs: Jobs,
        timers: Timers,
        runs: Runs,
        ledger: Ledger,
        tickets: Tickets,
        *,
        lock_duration: timedelta,
        period: timedelta,
        horizon: timedelta,
        clock: Clock,
    ) -> None:
        self._jobs = jobs
        self._timers = timers
        self._runs = runs
        self._ledger = ledger
        self._tickets = tickets
        self._lock_duration = lock_duration
        self._period = period
        self._horizon = horizon
        self._clock = clock

    async def tick(self) -> bool:
        """One cycle of detection, unless less than a period has passed since the last one ended; whether it ran.

        1. Reads how far the last cycle came (`reach`).
        2. In each partition: a ticket if a timer is overdue, tickets for the timers between `reach` and the
           horizon, a ticket if a run is free. A crash here: the next cycle does the same again; a ticket too
           many does no harm.
        3. Moves `reach` to the horizon, if no other cycle has done so meanwhile.
        """
        now = self._clock()
        progress = await self._ledger.progress()
        if progress and timedelta(0) <= now - progress.cycle_ended < self._period:
            return False
        horizon = floor_second(now + self._horizon)
        since = max(progress.reach, now - OVERDUE) if progress else now - OVERDUE
        await asyncio.gather(*(self._partition(p, now, since, horizon) for p in self._jobs.partitions))
        ended = Progress(reach=horizon, cycle_ended=self._clock(), etag=progress.etag if progress else "")
        if not await self._ledger.advance(ended):
            log.info("another cycle of detection ran beside this one", extra={"action": "detect"})
        return True

    async def _partition(self, partition: str, now: datetime, since: datetime, horizon: datetime) -> None:
        oldest = await self._timers.oldest(partition, before=floor_second(now - OVERDUE) + SECOND)
        if oldest is not None:
            log.info("timers are overdue since %s", oldest, extra={"action": "detect", "partition": partition})
            await self._tickets.send(Ticket(partition, floor_second(now)))
        if since < horizon:
            dues = await self._timers.dues(partition, since, horizon)
            await self._tickets.announce(partition, dues)
        if await self._runs.free(partition, now, self._lock_duration, limit=1):
            await self._tickets.send(Ticket(partition))
