"""Deleting a job with all its rows, so that it can die half-way and be gone on with."""

import logging
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

from shared.errors import Unavailable
from shared.jobs.model import Gate, Job, Pending, Removal, State
from shared.jobs.times import ceil_second
from shared.storage.jobs import Jobs
from shared.storage.runs import Runs
from shared.storage.table import Refused

log = logging.getLogger("timerjobs.removal")

KINDS = ("idle", "run", "past")  # live rows first
CHUNK = 98  # even, since an idle run's timer and the row that points to it go together
ROUNDS = 1000
RUNS_FIRST = timedelta(minutes=5)  # how long a removal is put off while runs are under way
# A removal is gone on with by others only after this: until then it is most likely still under way.
HEAD_START = timedelta(minutes=1)


class Remover:
    """Removes jobs. Any number of removers may be at one job; each goes on wherever the rows stand."""

    def __init__(self, jobs: Jobs, runs: Runs) -> None:
        self._jobs = jobs
        self._runs = runs

    async def begin(self, job: Job, now: datetime) -> bool:
        """Makes the job Deleting, its baton a removal timer; False if it changed meanwhile.

        From this commit on nothing of the job fires and it answers 404. A crash after it: the timer falls
        due, detection announces it, and dispatch calls `finish`.
        """
        due = ceil_second(now + HEAD_START)
        doomed = replace(
            job, state=State.DELETING, pending=Pending(scheduled=due, due=due), gate=Gate(), updated_at=now
        )
        mark = uuid4().hex
        try:
            await self._jobs.replace(job, doomed, mark)
        except Refused:
            return await self._jobs.wrote(job.id, mark)
        return True

    async def carry_on(self, timer: Removal, now: datetime) -> None:
        """What a removal timer that has fallen due asks for: begins the removal of a Completed job that has been
        kept for long enough, and finishes one that was begun."""
        job = await self._jobs.get(timer.job_id)
        if job is not None and job.state is State.COMPLETED and job.pending and job.pending.due == timer.due:
            if await self._runs.count(job.id) or job.gate.waiting:
                await self._put_off(job, now)
                return
            await self.begin(job, now)
        await self.finish(timer.job_id)

    async def _put_off(self, job: Job, now: datetime) -> None:
        """A job is not removed under its runs: it is looked at again later."""
        due = ceil_second(now + RUNS_FIRST)
        with suppress(Refused):  # it has changed; its timer is looked at again
            later = replace(job, pending=Pending(scheduled=due, due=due))
            await self._jobs.replace(job, later, uuid4().hex)

    async def finish(self, job_id: str) -> None:
        """Removes the rows of a job that is Deleting, and the job last. Does nothing for any other job.

        1. Reads the job row's version, then the keys of the job's other rows.
        2. Deletes those, live ones first, up to 98 a transaction. A crash here: begun anew.
        3. When a reading finds none: deletes the job row, at the version read before, with its timer. A
           change between reading and deleting makes this fail, and it begins anew.
        """
        for _ in range(ROUNDS):
            job = await self._jobs.get(job_id)
            if job is None or job.state is not State.DELETING:
                return
            keys = await self._jobs.keys_of(job_id, KINDS)
            try:
                if not keys:
                    await self._jobs.finish_removal(job)
                    return
                await self.delete_rows(job_id, keys)
            except Refused:
                log.info("somebody else is at the removal too", extra={"action": "remove", "job": job_id})
        raise Unavailable(f"job {job_id} keeps being changed while it is removed")

    async def delete_rows(self, job_id: str, keys: list[str]) -> None:
        """Deletes rows of a job. Raises Refused if one is gone already."""
        for start in range(0, len(keys), CHUNK):
            await self._jobs.delete_rows(job_id, keys[start : start + CHUNK])
