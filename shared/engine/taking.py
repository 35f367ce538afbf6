"""Taking runs that wait for an executor, or whose lock ran out: by turns of their jobs, as far as slots go."""

import logging
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import zip_longest

from shared.engine.announce import TAKE
from shared.engine.crew import Crew, Workshop
from shared.engine.lease import locked
from shared.engine.loading import Loader, handed_back
from shared.engine.logs import about
from shared.engine.perform import ended_as
from shared.engine.slots import Reserved
from shared.engine.workflows import is_own
from shared.giving_way import give_way
from shared.jobs.definition import load_definition
from shared.jobs.model import Idle, Run, Status
from shared.jobs.plan import ON_TIME
from shared.jobs.times import duration_text
from shared.storage.endings import Ending, Rest
from shared.storage.fair import Candidate, Turns
from shared.storage.loads import Loads
from shared.storage.places import run_in, whole_key
from shared.storage.table import Refused
from shared.workflow import registered

log = logging.getLogger("timerjobs.dispatch")


READINGS = 10  # at most, in search of runs that can be read


@dataclass(frozen=True, slots=True)
class Taken:
    """What taking came to: the jobs whose runs got no slot here, whether there are further runs to take, and
    whether any were dealt with, if only by somebody else."""

    without_slot: frozenset[str]
    more: bool
    some: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look(Taken):
    """What one reading came to: also the jobs of which rows were chosen, and whether there are `further` jobs of
    which some may have a slot."""

    chosen: Set[str]
    further: bool


@dataclass(frozen=True, slots=True)
class Queue:
    """Free runs, or those that wait for a workflow of the app; those chosen, and how they are read."""

    name: str
    turns: Turns
    read: Callable[[Turns, Sequence[Candidate]], Awaitable[tuple[Sequence[Run | Idle], bool]]]
    chosen: list[Candidate] = field(default_factory=list)


class Taker:
    """Takes runs for a process (`owner`), each job's first before the second of any."""

    def __init__(
        self, shop: Workshop, loads: Loads, loader: Loader, owner: str, default_max_lateness: timedelta
    ) -> None:
        self._shop = shop
        self._loads = loads
        self._loader = loader
        self._owner = owner
        self._default_max_lateness = default_max_lateness
        self._last: dict[tuple[str, str], str] = {}  # the key that reading begins behind, by partition and queue

    async def take(self, partition: str, crew: Crew) -> Taken:
        """Starts up to 100 of the partition's runs that are free, or wait for a workflow of the app.

        1. Of their keys those are chosen that get a slot, and runs of hosts elsewhere; these are read whole.
        2. Runs of hosts elsewhere whose lock ran out are handed back to wait for another; runs that have waited
           longer than they may are completed as Missed. 3. The others are locked in one transaction; those that
           wait for a workflow by one each. A crash after it: their locks run out. 4. They start.

        Where none of the jobs seen may have a slot, or none of the rows chosen can be read, it goes on to those
        behind. Rows that cannot be read are not to be called for again: detection finds them.
        """
        without_slot, tried = set[str](), set[str]()
        for _ in range(READINGS):
            look = await self._take(partition, crew)
            without_slot |= look.without_slot
            if look.some:
                return Taken(frozenset(without_slot), look.more, some=True)
            tried |= look.chosen
            left = look.more or look.without_slot - tried
            if not (left if look.chosen else look.further):
                break
        return Taken(frozenset(without_slot - tried), more=look.more and not tried, some=False)

    async def _take(self, partition: str, crew: Crew) -> _Look:
        """Likewise, once."""
        now = self._shop.clock()
        queues = await self._queues(partition, now)
        with self._shop.slots.reserving() as reserved:
            without_slot, more = self._choose(queues, reserved)
            found: list[Run | Idle] = []
            for queue in queues:
                some, all_read = await queue.read(queue.turns, queue.chosen)
                self._turn_to(partition, queue, some if not all_read else ())
                more = more or not all_read
                found += some
            free: list[Run] = []
            waiting: list[Idle] = []
            leaving: list[Ending | Rest] = []
            for each in found:
                await give_way()
                run = run_in(each)
                if not is_own(run.service_type):
                    leaving.append(await handed_back(run, self._shop.leaver, now))
                elif late := self._too_late(run, now):
                    leaving.append(await self._missed(each, late, now))
                elif isinstance(each, Run):
                    free.append(each)
                else:
                    waiting.append(each)
            await self._lock(partition, free, now, crew, reserved)
            for idle in waiting:
                await self._load(idle, now, crew, reserved)
            # Their slots are given back only now, lest their rows be chosen once more.
            stuck = await crew.leave(leaving)
        return _Look(
            without_slot=without_slot,
            chosen={row.job_id for queue in queues for row in queue.chosen},
            more=more,
            further=self._shop.slots.free > 0 and any(queue.turns.is_cut for queue in queues),
            some=len(found) > stuck,
        )

    async def _queues(self, partition: str, now: datetime) -> list[Queue]:
        runs = self._shop.runs
        turns = await runs.free(
            partition, now, self._shop.longest_lock, self._last.get((partition, ""), ""), self._is_enough
        )
        queues = [Queue("", turns, runs.read)]
        for name in registered():
            after = self._last.get((partition, name), "")
            turns = await self._loads.waiting(partition, name, after, self._is_enough)
            queues.append(Queue(name, turns, self._loads.read))
        return queues

    def _is_enough(self, seen: Sequence[Candidate]) -> bool:
        slots = self._shop.slots
        able = {row.job_id for row in seen if not is_own(row.service_type) or slots.may_take(row.job_id)}
        return len(able) >= min(TAKE, slots.free)

    def _choose(self, queues: Sequence[Queue], reserved: Reserved) -> tuple[frozenset[str], bool]:
        """Chooses up to 100, a queue's first before the second of any. Gives the jobs that got no slot, and
        whether some are left that might have got one."""
        without_slot, chosen = set[str](), 0
        rows = zip_longest(*([(queue, row) for row in queue.turns.rows] for queue in queues))
        for queue, row in (each for turn in rows for each in turn if each):
            if chosen == TAKE:
                return frozenset(without_slot), True
            if not is_own(row.service_type) or reserved.take(row.job_id):
                queue.chosen.append(row)
                chosen += 1
            else:
                without_slot.add(row.job_id)
        return frozenset(without_slot), any(queue.turns.more for queue in queues)

    def _turn_to(self, partition: str, queue: Queue, read: Sequence[Run | Idle]) -> None:
        """The next to be served is the job behind the last one chosen, or, where none was, the last one seen;
        where not all could be read that were chosen, behind the last one `read`."""
        last = queue.chosen[-1].key if queue.chosen else queue.turns.last
        if read:
            last = whole_key(read[-1])
        if last:
            self._last[partition, queue.name] = last

    def _too_late(self, run: Run, now: datetime) -> str:
        """Why a run that has waited for an executor is not to start any more; '' if it is to.

        What it waited for at its job's gate does not count; and runs that have begun, manual ones and windows wait
        as long as it takes.
        """
        if run.started or run.by_hand or run.window:
            return ""
        try:
            definition = load_definition(run.definition)
            bound = definition.max_lateness(self._default_max_lateness)
            due = run.scheduled + definition.jitter(run.job_id)
        except Exception:  # whatever it is, executing it tells
            return ""
        if bound is None or now - (run.fired_at if run.gated else due) <= max(bound, ON_TIME):
            return ""
        waited = duration_text(timedelta(seconds=(now - run.fired_at) // timedelta(seconds=1)))
        return f"waited for an executor for {waited}, beyond its maxLateness of {duration_text(bound)}"

    async def _missed(self, each: Run | Idle, reason: str, now: datetime) -> Ending:
        run = run_in(each)
        log.warning("a run is missed: %s", reason, extra={"action": "missed", **about(run)})
        ended = replace(ended_as(run, now, Status.MISSED, reason, {}), started=now, attempts=0)
        ending = await self._shop.leaver.ending(run, ended)
        return replace(ending, idle=each if isinstance(each, Idle) else None)

    async def _load(self, waiting: Idle, now: datetime, crew: Crew, reserved: Reserved) -> None:
        if loaded := await self._loader.take(waiting, self._owner, now, now + self._shop.lock_duration):
            self._start(loaded, crew, reserved)

    async def _lock(
        self, partition: str, runs: Sequence[Run], now: datetime, crew: Crew, reserved: Reserved
    ) -> None:
        """Locks the runs, each at the version it was read, and starts them as soon as they are; those somebody
        else took are left out."""
        if not runs:
            return
        until = now + self._shop.lock_duration
        wanted = [locked(run, self._owner, now, until) for run in runs]
        try:
            mine = await self._shop.runs.lock(partition, wanted)
        except Refused:
            if len(runs) > 1:
                middle = len(runs) // 2
                await self._lock(partition, runs[:middle], now, crew, reserved)
                await self._lock(partition, runs[middle:], now, crew, reserved)
                return
            mine = await self._own_lock(wanted[0])
        for run in mine:
            self._start(run, crew, reserved)

    async def _own_lock(self, wanted: Run) -> list[Run]:
        """A lock that was refused may be one's own whose answer was lost."""
        run = await self._shop.runs.get(wanted.job_id, wanted.seq)
        mine = (wanted.owner, wanted.takeovers, wanted.locked_until)
        return [run] if run and (run.owner, run.takeovers, run.locked_until) == mine else []

    def _start(self, run: Run, crew: Crew, reserved: Reserved) -> None:
        reserved.started(run.job_id)
        crew.start(run)
