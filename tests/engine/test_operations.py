"""Operations on jobs and runs (rules L1 to L8, N4)."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from azure.storage.queue import TextBase64DecodePolicy, TextBase64EncodePolicy
from azure.storage.queue.aio import QueueClient

from shared.storage.table import Verb, Write
from tests.engine.test_gate import Slow, bounded, sliding, started
from tests.engine.test_steps import call, steps_job, wait
from tests.harness import NOON, Bench, Hit, Receiver, bench, http_job
from tests.web.test_bulk import sent


async def job(at: Bench, job_id: str = "a") -> Any:
    return (await at.call("get", id=job_id)).body


async def operate(at: Bench, operation: str, job_id: str = "a") -> Any:
    response = await at.call(operation, id=job_id)
    assert response.status == 200, response.body
    return response.body


async def test_a_suspended_job_is_not_dispatched(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url))
    await at.dispatch()
    suspended = await operate(at, "suspend")
    assert (suspended["state"], suspended["nextOccurrence"]) == ("Suspended", None)
    assert await operate(at, "suspend") == suspended
    at.clock.advance(minutes=5)
    await at.dispatch()
    assert len(target.hits) == 1
    assert not await at.rows("timer")


async def test_resuming_passes_over_what_was_missed_as_one_record(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=10, start=NOON))
    await at.dispatch()
    await operate(at, "suspend")
    at.clock.advance(seconds=2005)
    resumed = await operate(at, "resume")
    assert (resumed["state"], resumed["nextOccurrence"]) == ("Enabled", "2026-09-08T12:33:30Z")
    assert await operate(at, "resume") == resumed
    await at.dispatch()
    assert len(target.hits) == 1
    at.clock.advance(seconds=5)
    await at.dispatch()
    assert len(target.hits) == 2
    stretch = (await at.runs("a"))[1]
    assert (stretch["status"], stretch["count"]) == ("Skipped", 200)
    assert (stretch["from"], stretch["to"]) == ("2026-09-08T12:00:10Z", "2026-09-08T12:33:20Z")
    assert "suspended" in stretch["reason"]


async def test_a_sliding_window_resumes_at_the_first_window_not_dispatched(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **sliding(target.url, start="2026-09-08T12:00:00Z"))
    await at.dispatch()
    await operate(at, "suspend")
    at.clock.advance(hours=3)
    await operate(at, "resume")
    await at.dispatch()
    windows = sorted(run["windowStartTime"] for run in await at.runs("a"))
    assert windows == [f"2026-09-08T{hour}:00:00Z" for hour in (12, 13, 14, 15)]


async def test_a_job_created_suspended_begins_when_it_is_enabled(at: Bench, target: Receiver) -> None:
    await at.create(id="a", state="Suspended", **http_job(target.url, every=3600))
    at.clock.advance(minutes=7)
    await at.dispatch()
    assert not target.hits
    await operate(at, "resume")
    await at.dispatch()
    assert [hit.scheduled for hit in target.hits] == [NOON + timedelta(minutes=7)]
    assert (await job(at))["nextOccurrence"] == "2026-09-08T13:07:00Z"


@pytest.mark.parametrize("by", ["resume", "put", "bulk"])
async def test_a_job_created_suspended_whose_end_has_passed_completes_when_it_is_enabled(
    at: Bench, target: Receiver, by: str
) -> None:
    body = http_job(target.url, every=600)
    body["trigger"]["recurrence"]["endTime"] = "2026-09-08T13:00:00Z"
    await at.create(id="a", state="Suspended", **body)
    at.clock.advance(hours=2)
    if by == "resume":
        await operate(at, "resume")
    elif by == "put":
        assert (await at.call("put", id="a", body=body | {"state": "Enabled"})).status == 200
    else:
        (answer,) = await sent(at, [{"op": "resume", "id": "a"}])
        assert answer["status"] == 200
    await at.dispatch()
    shown = await job(at)
    assert (shown["state"], shown["fired"], shown["missed"], shown["nextOccurrence"]) == ("Completed", 0, 0, None)
    assert not target.hits


async def test_a_job_that_has_run_keeps_its_grid_over_a_suspension(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600))
    await at.dispatch()
    await operate(at, "suspend")
    at.clock.advance(minutes=90)
    await operate(at, "resume")
    await at.dispatch()
    assert len(target.hits) == 1
    assert (await job(at))["nextOccurrence"] == "2026-09-08T14:00:00Z"


async def test_suspension_concerns_the_baton_and_not_what_runs(at: Bench, target: Receiver) -> None:
    slow = Slow(target)
    await at.create(id="a", **bounded(target.url, 1, 1))
    first = await started(at, target, 1)
    at.clock.advance(seconds=10)
    await at.dispatch()
    await operate(at, "suspend")
    slow.go.set()
    await first
    assert len(target.hits) == 2  # the one that waited had been dispatched
    assert [run["status"] for run in await at.runs("a")] == ["Succeeded", "Succeeded"]


async def test_a_run_by_hand_stands_beside_the_schedule(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600, start=NOON + timedelta(minutes=30)))
    at.clock.advance(seconds=7.5)
    response = await at.call("run_now", "runs", id="a")
    assert (response.status, response.body["status"], response.body["seq"]) == (202, "Waiting", 1)
    await at.take_runs()
    (hit,) = target.hits
    assert hit.key.split(":")[2] == "run-1"
    assert hit.scheduled == NOON + timedelta(seconds=7)
    after = await job(at)
    assert (after["fired"], after["nextOccurrence"]) == (0, "2026-09-08T12:30:00Z")
    at.clock.advance(minutes=30)
    await at.dispatch()
    assert len({hit.key for hit in target.hits}) == 2
    assert [run["seq"] for run in await at.runs("a")] == [2, 1]


async def test_a_run_by_hand_does_not_count(at: Bench, target: Receiver) -> None:
    body = http_job(target.url, every=60)
    body["trigger"]["recurrence"]["count"] = 2
    await at.create(id="a", **body)
    for _ in range(3):
        await at.call("run_now", "runs", id="a")
    await at.take_runs()
    for _ in range(3):
        await at.dispatch()
        at.clock.advance(seconds=60)
    assert len(target.hits) == 5
    assert (await job(at))["state"] == "Completed"
    assert (await at.call("run_now", "runs", id="a")).status == 409


async def test_a_run_by_hand_is_allowed_while_suspended_and_counts_as_under_way(
    at: Bench, target: Receiver
) -> None:
    Slow(target).go.set()
    await at.create(id="a", **bounded(target.url, 1, 1))
    await operate(at, "suspend")
    statuses = [(await at.call("run_now", "runs", id="a")).status for _ in range(3)]
    assert statuses == [202, 202, 409]
    assert [run["status"] for run in await at.runs("a")] == ["Waiting", "Waiting"]
    await at.take_runs()
    assert len(target.hits) == 2


async def test_cancelling_a_run_that_waits_for_room(at: Bench, target: Receiver) -> None:
    slow = Slow(target)
    await at.create(id="a", **bounded(target.url, 1, 1))
    first = await started(at, target, 1)
    at.clock.advance(seconds=10)
    await at.dispatch()
    assert (await at.call("cancel", "runs", id="a", seq="2")).status == 202
    slow.go.set()
    await first
    assert len(target.hits) == 1
    assert [run["status"] for run in await at.runs("a")] == ["Cancelled", "Succeeded"]


async def test_cancelling_an_idle_run(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **steps_job({"Pause": wait(60), "Call": call(target.url, {"Pause": ["Succeeded"]})}))
    await at.dispatch()
    answer = await at.call("cancel", "runs", id="a", seq="1")
    assert (answer.status, answer.body["status"]) == (202, "Cancelled")
    at.clock.advance(seconds=61)
    await at.dispatch()
    assert not target.hits
    assert not await at.rows("idle")
    assert (await at.call("cancel", "runs", id="a", seq="1")).status == 409
    assert (await at.call("cancel", "runs", id="a", seq="9")).status == 404


async def test_cancelling_an_executing_run_lets_the_next_through(at: Bench, target: Receiver) -> None:
    slow = Slow(target)
    await at.create(id="a", **bounded(target.url, 1, 1))
    first = await started(at, target, 1)
    at.clock.advance(seconds=10)
    await at.dispatch()
    assert (await at.call("cancel", "runs", id="a", seq="1")).status == 202
    slow.go.set()
    await first
    await at.take_runs()
    assert [run["status"] for run in await at.runs("a")] == ["Succeeded", "Cancelled"]


async def test_a_failed_run_is_resubmitted_for_its_scheduled_time(at: Bench, target: Receiver) -> None:
    async def fail(hit: Hit) -> web.Response:
        return web.Response(status=400 if len(target.hits) == 1 else 200)

    target.answer = fail
    await at.create(id="a", **http_job(target.url, every=3600, start=NOON))
    await at.dispatch()
    at.clock.advance(minutes=5)
    response = await at.call("resubmit", "runs", id="a", seq="1")
    assert (response.status, response.body["scheduledTime"]) == (202, "2026-09-08T12:00:00Z")
    assert (await at.call("resubmit", "runs", id="a", seq="2")).status == 409
    await at.take_runs()
    assert [run["status"] for run in await at.runs("a")] == ["Succeeded", "Failed"]
    assert len({hit.key for hit in target.hits}) == 2


async def test_a_window_that_waits_for_room_has_its_bounds_also_when_it_is_cancelled(
    at: Bench, target: Receiver
) -> None:
    body = sliding(target.url, start="2026-09-08T10:00:00Z")
    body["trigger"]["runtimeConfiguration"] = {"concurrency": {"runs": 1, "maximumWaitingRuns": 5}}
    await at.create(id="a", **body)
    await at.dispatch()
    slow = Slow(target)
    at.clock.advance(hours=1)
    under_way = await started(at, target, len(target.hits) + 1)
    bounds = ("2026-09-08T10:00:00Z", "2026-09-08T11:00:00Z")
    answer = await at.call("resubmit", "runs", id="a", seq="1")
    assert answer.status == 202
    assert answer.body["reason"] == "waits until fewer runs are under way"
    shown = (await at.runs("a"))[0]
    assert (await at.call("cancel", "runs", id="a", seq=str(shown["seq"]))).status == 202
    for view in (answer.body, shown, (await at.runs("a"))[0]):
        assert (view["windowStartTime"], view["windowEndTime"]) == bounds
    slow.go.set()
    await under_way


async def test_a_missed_stretch_is_resubmitted_for_its_last_time(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=10, start=NOON))
    at.clock.advance(seconds=65)
    await at.dispatch()
    await at.call("resubmit", "runs", id="a", seq="1")
    await at.take_runs()
    assert target.hits[-1].scheduled == NOON + timedelta(seconds=50)


async def test_an_equal_schedule_is_left_alone_by_an_update(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600))
    await at.dispatch()
    at.clock.advance(minutes=20)
    assert (await at.call("put", id="a", body=http_job(target.url, every=3600, description="x"))).status == 200
    await at.dispatch()
    assert len(target.hits) == 1
    assert (await job(at))["nextOccurrence"] == "2026-09-08T13:00:00Z"


async def test_a_changed_schedule_begins_anew(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600))
    await at.dispatch()
    at.clock.advance(minutes=20)
    await at.call("put", id="a", body=http_job(target.url, every=7200))
    await at.dispatch()
    assert [hit.scheduled for hit in target.hits] == [NOON, NOON + timedelta(minutes=20)]


async def test_what_was_due_and_not_fired_when_the_schedule_changed_is_missed(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600, start=NOON))
    at.clock.advance(minutes=10)
    await at.call("put", id="a", body=http_job(target.url, every=7200, start=NOON))
    (record,) = await at.runs("a")
    assert (record["status"], record["from"], record["count"]) == ("Missed", "2026-09-08T12:00:00Z", 1)
    assert (await job(at))["missed"] == 1


async def test_a_changed_window_begins_where_the_dispatched_ones_end(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **sliding(target.url, every=3600, start="2026-09-08T10:00:00Z"))
    await at.dispatch()  # windows of 10, 11 and 12 o'clock
    await at.call("put", id="a", body=sliding(target.url, every=1800, start="2026-09-08T10:00:00Z"))
    assert (await job(at))["nextOccurrence"] == "2026-09-08T13:00:00Z"
    body = sliding(target.url, every=1800, start="2026-09-08T10:00:00Z")
    await at.call("put", id="a", body=body, query={"resetState": "true"})
    assert (await job(at))["nextOccurrence"] == "2026-09-08T10:00:00Z"


async def test_once_put_over_a_job_that_has_just_fired_runs(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=1))
    await at.dispatch()
    await at.call("put", id="a", body=http_job(target.url) | {"trigger": {"type": "Once"}})
    await at.dispatch()
    assert len({hit.key for hit in target.hits}) == 2


async def test_a_put_may_suspend_and_enable(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600, start=NOON + timedelta(hours=1)))
    body = http_job(target.url, every=3600, start=NOON + timedelta(hours=1))
    assert (await at.call("put", id="a", body=body | {"state": "Disabled"})).body["state"] == "Suspended"
    assert not await at.rows("timer")
    assert (await at.call("put", id="a", body=body | {"state": "Enabled"})).body["state"] == "Enabled"
    assert len(await at.rows("timer")) == 1


@pytest.mark.parametrize("said", [{}, {"state": None}, {"state": "Completed"}])
@pytest.mark.parametrize("every", [3600, 7200])
async def test_a_put_that_says_no_state_leaves_a_suspended_job_suspended(
    at: Bench, target: Receiver, said: dict[str, Any], every: int
) -> None:
    body = http_job(target.url, every=3600, start=NOON + timedelta(hours=1))
    assert (await at.call("put", id="a", body=body | said)).body["state"] == "Enabled"
    await operate(at, "suspend")
    changed = http_job(target.url, every=every, start=NOON + timedelta(hours=1), description="again")
    for _ in range(2):
        assert (await at.call("put", id="a", body=changed | said)).body["state"] == "Suspended"
    (answer,) = await sent(at, [{"op": "put", "id": "a", "job": changed | said}])
    assert answer["status"] == 200
    assert (await job(at))["state"] == "Suspended"
    assert not await at.rows("timer")


@pytest.mark.parametrize(("before", "after"), [(None, 1), (1, None), (1, 3), (3, 1)])
async def test_a_bound_changes_while_runs_are_under_way(
    at: Bench, target: Receiver, before: int | None, after: int | None
) -> None:
    slow = Slow(target)

    def body(runs: int | None) -> dict[str, Any]:
        return http_job(target.url, start=NOON) if runs is None else bounded(target.url, runs, 5) | {}

    first_body, second_body = body(before), body(after)
    for each in (first_body, second_body):
        each["trigger"]["recurrence"]["startTime"] = "2026-09-08T12:00:00Z"
    await at.create(id="a", **first_body)
    passes = [await started(at, target, 1)]
    for fired in (2, 3):
        at.clock.advance(seconds=10)
        passes.append(asyncio.create_task(at.dispatch()))
        async with asyncio.timeout(30):
            while (await job(at))["fired"] < fired:  # noqa: ASYNC110  polls storage
                await asyncio.sleep(0.02)
    assert (await at.call("put", id="a", body=second_body)).status == 200
    slow.go.set()
    await asyncio.gather(*passes)
    for _ in range(3):
        await at.take_runs()
        at.clock.advance(seconds=66)
    assert len({hit.key for hit in target.hits}) == 3
    gate = (await at.app.admin.get("a")).gate
    assert (gate.running, gate.waiting) == (0, ())


async def test_a_completed_job_is_removed_after_its_time(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, deleteAfter="PT1H") | {"trigger": {"type": "Once"}})
    await at.dispatch()
    assert ((await job(at))["state"], (await job(at))["nextOccurrence"]) == ("Completed", None)
    at.clock.advance(minutes=59)
    await at.dispatch()
    assert (await at.call("get", id="a")).status == 200
    at.clock.advance(minutes=1, seconds=1)
    await at.dispatch()
    assert (await at.call("get", id="a")).status == 404
    for kind in ("job", "timer", "past"):
        assert not await at.rows(kind)


async def test_a_job_is_not_removed_while_a_run_of_it_sleeps(at: Bench, target: Receiver) -> None:
    actions = {"Pause": wait(3600), "Call": call(target.url, {"Pause": ["Succeeded"]})}
    await at.create(id="a", **steps_job(actions, deleteAfter="PT5M"))
    await at.dispatch()
    for _ in range(15):
        at.clock.advance(minutes=5)
        await at.dispatch()
    assert len(target.hits) == 1
    assert (await at.call("get", id="a")).status == 404


async def test_a_revived_job_is_not_removed(at: Bench, target: Receiver) -> None:
    once = http_job(target.url, deleteAfter="PT1H") | {"trigger": {"type": "Once"}}
    await at.create(id="a", **once)
    await at.dispatch()
    await at.call("put", id="a", body=http_job(target.url, every=7200, deleteAfter="PT1H"))
    at.clock.advance(hours=3)
    await at.dispatch()
    assert (await job(at))["state"] == "Enabled"


async def test_a_point_computed_with_other_zone_data_is_computed_anew(at: Bench, target: Receiver) -> None:
    body = http_job(target.url, every=3600, start=NOON + timedelta(hours=1))
    await at.create(id="a", **body)
    (row,) = await at.rows("timer")
    partition = at.app.store.jobs.partition("a")
    # As an older version of the data would have put it: 20 minutes too early, and so in the job's row.
    early = NOON + timedelta(minutes=40)
    timer = {k: v for k, v in row.items() if k not in ("PartitionKey", "etag")}
    timer |= {"RowKey": f"timer:{early:%Y%m%dT%H%M%SZ}:a", "tzdata": "2001a"}
    timer["scheduled"] = f"{early:%Y-%m-%dT%H:%M:%S.%fZ}"
    job_row = {
        "RowKey": "job:a",
        "tzdata": "2001a",
        "nextScheduled": timer["scheduled"],
        "nextDue": timer["scheduled"],
    }
    await at.app.store.table.commit(
        partition,
        [
            Write(Verb.DELETE, {"RowKey": row["RowKey"]}),
            Write(Verb.INSERT, timer),
            Write(Verb.MERGE, job_row),
        ],
    )
    at.clock.advance(minutes=40)
    await at.dispatch()
    assert not target.hits
    assert (await job(at))["nextOccurrence"] == "2026-09-08T13:00:00Z"
    at.clock.advance(minutes=20)
    await at.dispatch()
    assert len(target.hits) == 1


Operation = Callable[[Bench, str], Awaitable[Any]]


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("operation", ["suspend", "resume", "run_now"])
async def test_an_operation_that_meets_dispatch(at: Bench, target: Receiver, operation: str, number: int) -> None:
    await at.create(id="a", **http_job(target.url, every=60))
    room = "runs" if operation == "run_now" else "jobs"
    inside = False
    at.requests.clear()

    async def hold(line: str) -> None:
        nonlocal inside
        if len(at.requests) == number and not inside:
            inside = True
            assert (await at.call(operation, room, id="a")).status in (200, 202)

    at.wire.hold = hold
    await at.dispatch("a")
    at.wire.hold = None
    await at.call("resume", id="a")
    await at.dispatch()
    await at.take_runs()
    keys = [hit.key for hit in target.hits]
    assert len(keys) == len(set(keys))
    counted = [run for run in await at.runs("a") if run["status"] in ("Succeeded", "Skipped")]
    assert len(counted) >= 1


@pytest.mark.parametrize("number", range(1, 7))
@pytest.mark.parametrize("operation", ["cancel", "resubmit"])
async def test_an_operation_on_a_run_that_meets_dispatch(
    at: Bench, target: Receiver, operation: str, number: int
) -> None:
    """A run wakes while it is cancelled, or while the one before it is repeated."""
    await at.create(id="a", **bounded(target.url, 2, 2, every=60))
    await at.dispatch()
    await at.call("put", id="a", body=steps_job({"Pause": wait(30), "Call": call(target.url)}))
    await at.dispatch()
    at.clock.advance(seconds=30)
    inside = False
    at.requests.clear()
    seq = "2" if operation == "cancel" else "1"

    async def hold(line: str) -> None:
        nonlocal inside
        if len(at.requests) == number and not inside:
            inside = True
            assert (await at.call(operation, "runs", id="a", seq=seq)).status in (202, 409)

    at.wire.hold = hold
    await at.dispatch("a")
    at.wire.hold = None
    for _ in range(2):
        at.clock.advance(seconds=66)
        await at.dispatch()
        await at.take_runs()
    runs = {run["seq"]: run["status"] for run in await at.runs("a")}
    assert runs[2] in ("Succeeded", "Cancelled")
    assert set(runs.values()) <= {"Succeeded", "Cancelled", "Skipped", "Missed"}


@pytest.mark.parametrize("number", range(1, 6))
async def test_a_removal_by_time_that_meets_an_update(at: Bench, target: Receiver, number: int) -> None:
    once = http_job(target.url, deleteAfter="PT1H") | {"trigger": {"type": "Once"}}
    await at.create(id="a", **once)
    await at.dispatch()
    at.clock.advance(hours=1, seconds=1)
    inside = False
    at.requests.clear()

    async def hold(line: str) -> None:
        nonlocal inside
        if len(at.requests) == number and not inside:
            inside = True
            body = http_job(target.url, every=7200, deleteAfter="PT1H")
            assert (await at.call("put", id="a", body=body)).status in (200, 201)

    at.wire.hold = hold
    await at.dispatch("a")
    at.wire.hold = None
    if inside:  # the update came in: what it made stands, whichever came first
        assert (await job(at))["state"] == "Enabled"
    else:
        assert (await at.call("get", id="a")).status == 404


@pytest.mark.parametrize("lost", range(1, 4))
@pytest.mark.parametrize("operation", ["suspend", "resume", "run_now", "cancel"])
async def test_an_operation_whose_answer_is_lost_is_done_once(
    at: Bench, target: Receiver, operation: str, lost: int
) -> None:
    await at.create(id="a", **steps_job({"Pause": wait(60)}) if operation == "cancel" else http_job(target.url))
    if operation == "cancel":
        await at.dispatch()
    if operation == "resume":
        await operate(at, "suspend")
    seen = 0

    def lose(line: str) -> bool:
        nonlocal seen
        seen += "$batch" in line
        return "$batch" in line and seen == lost

    at.wire.lose_answer = lose
    room = "jobs" if operation in ("suspend", "resume") else "runs"
    if operation == "cancel":
        assert (await at.call(operation, room, id="a", seq="1")).status == 202
    else:
        assert (await at.call(operation, room, id="a")).status in (200, 202)
    runs = await at.runs("a")
    assert len(runs) == (1 if operation in ("run_now", "cancel") else 0)


async def test_events_tell_of_what_went_wrong_and_of_completion(storage: str, target: Receiver) -> None:
    async def fail(hit: Hit) -> web.Response:
        return web.Response(status=400)

    target.answer = fail
    async with bench(storage, None, EVENTS_QUEUE="events-of-a-test") as at:
        body = http_job(target.url, every=10, start=NOON)
        body["trigger"]["recurrence"]["count"] = 1
        await at.create(id="a", **body)
        at.clock.advance(seconds=25)
        await at.dispatch()
        async with QueueClient.from_connection_string(
            storage,
            "events-of-a-test",
            message_encode_policy=TextBase64EncodePolicy(),
            message_decode_policy=TextBase64DecodePolicy(),
        ) as queue:
            events = [json.loads(message.content) async for message in queue.receive_messages()]
    assert sorted(event["type"] for event in events) == [
        "timerjobs.job.completed",
        "timerjobs.run.failed",
        "timerjobs.run.missed",
    ]
    assert all(event["specversion"] == "1.0" for event in events)


async def test_secured_outputs_stay_out_of_history(at: Bench, target: Receiver) -> None:
    async def tell(hit: Hit) -> web.Response:
        return web.Response(text="the-secret-answer", headers={"x-secret": "the-secret-answer"})

    target.answer = tell
    body = http_job(target.url) | {"trigger": {"type": "Once"}}
    body["action"]["runtimeConfiguration"] = {"secureData": {"properties": ["inputs", "outputs"]}}
    await at.create(id="a", **body)
    await at.dispatch()
    runs = await at.runs("a")
    assert runs[0]["actions"]["Action"]["response"] == {"statusCode": 200}
    assert "the-secret-answer" not in json.dumps(runs)


async def test_a_lowered_limit_keeps_the_newest_records(at: Bench, target: Receiver) -> None:
    body = http_job(target.url, every=1)
    await at.create(id="a", **body)
    for _ in range(27):
        await at.dispatch()
        at.clock.advance(seconds=1)
    await at.call("put", id="a", body=body | {"historyLimit": 5})
    assert [run["seq"] for run in await at.runs("a")] == [27, 26, 25, 24, 23]
    assert len(await at.rows("past")) == 5


async def test_delete_and_create_with_old_runs_still_out(at: Bench, target: Receiver) -> None:
    slow = Slow(target)
    await at.create(id="a", **bounded(target.url, 2, 0))
    first = await started(at, target, 1)
    assert (await at.call("delete", id="a")).status == 204
    await at.create(id="a", **bounded(target.url, 2, 0))
    slow.go.set()
    await first
    await at.dispatch()
    gate = (await at.app.admin.get("a")).gate
    assert gate.running == 0
    assert len({hit.key for hit in target.hits}) == 2
