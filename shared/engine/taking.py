"""Taking runs that wait for an executor, or whose lock ran out: by turns of their jobs, as far as slots go."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

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
from shared.storage.rows import run_key
from shared.storage.table import Refused
from shared.workflow import registered

log = logging.getLogger("timerjobs.dispatch")


@dataclass(frozen=True, slots=True)
class Taken:
    """What taking came to: the jobs whose runs got no slot here, and whether there are further runs to take."""

    without_slot: frozenset[str]
    more: bool


class Taker:
    """Takes runs for a process (`owner`), each job's first before the second of any."""

    def __init__(self, shop: Workshop, loader: Loader, owner: str, default_max_lateness: timedelta) -> None:
        self._shop = shop
        self._loader = loader
        self._owner = owner
        self._default_max_lateness = default_max_lateness
        self._last: dict[str, str] = {}  # of each partition, the key of the last run taken: the next job is first

    async def take(self, partition: str, crew: Crew) -> Taken:
        """Starts up to 100 of the partition's runs that are free, or wait for a workflow of the app.

        1. Runs of hosts elsewhere whose lock ran out are handed back to wait for another; runs that have waited
           longer than they may are completed as Missed. 2. The others are locked in one transaction, as many as
           get a slot; those that wait for a workflow by one each. A crash after it: their locks run out. 3. They
           start.
        """
        now = self._shop.clock()
        free, more = await self._free(partition, now)
        with self._shop.slots.reserving() as reserved:
            mine: list[Run | Idle] = []
            without_slot = set[str]()
            for each in free:
                run = each.run if isinstance(each, Idle) else each
                if not is_own(run.service_type):
                    crew.leave(await handed_back(run, self._shop.leaver, now))
                elif late := self._too_late(run, now):
                    await self._miss(each, late, now, crew)
                elif reserved.take(run.job_id):
                    mine.append(each)
                    self._last[partition] = run_key(run.job_id, run.seq)
                else:
                    without_slot.add(run.job_id)
            await self._lock(partition, [each for each in mine if isinstance(each, Run)], now, crew, reserved)
            for each in mine:
                if isinstance(each, Idle):
                    await self._load(each, now, crew, reserved)
        if not (without_slot or more):
            self._last.pop(partition, None)
        return Taken(frozenset(without_slot), more)

    async def _free(self, partition: str, now: datetime) -> tuple[list[Run | Idle], bool]:
        after = self._last.get(partition, "")
        free, more = await self._shop.runs.free(partition, now, self._shop.longest_lock, TAKE, after)
        found: list[Run | Idle] = [*free]
        for service_type in registered():
            if len(found) < TAKE:
                waiting, more_waiting = await self._loader.waiting(
                    partition, service_type, TAKE - len(found), after
                )
                found += waiting
                more = more or more_waiting
        return found, more

    def _too_late(self, run: Run, now: datetime) -> str:
        """Why a run that has waited for an executor is not to start any more; '' if it is to.

        It was in time when it was fired, so what it waited for before, as at its job's gate, does not count; and
        runs that have begun, manual ones and windows wait as long as it takes.
        """
        if run.owner or run.takeovers or run.state or run.by_hand or run.window:
            return ""
        try:
            definition = load_definition(run.definition)
            bound = definition.max_lateness(self._default_max_lateness)
            due = run.scheduled + definition.jitter(run.job_id)
        except Exception:  # whatever it is, executing it tells
            return ""
        if bound is None or not run.fired_at - due <= max(bound, ON_TIME) < now - due:
            return ""
        waited = duration_text(timedelta(seconds=(now - run.fired_at) // timedelta(seconds=1)))
        return f"waited for an executor for {waited}, beyond its maxLateness of {duration_text(bound)}"

    async def _miss(self, each: Run | Idle, reason: str, now: datetime, crew: Crew) -> None:
        run = each.run if isinstance(each, Idle) else each
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
