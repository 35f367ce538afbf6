"""A process that is nearly full: who has a claim to what is left, and nobody waits for what will not come."""

import asyncio
from collections import Counter
from datetime import timedelta

from shared.engine.crew import Crew
from shared.storage.tickets import Ticket
from shared.workflow import Context, registered, workflow
from tests.activation.support import hosted
from tests.engine.test_waiting_runs import Hanging, clear, waiting
from tests.harness import NOON, Bench, Receiver, bench, http_job, until
from tests.herd import new_jobs, write_jobs

KIND = "crowded/workflow"
LATER = NOON + timedelta(hours=1)


def hidden(at: Bench) -> int:
    """How many tickets were sent that are hidden for 5 seconds."""
    return len([line for line in at.requests if "/messages" in line and "visibilitytimeout=5&" in f"{line}&"])


async def test_a_workflow_has_its_turn_beside_a_job_whose_runs_fill_a_reading(
    storage: str, target: Receiver
) -> None:
    hanging, ran = Hanging(target, "a"), asyncio.Event()

    async def body(context: Context) -> None:
        ran.set()

    workflow(KIND)(body)
    try:
        async with bench(storage, PARTITIONS="1", MAX_EXECUTING="4") as at:
            await at.create(id="a", **http_job(target.url, every=36000, start=LATER))
            await at.create(id="w", **hosted(360000, KIND))
            with at.full():
                await at.dispatch("w")
            await waiting(at, "a", 101)
            taking = asyncio.create_task(at.take_runs())
            await until(ran.is_set)
            await until(lambda: len(at.app.workshop.slots._by_job) == 1)
            await clear(at)
            hanging.go.set()
            await taking
    finally:
        registered().pop(KIND)  # type: ignore[attr-defined]


async def test_nobody_waits_for_slots_of_jobs_that_are_at_their_share(storage: str, target: Receiver) -> None:
    hanging = Hanging(target, *(f"hung-{n:02}" for n in range(19)))
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="20") as at:
        for n in range(19):
            await at.create(id=f"hung-{n:02}", **http_job(target.url, every=10, start=NOON))
        await at.create(id="quick", **http_job(target.url, every=10, start=NOON))
        first = asyncio.create_task(at.dispatch())
        await until(lambda: len(target.hits) == 20)
        await until(lambda: at.app.workshop.slots.taken == 19)
        at.clock.advance(seconds=10)
        at.requests.clear()
        second = asyncio.create_task(at.dispatch())
        await until(lambda: Counter(hit.job for hit in target.hits)["quick"] == 2)
        assert len([line for line in at.requests if "$batch" in line]) <= 2  # all fired at once; its completion
        hanging.go.set()
        await asyncio.gather(first, second)
        while await at.rows("run"):
            await at.take_runs()
        assert at.app.workshop.slots.taken == 0


async def test_the_next_turn_is_anothers_also_where_nobody_got_a_slot(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="1") as at:
        ids = [*(f"a{n:03}" for n in range(100)), "z"]
        bodies = (http_job(target.url, id=job_id, every=36000, start=LATER) for job_id in ids)
        await write_jobs(at.app.store, new_jobs(bodies, at.clock()))
        for job_id in ids:
            await waiting(at, job_id, 1)
        taker = at.app.dispatcher._line.taker
        async with Crew("00", at.app.workshop, at.clock()) as crew:
            with at.full():
                assert len((await taker.take("00", crew)).without_slot) == 100
            await taker.take("00", crew)
        assert [hit.job for hit in target.hits] == ["z"]
        await clear(at)


async def test_a_full_process_calls_others_also_while_a_pass_of_it_waits_for_slots(
    storage: str, target: Receiver
) -> None:
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="2") as at:
        for job_id in ("a", "b"):
            await at.create(id=job_id, **http_job(target.url, every=36000, start=LATER))
        await waiting(at, "a", 1)
        with at.full():
            lingering = asyncio.create_task(at.take_runs())
            await until(lambda: hidden(at) == 1)
            at.clock.advance(seconds=6)  # somebody has taken that ticket
            assert (await at.call("run_now", "runs", id="b")).status == 202
            await at.create(id="c", **http_job(target.url, every=36000, start=at.clock()))
            at.requests.clear()
            await at.dispatch("c")
            assert hidden(at) == 1
        await lingering
        assert {hit.job for hit in target.hits} == {"a", "b", "c"}


async def test_a_run_that_starts_twice_in_a_pass_gives_both_slots_back(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600, start=NOON))
    await at.fire_only("a")
    (run,) = await at.app.store.runs.of_job("a")
    async with Crew(at.app.store.jobs.partition("a"), at.app.workshop, at.clock()) as crew:
        for _ in range(2):
            at.app.workshop.slots.add("a")
            crew.start(run)
    assert at.app.workshop.slots.taken == 0


async def test_a_clock_that_is_set_back_ends_the_wait_for_an_early_ticket(at: Bench) -> None:
    at.requests.clear()
    waits = asyncio.create_task(at.app.dispatcher.carry_out(Ticket("00", at.clock() + timedelta(seconds=0.2))))
    for _ in range(10):
        await asyncio.sleep(0)
    at.clock.advance(hours=-1)
    await waits
    assert hidden(at) == 1
