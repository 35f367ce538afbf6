"""Deleting: nothing fires after it, no row stays, and it can die half-way."""

import asyncio
from datetime import timedelta

import pytest

from shared.storage.rows import timer_key
from tests.harness import NOON, Bench, Receiver, bench, http_job


async def test_a_deleted_job_leaves_no_row(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=1))
    for _ in range(5):
        await at.dispatch("a")
        at.clock.advance(seconds=1)
    await at.fire_only("a")
    assert (await at.call("delete", id="a")).status == 204
    for kind in ("job", "timer", "run", "past"):
        assert not await at.rows(kind)
    assert (await at.call("get", id="a")).status == 404
    await at.dispatch("a")
    at.clock.advance(minutes=5)
    await at.take_runs()
    assert len(target.hits) == 5


async def test_more_rows_than_a_transaction_holds_are_removed(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=1, historyLimit=250))
    for _ in range(210):
        await at.fire_only("a")
        at.clock.advance(seconds=1)
    assert len(await at.rows("run")) == 210
    await at.call("delete", id="a")
    assert not await at.rows("run")


async def test_only_the_jobs_own_rows_are_removed(storage: str, target: Receiver) -> None:
    names = ["a", "a.b", "a-", "aa", "a~", "A"]
    async with bench(storage, PARTITIONS="1") as at:
        for name in names:
            await at.create(id=name, **http_job(target.url, every=3600))
        await at.dispatch()
        await at.call("delete", id="a")
        left = {row["RowKey"].split(":")[1] for row in await at.rows("past")}
        assert left == set(names) - {"a"}


@pytest.mark.parametrize("dies_at", range(1, 8))
async def test_a_removal_that_dies_half_way_is_gone_on_with(at: Bench, target: Receiver, dies_at: int) -> None:
    await at.create(id="a", **http_job(target.url, every=1))
    await at.dispatch("a")
    at.clock.advance(seconds=1)
    await at.fire_only("a")
    at.requests.clear()

    async def die(line: str) -> None:
        if len(at.requests) >= dies_at:
            raise asyncio.CancelledError

    at.wire.hold = die
    try:
        response = await at.call("delete", id="a")
    except asyncio.CancelledError:
        response = None
    at.wire.hold = None
    begun = any("$batch" in line for line in at.requests[: dies_at - 1])
    if begun:
        assert (await at.call("get", id="a")).status == 404
        hits = len(target.hits)
        at.clock.advance(minutes=2)
        await at.app.detector.tick()
        await at.dispatch("a")
        assert len(target.hits) == hits
        for kind in ("job", "timer", "run", "past"):
            assert not await at.rows(kind)
    else:
        assert response is None
        assert (await at.call("get", id="a")).status == 200


async def test_a_create_that_meets_a_removal_finishes_it_first(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=1))
    await at.dispatch("a")
    job = await at.app.admin.get("a")
    assert await at.app.admin._remover.begin(job, at.clock())  # and then it dies
    (timer,) = await at.rows("timer")
    assert timer["RowKey"] == timer_key(NOON + timedelta(minutes=1), "a")
    made = await at.create(id="a", **http_job(target.url, every=1))
    assert (made["fired"], made["generation"]) == (0, 1)
    assert not await at.runs("a")


async def test_a_delete_whose_answers_are_lost_is_done_all_the_same(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=1))
    await at.dispatch("a")
    seen: set[int] = set()

    def lose(line: str) -> bool:
        seen.add(len(at.requests))
        return "$batch" in line and len(seen) % 2 == 1

    at.wire.lose_answer = lose
    assert (await at.call("delete", id="a")).status == 204
    assert not await at.rows("job")


async def test_deletes_side_by_side_end_with_the_job_gone(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=1, historyLimit=300))
    for _ in range(150):
        await at.fire_only("a")
        at.clock.advance(seconds=1)
    answers = await asyncio.gather(*(at.call("delete", id="a") for _ in range(4)))
    assert {answer.status for answer in answers} <= {204, 404}
    assert 204 in {answer.status for answer in answers}
    for kind in ("job", "timer", "run", "past"):
        assert not await at.rows(kind)


async def test_a_run_that_ends_after_its_job_was_made_anew_writes_nothing(at: Bench, target: Receiver) -> None:
    from shared.engine.crew import Crew

    await at.create(id="a", **http_job(target.url, every=3600))
    await at.fire_only("a")
    (old,) = await at.app.store.runs.of_job("a")
    await at.call("delete", id="a")
    await at.create(id="a", **http_job(target.url, every=3600))
    await at.fire_only("a")
    (new,) = await at.app.store.runs.of_job("a")
    assert (old.seq, new.seq) == (1, 1)
    async with Crew(at.app.store.jobs.partition("a"), at.app.workshop, at.clock()) as crew:
        crew.start(old)
    assert await at.app.store.runs.of_job("a") == [new]
    assert [run["status"] for run in await at.runs("a")] == ["Running"]
