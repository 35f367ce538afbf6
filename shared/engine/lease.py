"""The lease on a run: renewed while the run is executed; losing it stops the run."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

from shared.engine.clock import Clock
from shared.errors import NewerFormat
from shared.jobs.model import Run
from shared.storage.runs import SKEW, Runs
from shared.storage.table import Refused, StoreFailed

CHECKPOINT_TRIES = 5


class LeaseLost(Exception):
    """The run belongs to somebody else now, or may: whoever held it writes nothing more."""


class Lease:
    """A locked run, kept locked. `run` is the run at the version last written."""

    def __init__(self, run: Run, runs: Runs, duration: timedelta, clock: Clock) -> None:
        self.run = run
        self._runs = runs
        self._duration = duration
        self._clock = clock
        self._stop = asyncio.Event()
        self._writing = asyncio.Lock()  # a renewal and a checkpoint never have one version in hand

    async def keep(self) -> None:
        """Renews when half of the lock's life is over, until `release`. Raises LeaseLost once it is not held."""
        while not await self._stopped_within(self._half_of_the_rest()):
            await self.renew()

    def _half_of_the_rest(self) -> timedelta:
        until = self.run.locked_until
        rest = until - SKEW - self._clock() if until else timedelta(0)
        return max(self._duration / 20, min(self._duration, rest) / 2)

    async def renew(self) -> None:
        """Prolongs the lock. Raises LeaseLost if it was taken, or storage did not answer until it ran out."""
        while True:
            try:
                await self._lock_until(self._clock() + self._duration)
            except StoreFailed as error:
                if self.expired(self._clock()):
                    raise LeaseLost(f"storage did not answer before the lock ran out: {error}") from error
                await self._stopped_within(timedelta(seconds=1))
            else:
                return

    async def _lock_until(self, until: datetime) -> None:
        async with self._writing:
            wanted = replace(self.run, locked_until=until)
            try:
                (self.run,) = await self._runs.lock(self._runs.partition(self.run.job_id), [wanted])
            except Refused:
                self.run = await self._current()  # a renewal whose answer was lost, or a gate put up meanwhile

    async def checkpoint(self, state: bytes, is_progress: bool = True) -> None:
        """Stores how far the run is, and so proves the lease; where that `is_progress`, take-overs count anew.

        Raises LeaseLost.
        """
        async with self._writing:
            for _ in range(CHECKPOINT_TRIES):
                steady = self.run.takeovers if is_progress else self.run.steady
                wanted = replace(self.run, state=state, steady=steady)
                try:
                    self.run = await self._runs.checkpoint(wanted)
                    return
                except Refused:
                    self.run = await self._current()
                    if self.run.state == state:
                        return  # stored by a try whose answer was lost
            raise LeaseLost("the run keeps being changed")

    async def _current(self) -> Run:
        """The run as it stands, if it is still held here. Raises LeaseLost."""
        try:
            current = await self._runs.get(self.run.job_id, self.run.seq)
        except NewerFormat as error:
            raise LeaseLost(f"a newer version of the app has taken the run over: {error}") from error
        if current is None or not same_holder(current, self.run):
            raise LeaseLost("the run was taken over, cancelled or removed")
        return current

    def expired(self, now: datetime) -> bool:
        """Whether the owner must count the lock as gone at `now`."""
        return self.run.locked_until is None or now > self.run.locked_until - SKEW

    def release(self) -> None:
        """Asks `keep` to end; a renewal under way is finished, so await it before completion."""
        self._stop.set()

    async def _stopped_within(self, wait: timedelta) -> bool:
        if self._stop.is_set():
            return True
        try:
            await asyncio.wait_for(self._stop.wait(), wait.total_seconds())
        except TimeoutError:
            return False
        return True


def locked(run: Run, owner: str, now: datetime, until: datetime) -> Run:
    """The run, locked by `owner` from now until then. The first lock is the run's start; one of a run that another
    owner has locked before is a take-over."""
    return replace(
        run,
        owner=owner,
        locked_until=until,
        started=run.started or now,
        takeovers=run.takeovers + (1 if run.owner else 0),
    )


def same_holder(one: Run, other: Run) -> bool:
    """Whether two readings of a run are of one holder's turn."""
    return (one.stamp, one.owner, one.takeovers) == (other.stamp, other.owner, other.takeovers)
