"""Runs of other service types between hosts: loaded by one that may, handed back when its lock has run out."""

import logging
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from shared.engine.lease import locked
from shared.engine.leave import Leaver
from shared.engine.logs import about
from shared.engine.perform import MAX_TAKEOVERS, ended_as
from shared.jobs.model import Idle, Run, Status
from shared.storage.endings import Ending, Rest
from shared.storage.loads import Loads
from shared.storage.runs import Runs
from shared.storage.table import Refused

log = logging.getLogger("timerjobs.execute")


class Loader:
    """Takes waiting runs, each by one conditional transaction."""

    def __init__(self, loads: Loads, runs: Runs) -> None:
        self._loads = loads
        self._runs = runs

    async def take(self, waiting: Idle, owner: str, now: datetime, until: datetime) -> Run | None:
        """Makes a waiting run an executing one, locked by `owner` from now until then; None if somebody else did.

        A crash after the commit, or its answer lost on the way to the owner: the lock runs out, and the run waits
        again.
        """
        run = replace(locked(waiting.run, owner, now, until), mark=uuid4().hex)
        try:
            return await self._loads.take(self._runs.partition(run.job_id), waiting, run)
        except Refused:
            current = await self._runs.get(run.job_id, run.seq)
            return current if current and current.mark == run.mark else None


async def handed_back(run: Run, leaver: Leaver, now: datetime) -> Ending | Rest:
    """How a run whose lock has run out leaves its row, where this process cannot run it: it waits for another
    host, with a higher fencing token; or it has failed, having been taken over too often."""
    log.warning("the lock has run out of a run held by %s", run.owner, extra={"action": "load", **about(run)})
    freed = replace(run, locked_until=None)
    takeovers = run.takeovers + (1 if run.owner else 0)
    if takeovers - run.steady > MAX_TAKEOVERS:
        reason = f"its hosts were lost {MAX_TAKEOVERS + 1} times without a save between"
        return await leaver.ending(freed, ended_as(run, now, Status.FAILED, reason, {}))
    return Rest(run=replace(freed, owner="", takeovers=takeovers, mark=uuid4().hex), due=None)
