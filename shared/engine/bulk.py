"""Many operations at once: each its own answer, new jobs stored many to a transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import uuid4

from shared.engine.admin import Admin, Conditions
from shared.engine.announce import Announcer
from shared.engine.handwork import Handwork
from shared.errors import InvalidInput, NewerFormat
from shared.jobs.model import Job, Run, State, Waiting
from shared.storage.jobs import Jobs, creation
from shared.storage.table import Refused, Write, pack_units

AT_ONCE = 16  # operations and transactions under way
ANYHOW = Conditions()


@dataclass(slots=True)
class Order:
    """One operation on one job, and what came of it: its HTTP status with the job, or the run it started; or
    the error that it met. Without either it was not carried out, or not to its end.

    `job_id` is None only of a new job whose id is still to be made.
    """

    op: str
    job_id: str | None
    body: Any = None
    status: int = 0
    made: Job | Run | Waiting | None = None
    error: Exception | None = None

    def done(self, status: int, made: Job | Run | Waiting | None = None) -> None:
        """Notes what came of it."""
        self.status, self.made = status, made


@dataclass(frozen=True)
class _Draft:
    """A job that is to be created by one transaction with others, all of which bear their round's `mark`."""

    order: Order
    job: Job
    mark: str

    @cached_property
    def writes(self) -> Sequence[Write]:
        return creation(self.job, self.mark)


class Bulk:
    """Carries out orders."""

    def __init__(self, admin: Admin, handwork: Handwork, jobs: Jobs, announcer: Announcer) -> None:
        self._admin = admin
        self._handwork = handwork
        self._jobs = jobs
        self._announcer = announcer

    async def carry_out(self, orders: Sequence[Order], now: datetime) -> None:
        """Carries out the orders, up to 16 at once; those for the same job in their order.

        Each notes what came of it; none is kept from it by another that fails. If this is cancelled, some have
        been carried out and some not; none is half done.
        """
        room = asyncio.Semaphore(AT_ONCE)
        for one_of_each in _rounds(orders):
            drafts, others = await self._drafted(one_of_each, now)
            async with asyncio.TaskGroup() as group:
                for partition, of_partition in _by_partition(drafts, self._jobs).items():
                    for batch in pack_units(of_partition):
                        group.create_task(self._create(partition, batch, now, room))
                for order in others:
                    group.create_task(_noted(order, room, self._operation(order, now)))

    async def _drafted(self, orders: Sequence[Order], now: datetime) -> tuple[list[_Draft], list[Order]]:
        """The new jobs that orders ask for, and the other orders.

        Among the others are those whose body makes no new job, since it may yet be right for one that exists;
        and those whose job would be completed from the start, of which an event tells only if it is new.
        """
        drafts: list[_Draft] = []
        others: list[Order] = []
        mark = uuid4().hex
        for order in orders:
            try:
                if order.op == "put":
                    job, _ = await self._admin.draft(order.body, now, order.job_id)
                    order.job_id = job.id
                    if job.state is not State.COMPLETED:
                        drafts.append(_Draft(order, job, mark))
                        continue
                others.append(order)
            except Exception as error:
                if isinstance(error, InvalidInput) and order.job_id is not None:
                    others.append(order)
                else:
                    order.error = error
        return drafts, others

    async def _create(
        self, partition: str, batch: Sequence[_Draft], now: datetime, room: asyncio.Semaphore
    ) -> None:
        """Creates jobs in one transaction. If it is refused, those that exist are replaced, each on its own, and
        the rest is created; if none exists, one is at fault, and each goes on its own."""
        try:
            async with room:
                existing = await self._insert(partition, batch, now)
        except Exception as error:
            for draft in batch:
                draft.order.error = error
            return
        if existing is None:
            return
        alone = [draft for draft in batch if draft.job.id in existing] or batch
        rest = [draft for draft in batch if draft not in alone]
        if rest:
            await self._create(partition, rest, now, room)
        await asyncio.gather(*(_noted(d.order, room, self._operation(d.order, now)) for d in alone))

    async def _insert(self, partition: str, batch: Sequence[_Draft], now: datetime) -> set[str] | None:
        """Stores new jobs; if that is refused, the ids of those that exist.

        1. The transaction: all of the batch, or none of it. 2. Tickets; a crash before they are sent: detection
        finds the timers.
        """
        await self._admin.note_types(draft.job for draft in batch)
        try:
            await self._jobs.create_all(partition, [write for draft in batch for write in draft.writes])
        except Refused:
            if not await self._jobs.wrote(batch[0].job.id, batch[0].mark):
                return {draft.job.id for draft in batch if await self._exists(draft.job.id)}
        for draft in batch:
            draft.order.done(201, draft.job)
        await self._announcer.written(partition, [due for d in batch if (due := d.job.baton_due)], now)
        return None

    async def _exists(self, job_id: str) -> bool:
        """Whether there is such a job, be it one that this version cannot read: then that is told of it alone."""
        try:
            return await self._jobs.get(job_id) is not None
        except (NewerFormat, KeyError, ValueError, TypeError):
            return True

    def _operation(self, order: Order, now: datetime) -> Callable[[], Awaitable[None]]:
        """What carries out an order on its own."""
        job_id = order.job_id
        assert job_id

        async def put() -> None:
            job, new = await self._admin.put(job_id, order.body, ANYHOW, now)
            order.done(201 if new else 200, job)

        async def delete() -> None:
            await self._admin.delete(job_id, ANYHOW, now)
            order.done(204)

        async def suspend() -> None:
            order.done(200, await self._admin.suspend(job_id, ANYHOW, now))

        async def resume() -> None:
            order.done(200, await self._admin.resume(job_id, ANYHOW, now))

        async def run() -> None:
            order.done(202, await self._handwork.run_now(job_id, now))

        return {"put": put, "delete": delete, "suspend": suspend, "resume": resume, "run": run}[order.op]


async def _noted(order: Order, room: asyncio.Semaphore, operation: Callable[[], Awaitable[None]]) -> None:
    async with room:
        try:
            await operation()
        except Exception as error:
            order.error = error


def _rounds(orders: Sequence[Order]) -> list[list[Order]]:
    """The orders in rounds, none of which has two for the same job."""
    rounds: list[list[Order]] = []
    seen: dict[str, int] = {}
    for order in orders:
        number = seen.get(order.job_id, 0) if order.job_id is not None else 0
        if order.job_id is not None:
            seen[order.job_id] = number + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(order)
    return rounds


def _by_partition(drafts: Sequence[_Draft], jobs: Jobs) -> dict[str, list[_Draft]]:
    found: dict[str, list[_Draft]] = {}
    for draft in drafts:
        found.setdefault(jobs.partition(draft.job.id), []).append(draft)
    return found
