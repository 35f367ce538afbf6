"""Dispatch: a ticket comes in, what is due in its partition is fired, what may run is executed."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import uuid4

from shared import metrics
from shared.engine.aiming import Pass
from shared.engine.announce import Announcer
from shared.engine.crew import GATHER, Crew, Workshop
from shared.engine.fire import Due, Fired, Firer
from shared.engine.invocations import Firing, Invocations
from shared.engine.removal import Remover
from shared.engine.slots import LONGEST
from shared.engine.taking import Taken, Taker
from shared.engine.workflows import is_own
from shared.errors import TimerJobsError
from shared.jobs.definition import load_definition
from shared.jobs.model import Baton, Idle, NewerTimer, Removal, Run
from shared.jobs.times import floor_second
from shared.storage.table import StoreFailed
from shared.storage.tickets import Ticket, Tickets
from shared.storage.timers import Timers

log = logging.getLogger("timerjobs.dispatch")

PAGE = 100
# A page in a process that executes all it can: what fills a transaction, since most timers take four rows.
TURN = 25
PAGES = 10  # of one round; more are for the next, which reads the clock anew
BUDGET = timedelta(seconds=20)
# How long a pass waits itself for a ticket that came early by this process's clock.
EARLY = timedelta(seconds=2)
# When a ticket comes again whose runs got no slot here, or after a fault. Any process may get it.
LATER = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What dispatch works with beside the workshop of its crews."""

    timers: Timers
    tickets: Tickets
    announcer: Announcer
    firer: Firer
    remover: Remover
    taker: Taker
    invocations: Invocations


class Dispatcher:
    """Carries out tickets. Any number of dispatchers may be at one partition; each timer is won by one."""

    def __init__(self, line: Line, shop: Workshop, owner: str) -> None:
        self._line = line
        self._shop = shop
        self._owner = owner
        # The jobs of each partition whose waiting runs a pass takes as slots become free.
        self._lingering: dict[str, set[str]] = {}
        self._called: dict[str, datetime] = {}  # partitions with a hidden ticket of this process, and until when

    async def carry_out(self, ticket: Ticket) -> None:
        """What the ticket says: returns when what is due has been fired, or later, to stay open for runs under
        way.

        Raises StoreFailed where storage fails before; the ticket then comes again.
        """
        partition = ticket.partition

        async def work(firing: Firing) -> None:
            if ticket.due is None:
                await self.take_runs(partition, firing)
            elif await self._has_come(ticket, ticket.due, firing):
                await self.fire_due(partition, firing)

        async def again(error: Exception) -> None:
            _tell("a pass failed while its runs were under way; its ticket is sent again", partition, error)
            await self._later(ticket)

        await self._line.invocations.carry(work, again, lambda: self._call(partition))

    async def _has_come(self, ticket: Ticket, due: datetime, firing: Firing) -> bool:
        """Waits for a ticket that is early by a moment, which holds no invocation; one earlier than that is sent
        again for the rest."""
        while (early := due - self._shop.clock()) > timedelta(0):
            if firing.has_ended and early > EARLY:  # the clock was set back
                await self._later(ticket)
                return False
            if early > EARLY:
                await self._line.tickets.send(ticket, early)
                return False
            firing.end()
            await asyncio.sleep(early.total_seconds())
        return True

    async def fire_due(self, partition: str, firing: Firing | None = None) -> None:
        """A pass: round and round until nothing of the partition is due, or its 20 seconds are spent; then one
        more ticket goes out for the rest.

        Then `firing` ends; the pass awaits the runs that it has started, and fires what their ends put back to
        the timers.
        """
        firing, until = firing or Firing(), self._shop.clock() + BUDGET
        async with Crew(partition, self._shop, until) as crew:
            await self._carried(crew, firing, self._rounds(partition, crew, until))
            while await crew.put_back():
                await self._carried(crew, firing, self._rounds(partition, crew, until))

    async def _carried(self, crew: Crew, firing: Firing, work: Awaitable[None]) -> None:
        """Fires. The first failure is raised to the invocation, at once also while runs are under way. A later
        one is logged, and a ticket repeats the work; if that cannot be sent, detection finds it."""
        partition = crew.partition
        try:
            await work
        except Exception as error:
            if not firing.has_ended:
                if not crew.is_quiet:
                    firing.end(error)
                raise
            _tell("a pass failed after it had given its ticket back", partition, error)
            await self._later(Ticket(partition, floor_second(self._shop.clock())))
        firing.end()

    async def _rounds(self, partition: str, crew: Crew, until: datetime) -> None:
        more = True
        while more and self._shop.clock() < until:
            more = await self.round(partition, self._shop.clock(), crew)
        if more:
            await self._line.tickets.send(Ticket(partition, floor_second(self._shop.clock())))

    async def round(self, partition: str, now: datetime, crew: Crew) -> bool:
        """Fires what is due at `now`, page by page; whether there is more to fire by now.

        For each page: 1. its transactions; 2. its runs are started, the tickets of what comes next go out,
        and those of runs for others. A crash between the two leaves runs locked, which are taken over, and
        loses tickets, which detection sends. Timers of a newer format are passed over, and a page of nothing
        else is none: however many stand in front, those behind them are fired.
        """
        after, again, turns, pages = "", False, 0, 0
        while pages < PAGES:
            crowded = self._shop.slots.free < PAGE
            timers, after = await self._line.timers.due(partition, now, after, TURN if crowded else PAGE)
            due = [timer for timer in timers if not isinstance(timer, Removal | NewerTimer)]
            fired = await self._page(partition, due, now, crew)
            if fired.met_another:
                return False
            for timer in timers:
                if isinstance(timer, Removal):
                    await self._remove(timer, now)
            turns += fired.turns
            again = again or any(due_at <= now for due_at in fired.dues)
            if not after:
                return again
            if crowded and turns:
                break  # time has passed in the line
            pages += not all(isinstance(timer, NewerTimer) for timer in timers)
        return again or turns > 0

    async def _page(self, partition: str, due: Sequence[Due], now: datetime, crew: Crew) -> Fired:
        """One page, in as many parts as slots become free for; all that is left of it once none does, its runs
        then for others. What was committed is announced and started also where a later batch fails."""
        fired = Fired()
        try:
            while due and not fired.met_another:
                part = await self._part(due, crew)
                await self._fire(partition, part, now, crew, fired)
                done = set(map(id, part))
                due = [timer for timer in due if id(timer) not in done]
        finally:
            await self._line.announcer.written(partition, [at for at in fired.dues if at > now], now)
            await self._hand_over(partition, fired.unlocked)
        return fired

    async def _part(self, due: Sequence[Due], crew: Crew) -> Sequence[Due]:
        """The timers to fire at once: of jobs that have no slot yet, as many as get one; all, where none becomes
        free or the pass has waited for them as long as it may. Jobs that have slots already are not waited for."""
        slots = self._shop.slots
        if slots.free >= len(due) or crew.patience_left <= 0:
            return due
        first = [timer for timer in due if not slots.has(timer.job_id) and _needs_slot(timer)]
        if slots.free >= len(first):
            return due
        most = min(len(first), TURN)
        since = time.monotonic()
        free = await slots.room(most, crew.patience_left)
        waited, fast_enough = time.monotonic() - since, free == most
        crew.patience_left = LONGEST if fast_enough else crew.patience_left - waited
        later = set(map(id, first[free:])) if free else set()
        return [timer for timer in due if id(timer) not in later]

    async def _hand_over(self, partition: str, runs: Sequence[Run]) -> None:
        """Announces runs that got no slot, unless a pass of this process takes them as soon as there is one and
        has called for others already; and those of hosts elsewhere."""
        own = [run for run in runs if is_own(run.service_type)]
        metrics.runs_without_slot.add(len(own))
        if partition in self._lingering:
            self._lingering[partition].update(run.job_id for run in own)
            self._shop.slots.look()
            runs = [run for run in runs if not is_own(run.service_type)]
            if own:
                await self._call(partition)
        await self._line.announcer.runs(partition, [run.service_type for run in runs])

    async def _fire(self, partition: str, due: Sequence[Due], now: datetime, crew: Crew, fired: Fired) -> None:
        with self._shop.slots.reserving() as reserved:

            def start(run: Run) -> None:
                reserved.started(run.job_id)
                crew.start(run)

            locked_at = self._shop.clock()
            this = Pass(
                partition=partition,
                now=now,
                owner=self._owner,
                mark=uuid4().hex,
                reserved=reserved,
                start=start,
                locked_at=locked_at,
                locked_until=locked_at + self._shop.lock_duration,
            )
            await self._line.firer.fire(due, this, fired)

    async def _remove(self, timer: Removal, now: datetime) -> None:
        try:
            await self._line.remover.carry_on(timer, now)
        except TimerJobsError as error:
            log.error("a removal stands still: %s", error, extra={"action": "remove", "job": timer.job_id})

    async def take_runs(self, partition: str, firing: Firing | None = None) -> None:
        """A pass that executes the partition's runs that are unlocked or whose lock ran out, up to 100, and sends
        one more ticket if there are more.

        Those that get no slot here are called for in 5 seconds, by a ticket that any process may get. For the rest
        of its 20 seconds the pass takes them itself as slots become free; one such pass in a partition is enough.
        """
        firing, until = firing or Firing(), self._shop.clock() + BUDGET
        async with Crew(partition, self._shop, until) as crew:
            await self._carried(crew, firing, self._take(partition, crew, until))
            while await crew.put_back():
                await self._carried(crew, firing, self._rounds(partition, crew, until))

    async def _take(self, partition: str, crew: Crew, until: datetime) -> None:
        taken = await self._line.taker.take(partition, crew)
        if taken.without_slot and partition in self._lingering:
            self._lingering[partition] |= taken.without_slot
            self._shop.slots.look()
        elif taken.without_slot:
            self._lingering[partition] = set(taken.without_slot)
            crew.beside(self._linger(partition, crew, until))
        await self._call_for_rest(partition, taken)

    async def _linger(self, partition: str, crew: Crew, until: datetime) -> None:
        """Takes more as soon as a job that got no slot may have one; at the end calls for what is left."""
        jobs = self._lingering[partition]
        taken = Taken(frozenset(jobs), more=True, some=False)
        try:
            while jobs and await self._opens_to(jobs, until):
                jobs.clear()
                taken = await self._line.taker.take(partition, crew)
                jobs |= taken.without_slot
            await self._call_for_rest(partition, replace(taken, without_slot=frozenset(jobs)))
        except Exception as error:
            _tell("waiting runs could not be taken", partition, error)
            await self._call(partition)
        finally:
            del self._lingering[partition]

    async def _call_for_rest(self, partition: str, taken: Taken) -> None:
        """Sends a ticket for further runs: at once where taking got on, in 5 seconds where it did not."""
        if taken.more and taken.some:
            await self._line.tickets.send(Ticket(partition))
        elif taken.more or taken.without_slot:
            await self._call(partition)

    async def _opens_to(self, jobs: Collection[str], until: datetime) -> bool:
        """Waits until one of the jobs may have a slot; False if none may by `until`. Slots become free in batches,
        and not all who wait for one should read at once: so a moment passes, of another length for each."""
        slots = self._shop.slots
        left = until - self._shop.clock()
        try:
            async with asyncio.timeout(max(0.0, left.total_seconds())):
                while not slots.is_open_to(jobs):
                    await slots.open_to(jobs)
                    await asyncio.sleep(random.uniform(0, 2 * GATHER))
        except TimeoutError:
            return False
        return True

    async def _call(self, partition: str) -> None:
        """Calls for somebody to take the partition's runs in 5 seconds, unless a call is under way."""
        if not self._is_called(partition):
            self._called[partition] = self._shop.clock() + LATER
            await self._later(Ticket(partition))

    def _is_called(self, partition: str) -> bool:
        until = self._called.get(partition)
        return until is not None and timedelta(0) < until - self._shop.clock() <= LATER

    async def _later(self, ticket: Ticket) -> None:
        try:
            await self._line.tickets.send(ticket, LATER)
        except StoreFailed as failure:
            message = "a ticket was not sent, and is left to detection: %s"
            log.warning(message, failure, extra={"action": "announce", "partition": ticket.partition})


def _needs_slot(timer: Due) -> bool:
    """Whether a run of it may start here: one of hosts elsewhere does not, nor one that cannot be read."""
    try:
        if isinstance(timer, Baton):
            return is_own(load_definition(timer.core.definition).service_type)
        return isinstance(timer, Idle) and is_own(timer.run.service_type)
    except Exception:  # whatever a stored definition can make reading do
        return False


def _tell(message: str, partition: str, error: Exception) -> None:
    """Tells of a fault that fails no invocation, so that the platform does not."""
    metrics.faults.add(1)
    log.error(message, exc_info=error, extra={"action": "dispatch", "partition": partition})
