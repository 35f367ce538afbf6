"""When a run starts: once, with its first lock. All who show or use its start agree, whoever takes it later."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

import workflows.countdown  # noqa: F401  registers itself
from shared.engine.crew import Crew
from shared.jobs.model import Ended
from shared.jobs.times import duration_text, json_text
from shared.storage.table import Verb, Write
from tests.activation.support import fired, host, hosted, lapse
from tests.engine.test_gate import Slow, bounded
from tests.engine.test_steps import call, steps_job, wait
from tests.harness import NOON, SAYS_START, Abandoned, Bench, Receiver, bench, http_job, until

Make = Callable[[Bench, Receiver], Awaitable[None]]


def after(**by: float) -> datetime:
    return NOON + timedelta(**by)


def once(target: Receiver) -> dict[str, Any]:
    return http_job(target.url) | {"trigger": {"type": "Once"}}


async def take_and_die(at: Bench) -> None:
    """Locks what is free and starts nothing, as a process that dies right after would."""
    for partition in at.partitions:
        crew = Abandoned(partition, at.app.workshop, at.clock())
        await at.app.dispatcher._line.taker.take(partition, crew)


async def newest(at: Bench) -> Any:
    return (await at.runs("a"))[0]


async def not_started(at: Bench) -> bool:
    """The newest run waits, and has neither a start nor a lateness."""
    run = await newest(at)
    assert (run["status"], run["startTime"]) == ("Waiting", None)
    return "lateness" not in run


async def shows(at: Bench, status: str, start: datetime, scheduled: datetime = NOON) -> bool:
    """The newest run is shown with that status, start and lateness."""
    run = await newest(at)
    assert (run["status"], run["startTime"], run["lateness"]) == (
        status,
        json_text(start),
        duration_text(timedelta(milliseconds=(start - scheduled) // timedelta(milliseconds=1))),
    )
    return True


async def agree(at: Bench, target: Receiver, start: datetime, scheduled: datetime = NOON) -> bool:
    """The run has Succeeded, and its record, the job and all its calls say that it started then."""
    await shows(at, "Succeeded", start, scheduled)
    run = await newest(at)
    assert (await at.call("get", id="a")).body["lastRun"]["startTime"] == json_text(start)
    said = {hit.start for hit in target.hits if hit.run == run["seq"]}
    assert said == {json_text(start)}
    records = [each for each in await at.history("a") if isinstance(each, Ended)]
    assert [each.started for each in records if each.seq == run["seq"]] == [start]
    return True


@pytest.mark.parametrize("late", [timedelta(0), timedelta(microseconds=123_456)])
async def test_a_run_whose_process_died_before_the_call_has_started_when_it_was_fired(
    at: Bench, target: Receiver, late: timedelta
) -> None:
    await at.create(id="a", **once(target))
    at.clock.now += late
    await at.fire_only("a")
    assert await shows(at, "Running", NOON + late)
    at.clock.now = after(minutes=2, seconds=10)
    slow = Slow(target)
    taking = asyncio.create_task(at.take_runs())
    await until(lambda: target.hits)
    assert await shows(at, "Running", NOON + late)
    slow.go.set()
    await taking
    assert await agree(at, target, NOON + late)


async def test_a_run_that_is_taken_over_again_and_again_has_one_start(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **once(target))
    await at.fire_only("a")
    for _ in range(3):
        at.clock.advance(seconds=66)
        await take_and_die(at)
        assert await shows(at, "Running", NOON)
    at.clock.advance(seconds=66)
    await at.take_runs()
    assert await agree(at, target, NOON)


async def fire_without_slot(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **once(target))
    with at.full():
        await at.dispatch("a")


async def run_now(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600, start=after(hours=1)))
    answer = await at.call("run_now", "runs", id="a")
    assert (answer.status, answer.body["startTime"]) == (202, None)


async def resubmit(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **once(target))
    await at.dispatch("a")
    answer = await at.call("resubmit", "runs", id="a", seq="1")
    assert (answer.status, answer.body["startTime"]) == (202, None)


@pytest.mark.parametrize("make", [fire_without_slot, run_now, resubmit])
@pytest.mark.parametrize("dies", [False, True])
async def test_what_waits_for_an_executor_starts_when_one_takes_it(
    at: Bench, target: Receiver, make: Make, dies: bool
) -> None:
    await make(at, target)
    assert await not_started(at)
    at.clock.advance(seconds=40)
    assert await not_started(at)
    if dies:
        await take_and_die(at)
        at.clock.advance(seconds=66)
    await at.take_runs()
    assert await agree(at, target, after(seconds=40))


async def test_a_pass_that_waits_for_slots_starts_a_run_when_it_locks_it(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="1") as at:
        await at.create(id="a", **once(target))
        slots = at.app.workshop.slots
        slots.patience = 100_000  # a busy machine is not a hanging one
        slots.add("another")
        dispatching = asyncio.create_task(at.dispatch())
        await until(lambda: slots._in_vain)
        at.clock.advance(seconds=3)
        slots.give("another")
        await dispatching
        assert await agree(at, target, after(seconds=3))


@pytest.mark.parametrize("who", ["starts here", "starts elsewhere", "its process dies"])
async def test_what_waits_at_its_jobs_gate_starts_when_it_gets_a_slot_behind_it(
    storage: str, target: Receiver, who: str
) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        slow = Slow(target)
        await at.create(id="a", **bounded(target.url, 1, 1, start=NOON))
        crew = Crew("00", at.app.workshop, NOON if who == "starts elsewhere" else after(hours=1))
        async with crew:
            await at.app.dispatcher.round("00", at.clock(), crew)
            await until(lambda: target.hits)
            at.clock.advance(seconds=10)
            await at.dispatch()
            assert await not_started(at)
            at.clock.advance(seconds=5)
            if who == "its process dies":
                crew.start = lambda run: at.app.workshop.slots.give(run.job_id)  # type: ignore[method-assign]
            slow.go.set()
        start = after(seconds=15)
        if who == "its process dies":
            assert await shows(at, "Running", start, after(seconds=10))
            at.clock.advance(seconds=66)
        elif who == "starts elsewhere":
            assert await not_started(at)
            start = at.clock.advance(seconds=5)
        await at.take_runs()
        assert await agree(at, target, start, after(seconds=10))


@pytest.mark.parametrize("dies", [False, True])
async def test_a_run_that_pauses_keeps_its_start(at: Bench, target: Receiver, dies: bool) -> None:
    actions = {
        "Before": call(target.url, body=SAYS_START),
        "Pause": wait(60, {"Before": ["Succeeded"]}),
        "After": call(target.url, {"Pause": ["Succeeded"]}, body=SAYS_START),
    }
    await at.create(id="a", **steps_job(actions))
    with at.full():
        await at.dispatch("a")
    start = at.clock.advance(seconds=40)
    await at.take_runs()
    assert await shows(at, "Waiting", start)  # its pause
    at.clock.advance(seconds=60)
    with at.full():
        await at.dispatch("a")
    assert await shows(at, "Waiting", start)  # for an executor
    at.clock.advance(seconds=20)
    if dies:
        await take_and_die(at)
        assert await shows(at, "Running", start)
        at.clock.advance(seconds=66)
    await at.take_runs()
    assert len(target.hits) == 2
    assert await agree(at, target, start)


async def test_a_run_that_pauses_before_anything_else_starts_with_its_lock(at: Bench, target: Receiver) -> None:
    actions = {"Pause": wait(60), "After": call(target.url, {"Pause": ["Succeeded"]}, body=SAYS_START)}
    await at.create(id="a", **steps_job(actions))
    await at.fire_only("a")
    at.clock.advance(seconds=66)
    await at.take_runs()
    assert await shows(at, "Waiting", NOON)
    at.clock.advance(seconds=66)
    await at.dispatch("a")
    assert await agree(at, target, NOON)


async def test_an_instance_starts_when_a_host_first_loads_it(at: Bench) -> None:
    await fired(at, every=360000)
    assert await not_started(at)
    start = at.clock.advance(seconds=40)
    first = await (await host(at)).try_load()
    assert await shows(at, "Running", start)
    await lapse(at, seconds=66)  # its host is lost
    assert await shows(at, "Waiting", start)
    second = await host(at)
    saved = await second.try_load()
    await second.save(saved, unlock=True, pendingTimer=json_text(at.clock() + timedelta(seconds=20)))
    at.clock.advance(seconds=20)
    await at.dispatch()
    assert await shows(at, "Waiting", start)
    asked = {"jobId": "a", "run": 1}
    third = await (await host(at)).told("load", asked)
    at.clock.advance(seconds=66)
    fourth = await host(at)
    last = await fourth.told("load", asked)
    assert {each["startTime"] for each in (first, saved, third, last)} == {json_text(start)}
    assert last["fencingToken"] == third["fencingToken"] + 1
    await fourth.save(last, complete={})
    assert await shows(at, "Succeeded", start)


async def test_an_instance_loaded_by_its_number_starts_then(at: Bench) -> None:
    await fired(at, every=360000)
    start = at.clock.advance(seconds=40)
    one = await host(at)
    for _ in range(2):  # again, since the answer was lost
        instance = await one.told("load", {"jobId": "a", "run": 1})
        assert instance["startTime"] == json_text(start)
        at.clock.advance(seconds=5)
    await one.save(instance, complete={})
    assert await shows(at, "Succeeded", start)


async def test_a_workflow_starts_when_it_gets_a_slot_and_keeps_its_start(at: Bench) -> None:
    await at.create(id="a", **hosted(360000, "example/countdown", parameters={"from": 1, "pause": 60}))
    with at.full():
        await at.dispatch("a")
    assert await not_started(at)
    start = at.clock.advance(seconds=40)
    await at.take_runs()
    assert await shows(at, "Waiting", start)
    at.clock.advance(seconds=60)
    await at.dispatch("a")
    await at.take_runs()
    assert await shows(at, "Succeeded", start)


async def test_a_run_that_never_started_is_shown_with_none_until_it_has_ended(
    storage: str, target: Receiver
) -> None:
    async with bench(storage, DEFAULT_MAX_LATENESS="PT30S") as at:
        await at.create(id="a", **http_job(target.url, every=3600, start=NOON))
        with at.full():
            await at.dispatch("a")
        assert await not_started(at)
        at.clock.advance(seconds=31)
        await at.take_runs()
        assert await shows(at, "Missed", after(seconds=31))


async def forget_starts(at: Bench) -> None:
    """Leaves the rows of runs as versions wrote them that did not keep when a run started."""
    partition = at.app.store.jobs.partition("a")
    rows = [row for kind in ("run", "timer", "load") for row in await at.rows(kind) if "firedAt" in row]
    assert rows
    older = [{name: value for name, value in row.items() if name != "startedAt"} for row in rows]
    await at.app.store.table.commit(partition, [Write(Verb.REPLACE, row, row["etag"]) for row in older])


async def test_a_locked_run_of_an_older_version_has_started_when_it_was_fired(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **once(target))
    await at.fire_only("a")
    await forget_starts(at)
    assert await shows(at, "Running", NOON)
    at.clock.advance(seconds=66)
    await take_and_die(at)
    assert await shows(at, "Running", NOON)
    at.clock.advance(seconds=66)
    await at.take_runs()
    assert await agree(at, target, NOON)


async def test_a_waiting_run_of_an_older_version_starts_when_it_is_taken(at: Bench, target: Receiver) -> None:
    await fire_without_slot(at, target)
    await forget_starts(at)
    assert await not_started(at)
    at.clock.advance(seconds=40)
    await at.take_runs()
    assert await agree(at, target, after(seconds=40))


async def test_a_pausing_run_of_an_older_version_has_started_when_it_was_fired(
    at: Bench, target: Receiver
) -> None:
    actions = {"Pause": wait(60), "After": call(target.url, {"Pause": ["Succeeded"]}, body=SAYS_START)}
    await at.create(id="a", **steps_job(actions))
    await at.dispatch("a")
    await forget_starts(at)
    assert await shows(at, "Waiting", NOON)
    at.clock.advance(seconds=66)
    await at.dispatch("a")
    assert await agree(at, target, NOON)


@pytest.mark.parametrize("unlocked", [False, True])
async def test_an_instance_of_an_older_version_has_started_when_it_was_fired(at: Bench, unlocked: bool) -> None:
    await fired(at, every=360000)
    at.clock.advance(seconds=40)
    one = await host(at)
    instance = await one.try_load()
    if unlocked:
        await one.save(instance, unlock=True)
    await forget_starts(at)
    assert await shows(at, "Waiting" if unlocked else "Running", NOON)
    await lapse(at, seconds=66)
    two = await host(at)
    again = await two.try_load()
    assert again["startTime"] == json_text(NOON)
    await two.save(again, complete={})
    assert await shows(at, "Succeeded", NOON)
