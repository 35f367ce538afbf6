"""Slots: how many actions this process has under way at once, and how jobs share them."""

import asyncio
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from types import TracebackType
from typing import Self

from shared import metrics

LOOK = 0.025  # seconds at least between two looks whether a slot has been given back
# Looks in vain after which nobody waits any longer. A loop that is busy itself looks less often, and what has the
# slots gets its time all the same before it counts as hanging.
PATIENCE = 10
LONGEST = 5.0  # seconds that a pass waits for slots at most, without getting as many as it asked for


class Slots:
    """The slots of a process. A run has one while it is executed, each further action of it beside takes one more.

    A job's first slot may be any that is free. A further one comes from the first half of the slots alone, and
    only while the job has fewer than remain free there. So a job alone gets a quarter of them all, ten jobs a
    twentieth each, and whatever hangs, half of the slots is left to jobs that have none. `per_job` bounds a job
    besides.
    """

    def __init__(self, limit: int, per_job: int, patience: int = PATIENCE) -> None:
        self.patience = patience
        self._limit = limit
        self._per_job = per_job
        self.taken = 0
        self.starting = 0  # taken for runs whose start is being committed
        self._by_job: Counter[str] = Counter()
        self._line = asyncio.Lock()  # who waits for several is served in order
        self._given = asyncio.Event()
        self._in_vain = 0  # looks since a slot was given back

    @property
    def free(self) -> int:
        """How many are not; none also where more are in use than there are."""
        return max(0, self._limit - self.taken)

    def may_take(self, job_id: str) -> bool:
        """Whether the job may have one more now."""
        has = self._by_job[job_id]
        if not has:
            return self.free >= 1
        return has < min(self._per_job, self.free - self._limit // 2)

    def take(self, job_id: str) -> bool:
        """Takes one for the job if it may have it."""
        if not self.may_take(job_id):
            return False
        self.add(job_id)
        return True

    def add(self, job_id: str) -> None:
        """Takes one for the job whatever the rule says: of a run that is its own already."""
        self._by_job[job_id] += 1
        self._count(1)

    def give(self, job_id: str) -> None:
        """Gives one back."""
        self._by_job[job_id] -= 1
        if not self._by_job[job_id]:
            del self._by_job[job_id]
        self._count(-1)
        self._in_vain = 0
        self._given.set()

    def _count(self, change: int) -> None:
        self.taken += change
        metrics.slots_taken.set(self.taken)

    def holding(self) -> "Held":
        """Slots to be taken for what a run does beside."""
        return Held(self)

    def reserving(self) -> "Reserved":
        """Slots to be taken for runs that are about to start."""
        return Reserved(self)

    async def room(self, most: int, longest: float = LONGEST) -> int:
        """Waits until `most` slots are free, first come, first served, but no more than `longest` seconds; gives
        how many are, `most` at the most.

        Who is first in line looks `patience` times and then goes on with fewer. None are waited for when none has
        been given back for so many looks: what has them hangs. Only runs that have started can hang.
        """
        if self._line.locked() or self.free < most:
            with suppress(TimeoutError):
                async with asyncio.timeout(longest), self._line:
                    await self._some(min(most, self._limit))
        return min(most, self.free)

    async def _some(self, most: int) -> None:
        looks = 0
        while self.free < most and (looks if self.free else self._in_vain) < self.patience:
            looks += 1
            self._in_vain += not (self.starting or self.free)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._free(most)

    async def _free(self, most: int) -> None:
        while self.free < most:
            await self._any_given()

    def has(self, job_id: str) -> bool:
        """Whether the job has any."""
        return self._by_job[job_id] > 0

    def look(self) -> None:
        """Has those who wait look again: what they wait for has changed."""
        self._given.set()

    def is_open_to(self, jobs: Collection[str]) -> bool:
        """Whether one of the jobs may have a slot now."""
        return any(map(self.may_take, jobs))

    async def open_to(self, jobs: Collection[str]) -> None:
        """Waits until one of the jobs may have a slot."""
        while not self.is_open_to(jobs):
            await self._any_given()

    async def _any_given(self) -> None:
        self._given.clear()
        await self._given.wait()


class Held:
    """Slots taken one by one. Leaving the context gives back those that are left."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._by_job: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for job_id in list(self._by_job.elements()):
            self.give(job_id)

    def take(self, job_id: str) -> bool:
        """Takes one for the job if it may have it."""
        taken = self._slots.take(job_id)
        if taken:
            self._count(job_id, 1)
        return taken

    def add(self, job_id: str) -> None:
        """Takes one whatever the rule says."""
        self._slots.add(job_id)
        self._count(job_id, 1)

    def give(self, job_id: str) -> None:
        """Gives one back."""
        self._count(job_id, -1)
        self._slots.give(job_id)

    def _count(self, job_id: str, change: int) -> None:
        self._by_job[job_id] += change


class Reserved(Held):
    """Slots taken for runs that are about to start. Leaving the context gives back those of runs that did not."""

    def started(self, job_id: str) -> None:
        """A run of the job has started; its slot is its own from here on."""
        self._count(job_id, -1)

    def _count(self, job_id: str, change: int) -> None:
        super()._count(job_id, change)
        self._slots.starting += change
