"""Firing a page of due timers: aimed one by one, committed in bulk, refused transactions taken apart."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from shared import metrics
from shared.engine.aiming import Aimer, Pass
from shared.engine.clock import Clock
from shared.engine.contention import TRIES, pause
from shared.engine.events import Events
from shared.engine.logs import about_timer
from shared.errors import NewerFormat
from shared.giving_way import give_way
from shared.jobs.model import BadTimer, Baton, Idle, Run
from shared.jobs.times import json_text
from shared.storage.runs import Runs
from shared.storage.shots import Shot
from shared.storage.table import Refused, StoreFailed, Write, pack_units
from shared.storage.timers import Timers

log = logging.getLogger("timerjobs.dispatch")

SET_ASIDE_FIRST = timedelta(minutes=1)
SET_ASIDE_LONGEST = timedelta(hours=1)
MOST_AIMED = 512 * 1024  # bytes of definitions, compressed

Due = Baton | Idle | BadTimer


@dataclass(slots=True)
class Fired:
    """What firing comes to, as it goes: the runs not locked by this process, which wait for an executor; the
    seconds at which moved timers are due next, how many timers were dealt with, and whether another pass was
    met."""

    unlocked: list[Run] = field(default_factory=list)
    dues: set[datetime] = field(default_factory=set)
    turns: int = 0
    met_another: bool = False


@dataclass(frozen=True, slots=True)
class _Aimed:
    """A shot with what it was aimed at."""

    timer: Due
    shot: Shot

    @property
    def writes(self) -> Sequence[Write]:
        return self.shot.writes


class Firer:
    """Fires due timers."""

    def __init__(self, timers: Timers, runs: Runs, aimer: Aimer, events: Events, clock: Clock) -> None:
        self._timers = timers
        self._runs = runs
        self._aimer = aimer
        self._events = events
        self._clock = clock

    async def fire(self, timers: Sequence[Due], this: Pass, fired: Fired) -> None:
        """Fires each timer's occurrence, or wakes its run; one that cannot be planned or written is set aside.

        Stops at the first batch most of which another pass has taken. The event loop turns between groups of
        timers alone: within one, passes would take slots away from each other by halves.
        """
        for some in _by_weight(timers):
            shots = [aimed for timer in some if (aimed := await self._aim(timer, this, fired))]
            for aimed in shots:
                await self._tell(aimed, this)
            for batch in pack_units(shots):
                await self._commit(batch, this, fired)
                if fired.met_another:
                    return
            await give_way()

    async def _aim(self, timer: Due, this: Pass, fired: Fired) -> _Aimed | None:
        """The shot of a timer; None if it cannot be planned, and is set aside, or if its job's row is of a newer
        format, and it is left where it is."""
        try:
            return _Aimed(timer, await self._aimer.aim(timer, this))
        except StoreFailed:
            raise
        except NewerFormat:
            return None
        except Exception as fault:  # whatever a stored definition can make planning do
            await self._set_aside(timer, this, f"cannot be planned: {type(fault).__name__}: {fault}", fired)
            return None

    async def _tell(self, aimed: _Aimed, this: Pass) -> None:
        shot = aimed.shot
        if isinstance(aimed.timer, Baton):
            stamp = aimed.timer.core.stamp
            await self._events.ended(shot.job_id, stamp, shot.records)
            if shot.completes is not None:
                await self._events.completed(shot.job_id, stamp, shot.completes, this.now)

    async def _commit(self, shots: Sequence[_Aimed], this: Pass, fired: Fired) -> None:
        """Commits shots in one transaction, or finds out why it was refused.

        1. The transaction. A crash before it: nothing has happened. After it: every occurrence of the batch
           is fired; the runs locked here are taken over when their locks run out, and detection announces
           timers.
        2. Refused: the timers are read again. If the first that is gone was taken by this very pass, the
           commit's answer was lost, and all of the batch is ours.
        3. Those gone or changed were won by somebody else; if that is most of them, another pass is at work
           here. The others are committed again.
        4. If none is gone, one of them is at fault: halves, until it is alone.
        """
        try:
            etags = await self._timers.fire(this.partition, [aimed.shot for aimed in shots])
        except Refused as refusal:
            await self._refused(shots, this, fired, str(refusal))
            return
        self._won([aimed.shot for aimed in shots], etags, this, fired)

    async def _refused(self, shots: Sequence[_Aimed], this: Pass, fired: Fired, why: str) -> None:
        versions = await self._timers.versions(this.partition, [aimed.shot.key for aimed in shots])
        left = [aimed for aimed in shots if versions.get(aimed.shot.key) == aimed.shot.etag]
        lost = [aimed.shot for aimed in shots if aimed not in left]
        if lost and await self._is_own_commit(lost, this):
            all_shots = [aimed.shot for aimed in shots]
            self._won(all_shots, [await self._etag(shot) for shot in all_shots], this, fired)
        elif len(lost) * 2 > len(shots):
            fired.met_another = True
        elif lost:
            await self._commit(left, this, fired)
        elif len(shots) == 1:
            await self._at_fault(shots[0], this, fired, why)
        else:
            for half in (shots[: len(shots) // 2], shots[len(shots) // 2 :]):
                if not fired.met_another:
                    await self._commit(half, this, fired)

    async def _at_fault(self, aimed: _Aimed, this: Pass, fired: Fired, why: str) -> None:
        """A shot that is refused alone although its timer is as it was read.

        If its job's row is at the version it was aimed with, it is set aside. Else somebody else is at the
        job's gate, and it is aimed anew; one that loses again and again is left to the next round.
        """
        for attempt in range(TRIES):
            await pause(attempt)
            this.unlocked(aimed.shot.run)
            again = await self._aim(aimed.timer, this, fired)
            if again is None:
                return
            if again.shot.gate == aimed.shot.gate:
                await self._set_aside(aimed.timer, this, f"cannot be written: {why}", fired)
                return
            aimed = again
            await self._tell(aimed, this)
            try:
                etags = await self._timers.fire(this.partition, [aimed.shot])
            except Refused as refusal:
                why = str(refusal)
                versions = await self._timers.versions(this.partition, [aimed.shot.key])
                if versions.get(aimed.shot.key) == aimed.shot.etag:
                    continue
                if await self._is_own_commit([aimed.shot], this):
                    self._won([aimed.shot], [await self._etag(aimed.shot)], this, fired)
            else:
                self._won([aimed.shot], etags, this, fired)
            return
        fired.dues.add(this.now)

    async def _is_own_commit(self, gone: Sequence[Shot], this: Pass) -> bool:
        """Whether the first of these shots that leaves a trace bears this pass's mark."""
        for shot in gone:
            if shot.run:
                run = await self._run(shot.run)
                return run is not None and run.mark == this.mark
            if shot.records:
                slot = await self._runs.slot(shot.job_id, shot.records[-1].seq, shot.history_limit)
                return bool(slot) and slot["mark"] == this.mark
        return False

    async def _etag(self, shot: Shot) -> str:
        run = await self._run(shot.run) if shot.run else None
        return run.etag if run else ""

    async def _run(self, run: Run) -> Run | None:
        """The run as it stands, None if it is gone or in the hands of a newer version."""
        try:
            return await self._runs.find(run.job_id, run.seq)
        except NewerFormat:
            return None

    def _won(self, shots: Sequence[Shot], etags: Sequence[str], this: Pass, fired: Fired) -> None:
        fired.turns += len(shots)
        now = self._clock()
        for shot, etag in zip(shots, etags, strict=True):
            if shot.counts:
                metrics.count_occurrences(shot.counts)
            if shot.was_due:
                metrics.lateness.record(max(timedelta(0), now - shot.was_due).total_seconds())
            if shot.next_due:
                fired.dues.add(shot.next_due)
            if shot.run and shot.run.owner and etag:
                this.start(replace(shot.run, etag=etag))
            elif shot.run and not shot.run.owner:
                fired.unlocked.append(shot.run)
            for record in shot.records:
                log.warning(
                    "job %s: %s: %d occurrences: %s",
                    shot.job_id,
                    record.status,
                    record.count,
                    record.reason,
                    extra={
                        "action": str(record.status).lower(),
                        "job": shot.job_id,
                        "run": record.seq,
                        "scheduled": json_text(record.first),
                        "count": record.count,
                    },
                )

    async def _set_aside(self, timer: Due, this: Pass, why: str, fired: Fired) -> None:
        """Moves a timer at fault out of the way, with a back-off of 1 minute doubling to 1 hour."""
        log.error("a timer is set aside: %s", why, extra={"action": "set aside", **about_timer(timer)})
        asides = timer.set_asides if isinstance(timer, Baton) else 0
        until = this.now + min(SET_ASIDE_FIRST * 2 ** min(asides, 10), SET_ASIDE_LONGEST)
        try:
            fired.dues.add(await self._timers.set_aside(this.partition, timer, until, why[:1000]))
            fired.turns += 1
        except Refused:
            if await self._timers.drop_orphan(this.partition, timer):
                message = "it belonged to no job, and is deleted"
                log.error(message, extra={"action": "set aside", **about_timer(timer)})


def _by_weight(timers: Sequence[Due]) -> Iterator[list[Due]]:
    """The timers in order, in groups whose definitions have 512 KiB together; a larger one is alone."""
    group: list[Due] = []
    weight = 0
    for timer in timers:
        its = len(timer.core.definition) if isinstance(timer, Baton) else 0
        if group and weight + its > MOST_AIMED:
            yield group
            group, weight = [], 0
        group.append(timer)
        weight += its
    if group:
        yield group
