"""Dispatch: a ticket comes in, what is due in its partition is fired, what may run is executed."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import uuid4

from shared.engine.aiming import Pass
from shared.engine.announce import TAKE, Announcer
from shared.engine.crew import Crew, Workshop
from shared.engine.fire import Due, Fired, Firer
from shared.engine.loading import Loader, handed_back
from shared.engine.removal import Remover
from shared.engine.workflows import is_own
from shared.errors import TimerJobsError
from shared.jobs.model import Idle, NewerTimer, Removal, Run
from shared.jobs.times import floor_second
from shared.storage.table import Refused
from shared.storage.tickets import Ticket, Tickets
from shared.storage.timers import Timers
from shared.workflow import registered

log = logging.getLogger("timerjobs.dispatch")

PAGE = 100
# A page in a process that executes all it can: what fills a transaction, since most timers take four rows.
TURN = 25
PAGES = 10  # of one round; more are for the next, which reads the clock anew
BUDGET = timedelta(seconds=20)
# How long a pass waits itself for a ticket that came early by this process's clock.
PATIENCE = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What dispatch works with beside the workshop of its crews."""

    timers: Timers
    tickets: Tickets
    announcer: Announcer
    firer: Firer
    remover: Remover
    loader: Loader


class Dispatcher:
    """Carries out tickets. Any number of dispatchers may be at one partition; each timer is won by one."""

    def __init__(self, line: Line, shop: Workshop, owner: str) -> None:
        self._line = line
        self._shop = shop
        self._owner = owner
        self._in_line: set[str] = set()

    async def carry_out(self, ticket: Ticket) -> None:
        """What the ticket says. Raises StoreFailed where storage does; the ticket then comes again."""
        if ticket.due is None:
            await self.take_runs(ticket.partition)
        elif await self._has_come(ticket, ticket.due):
            await self.fire_due(ticket.partition)

    async def _has_come(self, ticket: Ticket, due: datetime) -> bool:
        """Waits for a ticket that is early by a moment; one earlier than that is sent again for the rest."""
        early = due - self._shop.clock()
        if early > PATIENCE:
            await self._line.tickets.send(ticket, early)
            return False
        while early > timedelta(0):
            await asyncio.sleep(early.total_seconds())
            early = due - self._shop.clock()
        return True

    async def fire_due(self, partition: str) -> None:
        """A pass: round and round until nothing of the partition is due, or its 20 seconds are spent.

        Then one more ticket goes out for the rest. Runs started here are awaited before it returns, and what
        their ends let through a gate is fired in turn.
        """
        started = self._shop.clock()
        async with Crew(partition, self._shop) as crew:
            more = True
            while more and self._shop.clock() - started < BUDGET:
                crew.again = False
                more = await self.round(partition, self._shop.clock(), crew)
                if not more:
                    await crew.settled()
                    more = crew.again
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
            crowded = not self._shop.capacity.has_room(PAGE)
            timers, after = await self._line.timers.due(partition, now, after, TURN if crowded else PAGE)
            due = [timer for timer in timers if not isinstance(timer, Removal | NewerTimer)]
            fired = await self._fire(partition, due, now, crew)
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

    async def _fire(self, partition: str, due: Sequence[Due], now: datetime, crew: Crew) -> Fired:
        """One page. What was committed is announced and started also where a later batch fails."""
        capacity = self._shop.capacity
        room = await capacity.stand_in_line(len(due))

        def start(run: Run) -> None:
            nonlocal room
            room -= 1
            capacity.release(1)
            crew.start(run)

        fired = Fired(start=start)
        this = Pass(
            partition=partition,
            now=now,
            owner=self._owner,
            mark=uuid4().hex,
            room=room,
            locked_until=self._shop.clock() + self._shop.lock_duration,
        )
        try:
            await self._line.firer.fire(due, this, fired)
        finally:
            capacity.release(room)
            await self._line.announcer.written(partition, [at for at in fired.dues if at > now], now)
            await self._line.announcer.runs(partition, fired.unlocked)
        return fired

    async def _remove(self, timer: Removal, now: datetime) -> None:
        try:
            await self._line.remover.carry_on(timer, now)
        except TimerJobsError as error:
            log.error("a removal stands still: %s", error, extra={"action": "remove", "job": timer.job_id})

    async def take_runs(self, partition: str) -> None:
        """Executes up to 100 of the partition's runs that are unlocked or whose lock ran out.

        Taken by one transaction; those that wait for a workflow of this app by one each. One more ticket goes out
        if there are more.
        """
        now, capacity = self._shop.clock(), self._shop.capacity
        free = await self._free(partition, now)
        room = capacity.reserve(len(free))
        waited = bool(free) and room == 0
        if waited:
            room = await self._stand_in_line(partition, len(free))
            if room == 0:
                return
        async with Crew(partition, self._shop) as crew:
            try:
                if waited:
                    now = self._shop.clock()
                    free = await self._free(partition, now)
                await self._take(partition, [r for r in free[:room] if isinstance(r, Run)], now, crew)
                for idle in [r for r in free[:room] if isinstance(r, Idle)]:
                    if loaded := await self._line.loader.take(idle, self._owner, now + self._shop.lock_duration):
                        crew.start(loaded)
            finally:
                capacity.release(room)
            if room < len(free) or len(free) == TAKE:
                await self._line.tickets.send(Ticket(partition))
        if crew.again:
            await self._line.tickets.send(Ticket(partition, floor_second(self._shop.clock())))

    async def _free(self, partition: str, now: datetime) -> list[Run | Idle]:
        """Up to 100 runs that this process can execute: free ones, and those that wait for workflows of the app.

        Free runs of hosts elsewhere, whose lock ran out, are handed back to wait for another.
        """
        free = await self._shop.runs.free(partition, now, self._shop.longest_lock, TAKE)
        found: list[Run | Idle] = [run for run in free if is_own(run.service_type)]
        if len(found) < len(free):
            async with Crew(partition, self._shop) as crew:
                for run in free:
                    if not is_own(run.service_type):
                        crew.leave(await handed_back(run, self._shop.leaver, now))
        for service_type in registered():
            if len(found) < TAKE:
                found += await self._line.loader.waiting(partition, service_type, TAKE - len(found))
        return found

    async def _stand_in_line(self, partition: str, most: int) -> int:
        """Room in a process that executes all it can. 0: there is none, and a ticket calls another process (or
        this one again); or a ticket for this partition's runs stands in line already, which is enough."""
        if partition in self._in_line:
            return 0
        self._in_line.add(partition)
        try:
            room = await self._shop.capacity.stand_in_line(most)
        finally:
            self._in_line.discard(partition)
        if room == 0:
            await self._line.tickets.send(Ticket(partition))
        return room

    async def _take(self, partition: str, runs: list[Run], now: datetime, crew: Crew) -> None:
        """Locks the runs, each at the version it was read, and starts them as soon as they are; those somebody
        else took are left out."""
        if not runs:
            return
        locked = [
            replace(
                run,
                owner=self._owner,
                locked_until=now + self._shop.lock_duration,
                takeovers=run.takeovers + (1 if run.owner else 0),
            )
            for run in runs
        ]
        try:
            mine = await self._shop.runs.lock(partition, locked)
        except Refused:
            if len(runs) > 1:
                middle = len(runs) // 2
                await self._take(partition, runs[:middle], now, crew)
                await self._take(partition, runs[middle:], now, crew)
                return
            mine = await self._own_lock(locked[0])
        for run in mine:
            crew.start(run)

    async def _own_lock(self, wanted: Run) -> list[Run]:
        """A lock that was refused may be one's own whose answer was lost."""
        run = await self._shop.runs.get(wanted.job_id, wanted.seq)
        mine = (wanted.owner, wanted.takeovers, wanted.locked_until)
        return [run] if run and (run.owner, run.takeovers, run.locked_until) == mine else []
