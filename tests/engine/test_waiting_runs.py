"""Runs that get no slot: taken by turns, bounded in number, in bytes and in time."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from shared.engine.announce import TAKE
from shared.engine.crew import Crew
from shared.jobs.model import Run
from shared.storage.fair import MAX_BYTES, Candidate, Turns
from shared.storage.records import run_row
from shared.storage.table import MAX_ROWS, Verb, Write
from shared.storage.tickets import Ticket
from tests.engine.test_gate import Slow, bounded, sliding
from tests.harness import NOON, Bench, Hit, Receiver, bench, http_job, until


class Hanging:
    """A target that does not answer some jobs until `go` is set."""

    def __init__(self, target: Receiver, *jobs: str) -> None:
        self._jobs = jobs
        self.go = asyncio.Event()
        target.answer = self.answer

    async def answer(self, hit: Hit) -> web.Response:
        if hit.job in self._jobs:
            await self.go.wait()
        return web.Response()


async def waiting(at: Bench, job_id: str, number: int, state: bytes = b"", by_hand: bool = True) -> None:
    """Puts runs of a job into the table as runs that wait for an executor."""
    job = await at.app.admin.get(job_id)
    runs = [
        Run(
            job_id=job_id,
            seq=1000 + n,
            stamp=job.core.stamp,
            definition=job.core.definition,
            scheduled=at.clock(),
            fired_at=at.clock(),
            by_hand=by_hand,
            state=state,
        )
        for n in range(number)
    ]
    size = MAX_ROWS if not state else 2
    for start in range(0, number, size):
        writes = [Write(Verb.INSERT, run_row(run)) for run in runs[start : start + size]]
        await at.app.store.table.commit(at.app.store.jobs.partition(job_id), writes)


async def free(at: Bench, after: str = "") -> Turns:
    def is_enough(seen: Sequence[Candidate]) -> bool:
        return len({row.job_id for row in seen}) >= TAKE

    return await at.app.store.runs.free("00", at.clock(), timedelta(minutes=1), after, is_enough)


async def clear(at: Bench) -> None:
    rows = await at.app.store.table.scan("00", "run:", "run;", select=["RowKey"])
    for start in range(0, len(rows), MAX_ROWS):
        writes = [Write(Verb.DELETE, {"RowKey": row["RowKey"]}) for row in rows[start : start + MAX_ROWS]]
        await at.app.store.table.commit("00", writes)


async def test_one_job_has_its_turn_however_many_runs_of_another_wait(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for job_id in ("a", "z"):
            await at.create(id=job_id, **http_job(target.url, every=36000, start=NOON + timedelta(hours=1)))
        await waiting(at, "a", 1000)
        await waiting(at, "z", 1)
        at.requests.clear()
        turns = await free(at)
        assert len(at.requests) == 2
        assert (len(turns.rows), turns.more) == (101, True)
        assert [row.job_id for row in turns.rows[:3]] == ["a", "z", "a"]
        await clear(at)


async def hung(at: Bench, target: Receiver, number: int) -> set[str]:
    """60 jobs that may have no further slot, `number` runs of each waiting; and one run of `z`, behind them."""
    hanging = {f"hung-{n:02}" for n in range(60)}
    for job_id in (*hanging, "z"):
        await at.create(id=job_id, **http_job(target.url, every=36000, start=NOON + timedelta(hours=1)))
        await waiting(at, job_id, 1 if job_id == "z" else number)
    for job_id in hanging:
        at.app.workshop.slots.add(job_id)
    return hanging


async def test_of_runs_that_get_no_slot_no_more_than_keys_are_read(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="120") as at:
        hanging = await hung(at, target, 10)
        at.requests.clear()
        async with Crew("00", at.app.workshop, at.clock()) as crew:
            taken = await at.app.dispatcher._line.taker.take("00", crew)
        assert taken.without_slot == hanging
        assert [hit.job for hit in target.hits] == ["z"]
        queries = [line for line in at.requests if "RowKey ge 'run:" in line]
        assert ["$select=RowKey" in line for line in queries] == [True] * 7 + [False]
        await clear(at)


async def test_jobs_that_may_have_no_slot_hide_none_behind_them(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="120") as at:
        hanging = await hung(at, target, 19)
        async with Crew("00", at.app.workshop, at.clock()) as crew:
            taken = await at.app.dispatcher._line.taker.take("00", crew)
        assert [hit.job for hit in target.hits] == ["z"]
        assert taken.without_slot == hanging
        await clear(at)


async def test_further_runs_are_called_for_at_once_though_a_job_has_no_slot(
    storage: str, target: Receiver
) -> None:
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="300") as at:
        await at.create(id="a", **http_job(target.url, every=36000, start=NOON + timedelta(hours=1)))
        await waiting(at, "a", 180)
        sent: list[timedelta] = []
        at.wire.mail = lambda ticket, delay: sent.append(delay)
        hanging = Hanging(target, "a")
        taking = asyncio.create_task(at.take_runs())
        await until(lambda: sent)
        hanging.go.set()
        await taking
        assert sent[0] == timedelta(0)
        await clear(at)


async def test_jobs_have_the_first_turn_by_turns(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="1") as at:
        for job_id in ("a", "b", "c"):
            await at.create(id=job_id, **http_job(target.url, every=36000, start=NOON + timedelta(hours=1)))
            await waiting(at, job_id, 2)
        await at.take_runs()
        assert [hit.job for hit in target.hits] == ["a", "b", "c", "a", "b", "c"]


async def test_jobs_whose_runs_were_not_read_for_their_weight_are_next(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        jobs = [f"j{n:02}" for n in range(45)]
        for job_id in jobs:
            await at.create(id=job_id, **http_job(target.url, every=36000, start=NOON + timedelta(hours=1)))
            await waiting(at, job_id, 1, state=bytes(256 * 1024))
        first = await taken_by_turns(at, jobs)
        await waiting(at, jobs[0], 1, state=bytes(256 * 1024))  # has had its turn
        second = await taken_by_turns(at, [*jobs[len(first) :], jobs[0]])
        assert [*first, *second] == jobs[: len(first) + len(second)]
        assert 0 < len(first) <= 17
        assert 0 < len(second) <= 17
        await clear(at)


async def taken_by_turns(at: Bench, waits: list[str]) -> list[str]:
    """Takes once, and gives those of the jobs that were taken, in order; there are more."""
    async with Crew("00", at.app.workshop, at.clock()) as crew:
        assert (await at.app.dispatcher._line.taker.take("00", crew)).more
    left = {row["RowKey"].split(":")[1] for row in await at.rows("run")}
    return [job_id for job_id in waits if job_id not in left]


async def test_what_is_read_is_bounded_in_bytes(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        await at.create(id="a", **http_job(target.url, every=36000, start=NOON + timedelta(hours=1)))
        await waiting(at, "a", 64, state=bytes(256 * 1024))
        turns = await free(at)
        assert len(turns.rows) == 64
        runs, all_read = await at.app.store.runs.read(turns, turns.rows)
        assert not all_read
        assert 0 < sum(len(run.state) for run in runs) <= 2 * MAX_BYTES
        await clear(at)


async def test_a_job_of_many_short_runs_loses_nothing_by_its_share(storage: str, target: Receiver) -> None:
    most, under_way = 0, 0

    async def answer(hit: Hit) -> web.Response:
        nonlocal most, under_way
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return web.Response()

    target.answer = answer
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="20") as at:
        await at.create(id="a", **http_job(target.url, every=36000, start=NOON + timedelta(hours=1)))
        await waiting(at, "a", 90)
        at.requests.clear()
        await at.take_runs()
        assert len({hit.key for hit in target.hits}) == len(target.hits) == 90
        assert 1 < most <= 5
        assert len([line for line in at.requests if "/messages" in line]) == 1


async def test_a_hung_job_leaves_what_others_wait_for(storage: str, target: Receiver) -> None:
    hanging = Hanging(target, "a")
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="4") as at:
        for job_id in ("a", "b"):
            await at.create(id=job_id, **http_job(target.url, every=36000, start=NOON + timedelta(hours=1)))
        await waiting(at, "a", 5)
        await waiting(at, "b", 1)
        taking = asyncio.create_task(at.take_runs())
        await until(lambda: Counter(hit.job for hit in target.hits) == {"a": 1, "b": 1})
        hanging.go.set()
        await taking
        assert Counter(hit.job for hit in target.hits) == {"a": 5, "b": 1}


async def test_ten_hanging_jobs_hold_one_invocation_and_stop_no_neighbour(storage: str, target: Receiver) -> None:
    hanging = Hanging(target, *(f"hung-{n}" for n in range(10)))
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="20") as at:
        at.app.workshop.slots.patience = 100_000  # a busy machine is not a hanging one
        for n in range(10):
            await at.create(id=f"hung-{n}", **http_job(target.url, every=10, start=NOON))
            await at.create(id=f"quick-{n}", **http_job(target.url, every=10, start=NOON))
        opened = []
        for beat in range(4):
            ticket = Ticket("00", at.clock())
            opened.append(asyncio.create_task(at.app.dispatcher.carry_out(ticket)))
            called = 10 * (beat + 1)
            await until(lambda: sum(hit.job.startswith("quick") for hit in target.hits) == called)  # noqa: B023
            await until(lambda: at.app.workshop.slots.taken == 10)
            at.clock.advance(seconds=10)
        await until(lambda: sum(not each.done() for each in opened) == 1)
        assert len([hit for hit in target.hits if hit.job.startswith("hung")]) == 10
        async with asyncio.timeout(30):
            while len(await at.rows("run")) != 40:  # noqa: ASYNC110  polls storage: quick ones are being completed
                await asyncio.sleep(0.02)
        hanging.go.set()
        await asyncio.gather(*opened)
        await at.take_runs()
        await until(lambda: at.app.workshop.slots.taken == 0)
        assert len({hit.key for hit in target.hits}) == len(target.hits) == 80


async def test_of_too_many_waiting_runs_the_next_is_skipped_in_one_record(storage: str, target: Receiver) -> None:
    async with bench(storage, MAX_WAITING_PER_JOB="3") as at:
        await at.create(id="a", **http_job(target.url, every=10, start=NOON))
        asked = []  # how many wait
        with at.full():
            for _ in range(6):
                at.requests.clear()
                await at.dispatch("a")
                asked.append(any("lockedUntil eq" in line for line in at.requests))
                at.clock.advance(seconds=10)
        runs = await at.runs("a")
        assert [run["status"] for run in runs] == ["Skipped", "Waiting", "Waiting", "Waiting"]
        assert (runs[0]["count"], runs[0]["from"]) == (3, "2026-09-08T12:00:30Z")
        assert runs[0]["reason"] == "waiting for an executor: 3; no more runs may be"
        assert asked == [True, False, False, True, True, True]
        job = (await at.call("get", id="a")).body
        assert (job["fired"], job["skipped"]) == (3, 3)
        await at.take_runs()
        assert len(target.hits) == 3


@pytest.mark.parametrize("kind", ["plain", "jitter", "own"])
async def test_a_run_that_waited_beyond_its_lateness_is_missed(storage: str, target: Receiver, kind: str) -> None:
    async with bench(storage, DEFAULT_MAX_LATENESS="PT30S") as at:
        body = http_job(target.url, every=3600, start=NOON)
        if kind == "own":
            body["trigger"]["maxLateness"] = "PT1M"
        if kind == "jitter":
            body["trigger"]["jitter"] = "PT20S"
        await at.create(id="a", **body)
        job = await at.app.admin.get("a")
        assert job.pending
        at.clock.now = job.pending.due
        with at.full():
            await at.dispatch("a")
        at.clock.advance(seconds={"plain": 31, "jitter": 31, "own": 61}[kind])
        await at.take_runs()
        assert not target.hits
        (run,) = await at.runs("a")
        assert (run["seq"], run["status"], run["attempts"]) == (1, "Missed", 0)
        assert "maxLateness" in run["reason"]
        assert "PT1M" in run["reason"] if kind == "own" else "PT30S" in run["reason"]
        assert not await at.rows("run")
        assert (await at.call("get", id="a")).body["lastRun"]["status"] == "Missed"


async def test_a_run_within_its_lateness_is_called_however_close(storage: str, target: Receiver) -> None:
    async with bench(storage, DEFAULT_MAX_LATENESS="PT30S") as at:
        await at.create(id="a", **http_job(target.url, every=3600, start=NOON))
        with at.full():
            await at.dispatch("a")
        at.clock.advance(seconds=30)
        await at.take_runs()
        assert len(target.hits) == 1


async def manual(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=36000, start=NOON + timedelta(hours=9)))
    assert (await at.call("run_now", "runs", id="a")).status == 202


async def resubmitted(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=36000, start=NOON))
    await at.dispatch("a")
    target.hits.clear()
    at.clock.advance(hours=1)
    assert (await at.call("resubmit", "runs", id="a", seq="1")).status == 202


async def window(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **sliding(target.url, start="2026-09-08T12:00:00Z"))
    at.clock.advance(hours=1)
    with at.full():
        await at.dispatch("a")


async def once(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url) | {"trigger": {"type": "Once"}})
    with at.full():
        await at.dispatch("a")


@pytest.mark.parametrize("make", [manual, resubmitted, window, once])
async def test_what_has_no_lateness_waits_as_long_as_it_takes(storage: str, target: Receiver, make: Any) -> None:
    async with bench(storage, DEFAULT_MAX_LATENESS="PT30S") as at:
        await make(at, target)
        at.clock.advance(hours=2)
        await at.take_runs()
        assert len(target.hits) >= 1


@pytest.mark.parametrize(("lateness", "at_gate", "for_executor"), [("PT30S", 50, 0), ("PT1M", 45, 20)])
async def test_what_waited_at_its_jobs_gate_is_not_missed_for_that(
    storage: str, target: Receiver, lateness: str, at_gate: int, for_executor: int
) -> None:
    async with bench(storage, DEFAULT_MAX_LATENESS=lateness) as at:
        slow = Slow(target)
        await at.create(id="a", **bounded(target.url, 1, 1))
        first = asyncio.create_task(at.dispatch("a"))
        await until(lambda: target.hits)
        at.clock.advance(seconds=10)
        await at.dispatch("a")
        at.clock.advance(seconds=at_gate)
        slow.go.set()
        await first
        at.clock.advance(seconds=for_executor)
        await at.take_runs()
        assert len(target.hits) == 2


async def test_runs_that_are_missed_are_read_no_more(
    storage: str, target: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    async with bench(storage, PARTITIONS="1", DEFAULT_MAX_LATENESS="PT30S", MAX_EXECUTING="1") as at:
        for job_id in ("a", "b"):
            await at.create(id=job_id, **http_job(target.url, every=36000, start=NOON + timedelta(hours=1)))
            await waiting(at, job_id, 4, by_hand=False)
        at.clock.advance(seconds=31)
        await at.take_runs()
        assert not await at.rows("run")
        missed = Counter((each.job, each.run) for each in caplog.records if "is missed" in each.message)  # type: ignore[attr-defined]
        assert set(missed.values()) == {1}
        assert len(missed) == 8
        assert not target.hits


async def test_missed_by_several_passes_at_once_is_recorded_once(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1", DEFAULT_MAX_LATENESS="PT30S") as at:
        await at.create(id="a", **http_job(target.url, every=3600, start=NOON))
        with at.full():
            await at.dispatch("a")
        at.clock.advance(seconds=31)
        await asyncio.gather(*(at.app.dispatcher.take_runs("00") for _ in range(3)))
        assert [run["status"] for run in await at.runs("a")] == ["Missed"]


async def test_parallel_actions_take_further_slots_and_wait_for_them(storage: str, target: Receiver) -> None:
    slow = Slow(target)
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="8") as at:
        body = http_job(target.url, every=3600, start=NOON)
        action = body.pop("action")
        await at.create(id="a", **body, actions={f"A{n}": action for n in range(12)})
        dispatching = asyncio.create_task(at.dispatch())
        await until(lambda: len(target.hits) == 2)
        assert at.app.workshop.slots.taken == 2
        with at.full():
            slow.go.set()
            await dispatching
        assert len({hit.key for hit in target.hits}) == len(target.hits) == 12
        assert at.app.workshop.slots.taken == 0


async def test_a_gate_that_opens_wide_starts_what_there_are_slots_for_and_announces_the_rest(
    storage: str, target: Receiver
) -> None:
    slow = Slow(target)
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="8") as at:
        await at.create(id="a", **bounded(target.url, 1, 20))
        async with Crew("00", at.app.workshop, at.clock() + timedelta(hours=1)) as crew:
            await at.app.dispatcher.round("00", at.clock(), crew)
            for _ in range(10):
                at.clock.advance(seconds=1)
                assert (await at.call("run_now", "runs", id="a")).status == 202
            assert (await at.call("put", id="a", body=bounded(target.url, 5, 20))).status == 200
            slow.go.set()
        assert at.app.workshop.slots.taken == 0
        await at.take_runs()
        assert len({hit.key for hit in target.hits}) == len(target.hits) == 11
