"""Workflows in Python: run by the app, saved as they go, delayed without memory, gone on with elsewhere."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import workflows.countdown
from shared.errors import InvalidInput
from shared.workflow import Context, registered, workflow
from tests.activation.support import host, hosted
from tests.harness import NOON, Bench, bench, until

KIND = "test/probe"


class Probe:
    """A workflow that does what a test says, and keeps what it was given."""

    def __init__(self) -> None:
        self.seen: list[Context] = []
        self.body: Any = None

    async def __call__(self, ctx: Context) -> None:
        self.seen.append(ctx)
        await self.body(ctx)


@pytest.fixture
def probe() -> Iterator[Probe]:
    made = Probe()
    workflow(KIND)(made)
    yield made
    registered().pop(KIND)  # type: ignore[attr-defined]


async def run_out(at: Bench, job_id: str = "a") -> Any:
    """The newest run, after all that is due has been done."""
    await at.dispatch(job_id)
    await at.take_runs()
    return (await at.runs(job_id))[0]


async def test_the_worked_example_counts_down_over_delays(at: Bench) -> None:
    assert registered()["example/countdown"] is workflows.countdown.countdown
    await at.create(id="a", **hosted(360000, "example/countdown", parameters={"from": 3, "pause": 60}))
    for _ in range(3):
        run = await run_out(at)
        assert run["status"] == "Waiting"
        assert not await at.rows("run")
        at.clock.advance(seconds=60)
    run = await run_out(at)
    assert (run["status"], run["result"]) == ("Succeeded", {"liftOff": "a", "attempt": 1})


async def test_a_workflow_is_given_its_run(at: Bench, probe: Probe) -> None:
    async def body(ctx: Context) -> None:
        ctx.complete({"sum": ctx.parameters["a"] + 1})

    probe.body = body
    trigger = {
        "type": "SlidingWindow",
        "recurrence": {"frequency": "Hour", "interval": 1, "startTime": "2026-09-08T11:00:00Z"},
    }
    await at.create(id="a", serviceType=KIND, trigger=trigger, parameters={"a": 1})
    run = await run_out(at)
    assert (run["status"], run["result"]) == ("Succeeded", {"sum": 2})
    ctx = min(probe.seen, key=lambda each: each.run)
    assert (ctx.job_id, ctx.run, ctx.attempt, ctx.fencing_token, ctx.state) == ("a", 1, 1, 1000, None)
    assert ctx.scheduled == NOON - timedelta(hours=1)
    assert ctx.window == (NOON - timedelta(hours=1), NOON)
    assert ctx.idempotency_key.startswith("a:")
    assert ctx.idempotency_key.endswith(f":{KIND}")


@pytest.mark.parametrize("how", ["returns", "raises", "bad state", "bad result", "naive", "far"])
async def test_how_a_workflow_ends(at: Bench, probe: Probe, how: str) -> None:
    async def body(ctx: Context) -> None:
        if how == "raises":
            raise LookupError("no paper")
        if how == "bad state":
            await ctx.save({"at": NOON})
        if how == "bad result":
            ctx.complete({1, 2})
        if how == "naive":
            await ctx.delay_until(datetime(2026, 9, 9))  # noqa: DTZ001
        if how == "far":
            await ctx.delay(timedelta(days=9_000_000 / 2))

    probe.body = body
    await at.create(id="a", **hosted(360000, KIND))
    run = await run_out(at)
    expected = {
        "returns": ("Succeeded", None),
        "raises": ("Failed", "LookupError: no paper"),
        "bad state": (
            "Failed",
            "InvalidInput: state: is not JSON: Object of type datetime is not JSON serializable",
        ),
        "bad result": ("Failed", "InvalidInput: result: is not JSON: Object of type set is not JSON serializable"),
        "naive": ("Failed", "ValueError: an instant needs a zone: datetime(..., tzinfo=UTC)"),
        "far": ("Failed", "OverflowError: date value out of range"),
    }
    assert (run["status"], run.get("reason")) == expected[how]


async def test_a_delay_until_an_instant_of_another_zone_keeps_the_state_as_it_stands(
    at: Bench, probe: Probe
) -> None:
    async def body(ctx: Context) -> None:
        if ctx.state is None:
            ctx.state = {"first": True}
            try:
                await ctx.delay_until(datetime(2026, 9, 8, 15, 0, tzinfo=ZoneInfo("Europe/Berlin")))
            except Exception:
                raise AssertionError("leaving is no error that a workflow may catch") from None

    probe.body = body
    await at.create(id="a", **hosted(360000, KIND))
    assert (await run_out(at))["reason"] == "goes on at 2026-09-08T13:00:00Z"
    at.clock.now = datetime(2026, 9, 8, 12, 59, 59, tzinfo=UTC)
    await run_out(at)
    assert len(probe.seen) == 1
    at.clock.advance(seconds=1)
    assert (await run_out(at))["status"] == "Succeeded"
    assert [ctx.state for ctx in probe.seen] == [{"first": True}, {"first": True}]


async def test_another_process_goes_on_from_what_was_saved(storage: str, probe: Probe) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        names = {"TABLE_NAME": at.app.settings.table_name, "QUEUE_NAME": at.app.settings.queue_name}
        async with bench(storage, at.clock, PARTITIONS="1", **names) as other:
            saved = asyncio.Event()
            told: list[str] = []

            async def body(ctx: Context) -> None:
                if ctx.attempt == 1:
                    await ctx.save({"half": True})
                    saved.set()
                    await asyncio.sleep(3600)
                told.append(f"{ctx.attempt} {ctx.state} {ctx.fencing_token}")
                ctx.complete()

            probe.body = body
            await at.create(id="a", **hosted(360000, KIND))
            hanging = asyncio.create_task(at.dispatch())
            await until(saved.is_set)
            hanging.cancel()  # as if the process had died
            await asyncio.gather(hanging, return_exceptions=True)
            at.clock.advance(seconds=66)
            await other.take_runs()
            assert told == ["2 {'half': True} 1001"]
            assert [run["status"] for run in await at.runs("a")] == ["Succeeded"]


async def test_a_workflow_that_lost_its_run_is_left_at_its_next_save(at: Bench, probe: Probe) -> None:
    ended: list[str] = []

    async def body(ctx: Context) -> None:
        await at.call("cancel", "runs", id="a", seq="1")
        try:
            await ctx.save({"late": True})
        except Exception:
            ended.append("caught")
        ended.append("went on")

    probe.body = body
    await at.create(id="a", **hosted(360000, KIND))
    assert (await run_out(at))["status"] == "Cancelled"
    assert not ended


async def test_a_workflow_that_kills_its_process_again_and_again_fails(at: Bench, probe: Probe) -> None:
    async def body(ctx: Context) -> None:
        await asyncio.sleep(3600)

    probe.body = body
    await at.create(id="a", **hosted(360000, KIND))
    for attempts in range(1, 7):
        hanging = asyncio.create_task(at.dispatch() if attempts == 1 else at.take_runs())
        await until_seen(probe, attempts)
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        at.clock.advance(seconds=66)
    run = await run_out(at)
    assert (run["status"], run["reason"]) == ("Failed", "taken over 5 times without getting further")


async def until_seen(probe: Probe, count: int) -> None:
    await until(lambda: len(probe.seen) == count)


async def test_a_run_of_a_workflow_that_this_deployment_lacks_waits_for_one_that_has_it(
    at: Bench, probe: Probe
) -> None:
    async def body(ctx: Context) -> None:
        pass

    probe.body = body
    registered().pop(KIND)  # type: ignore[attr-defined]
    await at.create(id="a", **hosted(360000, KIND))
    assert (await run_out(at))["status"] == "Waiting"
    workflow(KIND)(probe)
    at.requests.clear()
    await at.app.detector.tick()
    assert len([line for line in at.requests if "/messages" in line]) == 1
    assert (await run_out(at))["status"] == "Succeeded"


async def test_a_workflow_of_this_app_is_not_activatable_and_hosts_elsewhere_may_run_it_too(
    at: Bench, probe: Probe
) -> None:
    async def body(ctx: Context) -> None:
        raise AssertionError("another host had it")

    probe.body = body
    await at.create(id="a", **hosted(360000, KIND))
    with at.full():
        await at.dispatch()
    await at.app.detector.tick()
    assert "Any" not in (await at.app.store.hosts.census()).raised
    one = await host(at, KIND)
    await one.save(await one.try_load(), complete={"result": 1})
    assert (await run_out(at))["result"] == 1


async def test_no_more_workflows_run_than_a_process_may_execute(storage: str, probe: Probe) -> None:
    under_way, most = 0, 0

    async def body(ctx: Context) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.05)
        under_way -= 1

    probe.body = body
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="3") as at:
        for number in range(10):
            await at.create(id=f"j{number}", **hosted(360000, KIND))
        await at.dispatch()
        while await at.rows("load"):
            await at.take_runs()
        assert most <= 3
        assert len(probe.seen) == 10


@pytest.mark.parametrize("name", ["TimerJob", "Any", "a b", "", "example/countdown", "timerjob"])
def test_a_name_that_is_taken_or_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        workflow(name)


async def test_a_job_of_a_workflow_has_no_actions(at: Bench) -> None:
    wait = {"type": "Wait", "inputs": {"interval": {"count": 1, "unit": "Second"}}}
    refused = await at.call("create", body=hosted(service_type=KIND, action=wait))
    assert [error["field"] for error in refused.body["errors"]] == ["action"]
    assert InvalidInput.status == refused.status
