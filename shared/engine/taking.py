"""Taking runs that wait for an executor, or whose lock ran out: by turns of their jobs, as far as slots go."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import zip_longest

from shared.engine.announce import TAKE
from shared.engine.crew import Crew, Workshop
from shared.engine.loading import Loader, handed_back
from shared.engine.logs import about
from shared.engine.perform import ended_as
from shared.engine.slots import Reserved
from shared.engine.workflows import is_own
from shared.jobs.definition import load_definition
from shared.jobs.model import Idle, Run, Status
from shared.jobs.plan import ON_TIME
from shared.jobs.times import duration_text
from shared.storage.loads import Loads
from shared.storage.places import idle_place
from shared.storage.rows import run_key
from shared.storage.table import Refused
from shared.workflow import registered

log = logging.getLogger("timerjobs.dispatch")


@dataclass(frozen=True, slots=True)
class Taken:
    """What taking came to: the jobs whose runs got no slot here, whether there are further runs to take, and
    whether any were dealt with."""

    without_slot: frozenset[str]
    more: bool
    some: bool


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
        self._last: dict[tuple[str, type[Run | Idle]], str] = {}  # the key of the last row, by partition and kind

    async def take(self, partition: str, crew: Crew) -> Taken:
        """Starts up to 100 of the partition's runs that are free, or wait for a workflow of the app.

        1. Runs of hosts elsewhere whose lock ran out are handed back to wait for another; runs that have waited
           longer than they may are completed as Missed. 2. The others are locked in one transaction, as many as
           get a slot; those that wait for a workflow by one each. A crash after it: their locks run out. 3. They
           start.
        """
        now = self._shop.clock()
        free, more = await self._free(partition, now)
        without_slot = set[str]()
        mine: list[Run | Idle] = []
        with self._shop.slots.reserving() as reserved:
            for each in free:
                run = _run(each)
                if not is_own(run.service_type):
                    crew.leave(await handed_back(run, self._shop.leaver, now))
                elif late := self._too_late(run, now):
                    await self._miss(each, late, now, crew)
                elif reserved.take(run.job_id):
                    mine.append(each)
                else:
                    without_slot.add(run.job_id)
            self._turn_to(partition, free, mine)
            await self._lock(partition, [each for each in mine if isinstance(each, Run)], now, crew, reserved)
            for each in mine:
                if isinstance(each, Idle):
                    await self._load(each, now, crew, reserved)
        return Taken(
            frozenset(without_slot), more, some=len(without_slot) < len({_run(each).job_id for each in free})
        )

    def _turn_to(self, partition: str, free: Sequence[Run | Idle], mine: Sequence[Run | Idle]) -> None:
        """Notes the last job served of each kind of rows, or, where none was, the last one seen: the next is
        first."""
        for kind in (Run, Idle):
            some = [each for each in mine if isinstance(each, kind)] or [e for e in free if isinstance(e, kind)]
            if some:
                last = some[-1]
                self._last[partition, kind] = (
                    idle_place(last) if isinstance(last, Idle) else run_key(last.job_id, last.seq)
                )

    async def _free(self, partition: str, now: datetime) -> tuple[list[Run | Idle], bool]:
        """Up to 100 of both kinds, by turns."""
        after = self._last.get((partition, Run), "")
        free, more = await self._shop.runs.free(partition, now, self._shop.longest_lock, TAKE, after)
        kinds: list[Sequence[Run | Idle]] = [free]
        for service_type in registered():
            after = self._last.get((partition, Idle), "")
            waiting, more_waiting = await self._loads.waiting(partition, service_type, TAKE, after)
            kinds.append(waiting)
            more = more or more_waiting
        found = [each for turn in zip_longest(*kinds) for each in turn if each]
        return found[:TAKE], more or len(found) > TAKE

    def _too_late(self, run: Run, now: datetime) -> str:
        """Why a run that has waited for an executor is not to start any more; '' if it is to.

        What it waited for at its job's gate does not count; and runs that have begun, manual ones and windows wait
        as long as it takes.
        """
        if run.owner or run.takeovers or run.state or run.by_hand or run.window:
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

    async def _miss(self, each: Run | Idle, reason: str, now: datetime, crew: Crew) -> None:
        run = _run(each)
        log.warning("a run is missed: %s", reason, extra={"action": "missed", **about(run)})
        ended = replace(ended_as(run, now, now, Status.MISSED, reason, {}), attempts=0)
        ending = await self._shop.leaver.ending(run, ended)
        crew.leave(replace(ending, idle=each if isinstance(each, Idle) else None))

    async def _load(self, waiting: Idle, now: datetime, crew: Crew, reserved: Reserved) -> None:
        if loaded := await self._loader.take(waiting, self._owner, now + self._shop.lock_duration):
            self._start(loaded, crew, reserved)

    async def _lock(
        self, partition: str, runs: Sequence[Run], now: datetime, crew: Crew, reserved: Reserved
    ) -> None:
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
                await self._lock(partition, runs[:middle], now, crew, reserved)
                await self._lock(partition, runs[middle:], now, crew, reserved)
                return
            mine = await self._own_lock(locked[0])
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


def _run(each: Run | Idle) -> Run:
    return each.run if isinstance(each, Idle) else each
