"""Saving: hosts elsewhere store, unlock and complete the instances they hold."""

import hashlib
import json
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from shared.engine.admin import Admin
from shared.engine.announce import Announcer
from shared.engine.contention import TRIES, pause
from shared.engine.handwork import Handwork
from shared.engine.hosting import Hosting, is_held
from shared.engine.leave import when_due
from shared.engine.perform import ended_as
from shared.errors import InstanceLockLost, NotFound, StaleInstanceVersion, Unavailable
from shared.jobs.hostwork import Completion, Saving, moment
from shared.jobs.instance import check_result, pack_state
from shared.jobs.model import Run, Status
from shared.storage.endings import Rest
from shared.storage.runs import Runs
from shared.storage.table import Refused


class Saver:
    """Stores what hosts save, each time by one conditional transaction."""

    def __init__(
        self, hosting: Hosting, admin: Admin, handwork: Handwork, runs: Runs, announcer: Announcer
    ) -> None:
        self._hosting = hosting
        self._admin = admin
        self._handwork = handwork
        self._runs = runs
        self._announcer = announcer

    async def save(self, host_id: str, asked: Saving, now: datetime) -> int:
        """SaveWorkflow: stores the state, and unlocks or completes the instance if asked to; gives its version.

        The very same save sent again, since its answer was lost, changes nothing and is answered as before.
        Raises HostLockExpired, InstanceLockLost, StaleInstanceVersion, TooLarge.

        1. Reads the host and the run. 2. Commits at the version read: [run replaced], or [run away, its timer or
        load row, pointer, job merged], or [run away, history, job merged, gate]. 3. Announces what it left.
        A crash before 2: nothing is saved, and the lock runs out; after it: detection finds it.
        """
        host = await self._hosting.live(host_id, now)
        mark = _mark(host_id, asked)
        state = None if asked.state is None else pack_state(asked.state)
        check_result(asked.complete.result if asked.complete else None)
        for attempt in range(TRIES):
            await pause(attempt)
            run = await self._runs.get(asked.job_id, asked.run)
            if run is None or not is_held(run, host.id, asked.fencing_token):
                if await self._has_left(asked, run, mark):
                    return asked.version + 1
                raise InstanceLockLost(
                    f"run {asked.run} of job {asked.job_id!r} is not held by this host any more"
                )
            if run.mark == mark:
                return run.version
            if run.version != asked.version:
                raise StaleInstanceVersion(f"the instance is at version {run.version}, not {asked.version}")
            saved = _saved(run, asked, state, mark)
            if await self._commit(saved, asked, now):
                return saved.version
        raise Unavailable(f"run {asked.run} of job {asked.job_id!r} keeps being changed")

    async def _commit(self, run: Run, asked: Saving, now: datetime) -> bool:
        if asked.complete is not None:
            return await self._complete(run, asked.complete, now)
        partition = self._runs.partition(run.job_id)
        try:
            if not asked.unlock:
                await self._runs.checkpoint(replace(run, locked_until=now + self._hosting.lease))
                return True
            due = when_due(moment(asked.pending_timer), now) if asked.pending_timer else None
            await self._runs.leave(partition, [Rest(run=replace(run, owner="", locked_until=None), due=due)])
        except Refused:
            return False
        if due is None:
            await self._announcer.runs(partition, [run.service_type])
        else:
            await self._announcer.written(partition, [due], now)
        return True

    async def _complete(self, run: Run, asked: Completion, now: datetime) -> bool:
        try:
            job = await self._admin.get(run.job_id)
        except NotFound:
            raise InstanceLockLost(f"job {run.job_id!r} is deleted") from None
        status, reason = Status(asked.status), asked.reason or ""
        ended = ended_as(run, now, status, reason, {}, asked.result)
        return await self._handwork.end(job, run, None, ended, run.mark, now)

    async def _has_left(self, asked: Saving, run: Run | None, mark: str) -> bool:
        """Whether this very save has unlocked or completed the instance already."""
        if run is not None:
            return False
        idle = await self._runs.idle(asked.job_id, asked.run)
        if idle is not None or asked.complete is None:
            return idle is not None and idle.run.mark == mark
        with suppress(NotFound):
            await self._admin.get(asked.job_id)
            return await self._runs.is_recorded(asked.job_id, asked.run, mark)
        return False


def _mark(host_id: str, asked: Saving) -> str:
    """The name of a save, the same when it is sent again."""
    digest = hashlib.sha256(asked.model_dump_json().encode()).hexdigest()[:32]
    return f"{host_id[:32]}-{digest}"


def _saved(run: Run, asked: Saving, state: bytes | None, mark: str) -> Run:
    """The run with what is saved; a save is a checkpoint: take-overs are counted anew from it."""
    activation = run.activation if asked.activation is None else json.dumps(asked.activation.parameters.view())
    return replace(
        run,
        state=run.state if state is None else state,
        activation=activation,
        version=run.version + 1,
        steady=run.takeovers,
        mark=mark,
    )
