"""A crash at every storage call, before and after it, and a lost answer of each (promises P1 and P4)."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from shared.jobs.definition import load_definition
from shared.jobs.model import State
from shared.jobs.progress import ENDED, unpack_steps
from shared.storage.records import read_job, read_run, read_timer
from tests.audit import audit
from tests.harness import NOON, Bench, Clock, Hit, process, receiving, settings_for
from tests.reliability.post import Post, recover
from tests.reliability.scenarios import SCENARIOS, Scenario
from tests.wire import Fate, Killed

STRIKES = (Fate.DIE_BEFORE, Fate.DIE_AFTER, Fate.LOST)
SIDE_BY_SIDE = 3


@dataclass
class Struck:
    """What happened at one point: calls up to the strike and after it, and which of the first were unrecorded; the
    runs that were under way then, by job and number."""

    before: list[Hit] = field(default_factory=list)
    unrecorded: set[str] = field(default_factory=set)
    calls: list[Hit] = field(default_factory=list)
    runs: dict[tuple[str, int], Any] = field(default_factory=dict)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_whatever_is_struck_recovers(
    storage: str, scenario: Scenario, tell: Callable[[str, int], None]
) -> None:
    calls = await calls_before_each_request(storage, scenario)
    points = [
        (number, strike) for number in range(len(calls)) for strike in STRIKES if is_new(number, strike, calls)
    ]
    room = asyncio.Semaphore(SIDE_BY_SIDE)

    async def at_point(number: int, strike: Fate) -> bool:
        async with room:
            try:
                return await strike_at(storage, scenario, number, strike)
            except Exception as error:
                raise AssertionError(f"{scenario.name}: {strike.value}, request {number}") from error

    repeated = await asyncio.gather(*(at_point(*point) for point in points))
    tell("storage requests struck (before, after, answer lost)", len(points))
    tell("  of which an action was repeated, with its key", sum(repeated))


def is_new(number: int, strike: Fate, calls: list[int]) -> bool:
    """Whether this point leaves anything that no other does: to die before a request is to have died after the one
    before, unless an action was called between the two."""
    return strike is not Fate.DIE_BEFORE or number == 0 or calls[number] != calls[number - 1]


async def calls_before_each_request(storage: str, scenario: Scenario) -> list[int]:
    """How many calls the target has got before each storage request of the scenario, when nothing strikes it."""
    settings = settings_for(storage, PARTITIONS="1", **scenario.env)
    clock = Clock()
    async with receiving() as target, process(settings, clock) as at, process(settings, clock) as victim:
        target.answer = answering(scenario)
        await scenario.prepare(at, target.url)
        calls: list[int] = []

        async def count(line: str) -> None:
            calls.append(len(target.hits))

        victim.wire.hold = count
        await scenario.act(victim, target.url)
        return calls


def answering(scenario: Scenario) -> Callable[[Hit], Awaitable[web.Response]]:
    """The target's behaviour."""
    numbers: Counter[str] = Counter()

    async def answer(hit: Hit) -> web.Response:
        numbers[hit.key] += 1
        await asyncio.sleep(scenario.seconds)
        return scenario.answer(hit, numbers[hit.key] - 1)

    return answer


async def strike_at(storage: str, scenario: Scenario, number: int, strike: Fate) -> bool:
    """Plays the scenario with a strike at its request of that number, and lets the survivor recover.

    Gives whether an action was repeated.
    """
    settings = settings_for(storage, PARTITIONS="1", **scenario.env)
    clock = Clock()
    post = Post(clock)
    async with receiving() as target, process(settings, clock) as at, process(settings, clock) as victim:
        target.answer = answering(scenario)
        at.wire.mail = post.collect
        await scenario.prepare(at, target.url)
        post.under_way.clear()
        struck = Struck()

        def fate(line: str) -> Fate:
            return strike if len(victim.requests) - 1 == number else Fate.DONE

        def died() -> None:
            struck.before = list(target.hits)

        victim.wire.fate, victim.wire.died = fate, died
        try:
            await scenario.act(victim, target.url)
        except Killed:
            assert strike is not Fate.LOST
        if victim.wire.dead:  # what its remains called, a dead process would not have
            del target.hits[len(struck.before) :]
            struck.unrecorded = await unrecorded(at)
        assert await audit(at.app.store) == []
        struck.runs = await listed(at)
        await recover(at, post)
        struck.calls = list(target.hits)
        assert await audit(at.app.store) == []
        check(scenario, struck)
        await check_quiet(at)
        await check_recorded(at)
        check_starts(struck, await listed(at))
        return max(Counter(hit.key for hit in struck.calls).values(), default=0) > scenario.per_key


def check(scenario: Scenario, struck: Struck) -> None:
    """The calls are one of the outcomes; none was repeated that had been recorded."""
    names = [name_of(hit) for hit in struck.calls]
    assert set(names) in scenario.outcomes, sorted(set(names))
    if scenario.in_order:
        assert list(dict.fromkeys(names)) == sorted(set(names))
    for key, count in Counter(hit.key for hit in struck.calls).items():
        if count > scenario.per_key:
            interrupted = [hit for hit in struck.before if hit.key == key]
            assert interrupted, f"{key} was called {count} times, and not before the crash"
            assert key in struck.unrecorded, f"{key} was called again although it was recorded"
            assert count == scenario.per_key + 1
    occurrences = {(hit.key, name_of(hit)) for hit in struck.calls}
    assert len({name for _, name in occurrences}) == len(occurrences), "one occurrence has two keys"


def name_of(hit: Hit) -> str:
    job, _, occurrence, action = hit.key.split(":")
    return f"{job} {occurrence}:{action}"


async def unrecorded(at: Bench) -> set[str]:
    """The keys of all actions of runs under way that are not recorded as ended."""
    runs = [read_run(row) for row in await at.rows("run")]
    runs += [timer.run for timer in map(read_timer, await at.rows("timer")) if hasattr(timer, "run")]
    keys = set()
    for run in runs:
        ended = {name for name, step in unpack_steps(run.state).items() if step.status in ENDED}
        keys |= {run.idempotency_key(name) for name in ("Action", "A", "B", "C") if name not in ended}
    return keys


async def listed(at: Bench) -> dict[tuple[str, int], Any]:
    """All runs, by job and number, as the API shows them."""
    jobs = [job.id for job in map(read_job, await at.rows("job")) if job.state is not State.DELETING]
    return {(job, run["seq"]): run for job in jobs for run in await at.runs(job) if "actions" in run}


def check_starts(struck: Struck, runs: dict[tuple[str, int], Any]) -> None:
    """A run has one start: what was shown of it after the strike, what each call of it said, and what its record
    says."""
    for name, run in struck.runs.items():
        if run["startTime"] and name in runs:
            assert runs[name]["startTime"] == run["startTime"], name
    for hit in struck.calls:
        name = hit.job, hit.run
        assert name not in runs or hit.start == runs[name]["startTime"], name


async def check_quiet(at: Bench) -> None:
    """Nothing is under way or overdue any more."""
    assert not await at.rows("run")
    assert not await at.rows("idle")
    for partition in at.partitions:
        assert await at.app.store.timers.oldest(partition, at.clock()) is None
    assert at.clock() > NOON


async def check_recorded(at: Bench) -> None:
    """What a job has numbered, its runs and the stretches of what it missed, has come to a record of each."""
    past = Counter(row["RowKey"].split(":")[1] for row in await at.rows("past"))
    for job in map(read_job, await at.rows("job")):
        limit = load_definition(job.core.definition).history_limit
        assert past[job.id] >= min(job.core.counters.seq, limit), (job.id, past, job.core.counters)
