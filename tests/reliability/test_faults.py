"""Storage that fails, tickets astray, clocks that differ, timers at fault: all at once, and nothing is lost."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.engine.leave import Leaver
from shared.engine.perform import Resting
from shared.jobs.model import Run, State, Stretch
from shared.jobs.times import json_text
from shared.storage.endings import Rest
from shared.storage.table import StoreFailed, Verb, Write
from shared.storage.tickets import Ticket
from tests.audit import audit
from tests.engine.test_steps import call, wait
from tests.harness import NOON, SAYS_START, Bench, Clock, Receiver, http_job, process, settings_for
from tests.reliability.post import Post, recover
from tests.wire import Fate, FaultyStorage

SECONDS = 120
FAULTS = (Fate.LOST, Fate.UNSENT, Fate.BUSY, Fate.BROKEN, Fate.BROKEN_AFTER)
AGAIN = timedelta(seconds=5)  # when a ticket comes again whose function failed (host.json, visibilityTimeout)
APART = timedelta(seconds=3)


class Skewed(Clock):
    """A clock that differs from another, and is moved with it."""

    def __init__(self, clock: Clock, by: timedelta) -> None:
        self._clock = clock
        self._by = by

    @property
    def now(self) -> datetime:
        return self._clock.now + self._by

    @now.setter
    def now(self, now: datetime) -> None:
        self._clock.now = now - self._by


def unreliable(dice: random.Random, clock: Clock) -> Callable[[str], Fate]:
    """A tenth of all requests fail in some way; nearly all, in one stretch of ten seconds."""

    def fate(line: str) -> Fate:
        outage = 40 <= (clock() - NOON).total_seconds() < 50
        return dice.choice(FAULTS) if dice.random() < (0.8 if outage else 0.1) else Fate.DONE

    return fate


def jobs(url: str) -> dict[str, tuple[int, dict[str, Any]]]:
    """Jobs of every kind by id, each with its interval in seconds. Each ends by itself."""
    made = {f"plain-{every}": (every, http_job(url, every=every)) for every in (4, 5, 7, 10)}
    several = {
        "A": call(url, body=SAYS_START),
        "Pause": wait(3, {"A": ["Succeeded"]}),
        "B": call(url, {"Pause": ["Succeeded"]}, body=SAYS_START),
    }
    made["steps"] = (15, http_job(url) | {"actions": several})
    made["one-at-a-time"] = (6, http_job(url))
    made["windows"] = (10, http_job(url))
    made["unplannable"] = (10, http_job(url))
    made["unwritable"] = (10, http_job(url))
    del made["steps"][1]["action"]
    for every, body in made.values():
        body["trigger"]["recurrence"] = {
            "frequency": "Second",
            "interval": every,
            "startTime": "2026-09-08T12:00:05Z",
            "endTime": (NOON + timedelta(seconds=SECONDS)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        body["historyLimit"] = 500
    for bounded in ("one-at-a-time", "windows"):
        made[bounded][1]["trigger"]["runtimeConfiguration"] = {"concurrency": {"runs": 1, "maximumWaitingRuns": 2}}
    made["windows"][1]["trigger"]["type"] = "SlidingWindow"
    return made


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 10))])
async def test_nothing_is_lost(
    storage: str, target: Receiver, seed: int, tell: Callable[[str, int], None]
) -> None:
    await nothing_is_lost(storage, target, seed)
    tell("actions called while storage and tickets failed", len({hit.key for hit in target.hits}))


async def test_a_run_that_is_only_taken_over_in_the_end_wakes_from_its_pause(
    storage: str, target: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late run of `steps` is left to its lease once it has called A; no ticket leads to it afterwards."""
    rest = Leaver.rest
    left: list[Run] = []

    def leave_once(self: Leaver, run: Run, resting: Resting) -> Rest:
        if run.job_id == "steps" and run.seq >= 5 and not left:
            left.append(run)
            raise StoreFailed("no answer")
        return rest(self, run, resting)

    monkeypatch.setattr(Leaver, "rest", leave_once)
    await nothing_is_lost(storage, target, seed=1, astray=lambda ticket: ticket.due is None)
    assert left


async def nothing_is_lost(
    storage: str, target: Receiver, seed: int, astray: Callable[[Ticket], bool] = lambda ticket: False
) -> None:
    """What the tests of this file are about; tickets that are `astray` come to nobody before recovery."""
    dice = random.Random(seed)
    clock = Clock()
    post = Post(clock)
    settings = settings_for(storage, PARTITIONS="2")
    async with (
        FaultyStorage() as faulty,
        process(settings, clock) as at,
        process(settings, Skewed(clock, APART / 2)) as ahead,
        process(settings, Skewed(clock, -APART / 2)) as behind,
    ):
        made = jobs(target.url)
        at.wire.mail = post.collect
        for job_id, (_, body) in made.items():
            await at.create(id=job_id, **body)
        mend = [await spoil_plan(at, "unplannable"), await spoil_write(at, "unwritable")]
        for process_ in (ahead, behind):
            process_.wire.mail = post.collect
            process_.wire.faulty = faulty
            process_.wire.fate = unreliable(dice, clock)
        await live(dice, clock, post, [ahead, behind], astray)
        for process_ in (ahead, behind):
            process_.wire.fate = lambda line: Fate.DONE
        assert {hit.job for hit in target.hits} >= made.keys() - {"unplannable", "unwritable"}
        for part in mend:
            await part()
        await recover(behind, post, cycles=4)
        clock.advance(hours=1)
        await recover(behind, post, cycles=2)
        assert await audit(at.app.store) == []
        for job_id, (every, _) in made.items():
            await check(at, target, job_id, every)
        assert [row["RowKey"] for kind in ("timer", "run", "idle", "load") for row in await at.rows(kind)] == []


async def live(
    dice: random.Random, clock: Clock, post: Post, processes: list[Bench], astray: Callable[[Ticket], bool]
) -> None:
    """Two minutes and a half, second by second; of the tickets some are lost, doubled, late or out of order.

    What is not done within its second goes on beside the next ones.
    """
    under_way: set[asyncio.Task[None]] = set()

    async def carry_out(ticket: Ticket) -> None:
        if not await tolerant(dice.choice(processes).app.dispatcher.carry_out(ticket)):
            post.under_way.append((clock() + AGAIN, ticket))

    for second in range(SECONDS + 30):
        clock.advance(seconds=1)
        if second % 20 == 19:  # most come too soon after the one before
            await tolerant(dice.choice(processes).app.detector.tick())
        ready = [each for each in post.under_way if each[0] <= clock()]
        post.under_way = [each for each in post.under_way if each[0] > clock()]
        dice.shuffle(ready)
        for _, ticket in ready:
            if astray(ticket):
                continue
            luck = dice.random()
            if 0.1 <= luck < 0.2:
                post.under_way.append((clock() + timedelta(seconds=dice.randint(1, 30)), ticket))
            elif luck >= 0.2:
                under_way |= {asyncio.create_task(carry_out(ticket)) for _ in range(2 if luck < 0.3 else 1)}
        if under_way:
            _, under_way = await asyncio.wait(under_way, timeout=0.2)
    await asyncio.gather(*under_way)


async def tolerant(work: Any) -> bool:
    """Whether a function's work ended well."""
    try:
        await work
    except StoreFailed:
        return False
    return True


async def spoil_plan(at: Bench, job_id: str) -> Callable[[], Any]:
    """Makes a job's baton unreadable; gives what puts it right, wherever it has been moved."""
    partition = at.app.store.jobs.partition(job_id)
    table = at.app.store.table
    (baton,) = [row for row in await at.rows("timer") if row["RowKey"].endswith(f":{job_id}")]
    await table.commit(partition, [Write(Verb.MERGE, {"RowKey": baton["RowKey"], "definition": b"?"})])

    async def mend() -> None:
        (moved,) = [row for row in await at.rows("timer") if row["RowKey"].endswith(f":{job_id}")]
        assert moved["RowKey"] != baton["RowKey"], "it was not set aside"
        right = {"RowKey": moved["RowKey"], "definition": baton["definition"]}
        await table.commit(partition, [Write(Verb.MERGE, right)])

    return mend


async def spoil_write(at: Bench, job_id: str) -> Callable[[], Any]:
    """Takes the place of a job's next run, so that firing it is refused; gives what clears it."""
    partition = at.app.store.jobs.partition(job_id)
    table = at.app.store.table
    row = {"RowKey": f"run:{job_id}:{1:010d}", "lockedUntil": "2026-09-08T12:00:00.000000Z", "seq": "?"}
    await table.commit(partition, [Write(Verb.INSERT, row)])

    async def mend() -> None:
        await table.commit(partition, [Write(Verb.DELETE, {"RowKey": row["RowKey"]})])

    return mend


async def check(at: Bench, target: Receiver, job_id: str, every: int) -> None:
    """Every occurrence was called, with one key for each action, or is recorded as missed or skipped. Each call
    names the start that its run's record has."""
    job = await at.app.admin.get(job_id)
    assert job.state is State.COMPLETED, job_id
    last = SECONDS - every if job_id == "windows" else SECONDS  # a window ends by the job's end
    due = [NOON + timedelta(seconds=s) for s in range(5, last + 1, every)]
    called: dict[datetime, set[str]] = defaultdict(set)
    starts: dict[int, set[str]] = defaultdict(set)
    for hit in target.hits:
        if hit.job == job_id:
            called[hit.scheduled].add(hit.key)
            starts[hit.run].add(hit.start)
    passed_over: set[datetime] = set()
    for record in await at.history(job_id):
        if isinstance(record, Stretch):
            assert record.reason
            points = [point for point in due if record.first <= point <= record.last]
            assert len(points) == record.count
            assert not passed_over.intersection(points)
            passed_over.update(points)
        elif record.seq in starts:
            assert starts[record.seq] == {json_text(record.started)}, (job_id, record)
    assert called.keys() | passed_over == set(due), f"{job_id}: lost {set(due) - called.keys() - passed_over}"
    assert not called.keys() & passed_over, job_id
    actions = 2 if job_id == "steps" else 1
    assert all(len(keys) == actions for keys in called.values()), job_id
    if job_id == "windows":
        assert not passed_over
        first_calls = list(dict.fromkeys(hit.scheduled for hit in target.hits if hit.job == job_id))
        assert first_calls == sorted(first_calls)
