"""Firing a page of due timers: planned one by one, committed in bulk, refused transactions taken apart."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from shared.jobs.definition import load_definition, load_schedule
from shared.jobs.model import BadTimer, Baton, Run
from shared.jobs.plan import plan_turn
from shared.storage.runs import Runs
from shared.storage.table import Refused, pack_units
from shared.storage.timers import Shot, Timers, aim

log = logging.getLogger("timerjobs.dispatch")

SET_ASIDE_FIRST = timedelta(minutes=1)
SET_ASIDE_LONGEST = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Who fires, and when: `owner` locks up to `room` runs until `locked_until`, to start them itself;
    `mark` names the pass in what it writes."""

    partition: str
    now: datetime
    owner: str
    mark: str
    room: int
    locked_until: datetime


@dataclass(slots=True)
class Fired:
    """What firing came to: runs locked by this process, how many more wait for an executor, the seconds at
    which moved timers are due next, how many timers were dealt with, and whether another pass was met."""

    locked: list[Run] = field(default_factory=list)
    unlocked: int = 0
    dues: set[datetime] = field(default_factory=set)
    turns: int = 0
    met_another: bool = False


class Firer:
    """Fires due timers."""

    def __init__(self, timers: Timers, runs: Runs, default_max_lateness: timedelta) -> None:
        self._timers = timers
        self._runs = runs
        self._default_max_lateness = default_max_lateness

    async def fire(self, batons: Sequence[Baton | BadTimer], this: Pass) -> Fired:
        """Fires each baton's occurrence; one that cannot be planned or written is set aside, alone.

        Stops at the first batch most of which another pass has taken.
        """
        fired = Fired()
        shots: list[Shot] = []
        for baton in batons:
            try:
                if isinstance(baton, BadTimer):
                    raise ValueError(baton.why)
                shot = self._plan(baton, this, room=this.room - sum(_is_locked(s) for s in shots))
                shots.append(shot)
            except Exception as fault:  # whatever a stored definition can make planning do
                await self._set_aside(baton, this, f"cannot be planned: {type(fault).__name__}: {fault}", fired)
        for batch in pack_units(shots):
            await self._commit(batch, this, fired)
            if fired.met_another:
                break
        return fired

    def _plan(self, baton: Baton, this: Pass, room: int) -> Shot:
        definition = load_definition(baton.core.definition)
        schedule = load_schedule(baton.core.definition, baton.core.anchor)
        max_lateness = definition.max_lateness(self._default_max_lateness)
        turn = plan_turn(baton.core, baton.pending, schedule, max_lateness, this.now)
        run = None
        if turn.fires is not None:
            inline = room > 0 and definition.is_short
            run = Run(
                job_id=baton.job_id,
                seq=turn.core.counters.seq,
                stamp=baton.core.stamp,
                definition=baton.core.definition,
                scheduled=turn.fires,
                fired_at=this.now,
                owner=this.owner if inline else "",
                locked_until=this.locked_until if inline else None,
                mark=this.mark,
            )
        return aim(baton, turn, run, definition.history_limit)

    async def _commit(self, shots: Sequence[Shot], this: Pass, fired: Fired) -> None:
        """Commits shots in one transaction, or finds out why it was refused.

        1. The transaction. A crash before it: nothing has happened. After it: every occurrence of the batch is
           fired; the runs locked here are taken over when their locks run out, and detection announces timers.
        2. Refused: the batons are read again. If the first that is gone was taken by this very pass, the
           commit's answer was lost, and all of the batch is ours.
        3. Those gone or changed were won by somebody else; if that is most of them, another pass is at work
           here. The others are committed again.
        4. If none is gone, one of them is at fault: halves, until it is alone and set aside.
        """
        try:
            etags = await self._timers.fire(this.partition, shots)
        except Refused as refusal:
            await self._refused(shots, this, fired, str(refusal))
            return
        self._won(shots, etags, fired)

    async def _refused(self, shots: Sequence[Shot], this: Pass, fired: Fired, why: str) -> None:
        versions = await self._timers.versions(this.partition, [shot.baton for shot in shots])
        left = [shot for shot in shots if versions.get(shot.baton.job_id) == shot.baton.etag]
        lost = len(shots) - len(left)
        if lost and await self._is_own_commit([shot for shot in shots if shot not in left], this):
            self._won(shots, [await self._etag(shot) for shot in shots], fired)
        elif lost * 2 > len(shots):
            fired.met_another = True
        elif lost:
            await self._commit(left, this, fired)
        elif len(shots) == 1:
            await self._set_aside(shots[0].baton, this, f"cannot be written: {why}", fired)
        else:
            for half in (shots[: len(shots) // 2], shots[len(shots) // 2 :]):
                if not fired.met_another:
                    await self._commit(half, this, fired)

    async def _is_own_commit(self, gone: Sequence[Shot], this: Pass) -> bool:
        for shot in gone:
            if shot.run:
                run = await self._runs.get(shot.run.job_id, shot.run.seq)
                return run is not None and run.mark == this.mark
        return False

    async def _etag(self, shot: Shot) -> str:
        run = shot.run and await self._runs.get(shot.run.job_id, shot.run.seq)
        return run.etag if run else ""

    def _won(self, shots: Sequence[Shot], etags: Sequence[str], fired: Fired) -> None:
        fired.turns += len(shots)
        for shot, etag in zip(shots, etags, strict=True):
            if shot.turn.pending:
                fired.dues.add(shot.turn.pending.due)
            if shot.run and shot.run.owner:
                fired.locked.append(replace(shot.run, etag=etag))
            elif shot.run:
                fired.unlocked += 1
            if shot.turn.missed:
                missed = shot.turn.missed
                log.warning(
                    "missed %d occurrences: %s",
                    missed.count,
                    missed.reason,
                    extra={"action": "missed", "job": shot.baton.job_id, "scheduled": missed.first},
                )

    async def _set_aside(self, timer: Baton | BadTimer, this: Pass, why: str, fired: Fired) -> None:
        """Moves a timer at fault out of the way, with a back-off of 1 minute doubling to 1 hour."""
        log.error("a timer is set aside: %s", why, extra={"action": "set aside", "job": timer.job_id})
        asides = timer.set_asides if isinstance(timer, Baton) else 0
        until = this.now + min(SET_ASIDE_FIRST * 2 ** min(asides, 10), SET_ASIDE_LONGEST)
        try:
            fired.dues.add(await self._timers.set_aside(this.partition, timer, until, why[:1000]))
            fired.turns += 1
        except Refused:
            if await self._timers.drop_orphan(this.partition, timer):
                log.error("it belonged to no job, and is deleted", extra={"action": "set aside"})


def _is_locked(shot: Shot) -> bool:
    return shot.run is not None and shot.run.owner != ""
