"""Runs of more than one step: order, waits, retries, polls, across processes."""

import asyncio
import json
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web

from tests.harness import Bench, Hit, Receiver, bench, http_job, until


def call(uri: str, after: dict[str, list[str]] | None = None, **inputs: Any) -> dict[str, Any]:
    action: dict[str, Any] = {
        "type": "Http",
        "inputs": {"method": "POST", "uri": uri, "retryPolicy": {"type": "none"}},
    }
    action["inputs"] |= inputs
    return action | ({"runAfter": after} if after else {})


def wait(seconds: int, after: dict[str, list[str]] | None = None) -> dict[str, Any]:
    action: dict[str, Any] = {"type": "Wait", "inputs": {"interval": {"count": seconds, "unit": "Second"}}}
    return action | ({"runAfter": after} if after else {})


def steps_job(actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"trigger": {"type": "Once"}, "actions": actions} | more


async def go_on(at: Bench, seconds: float) -> None:
    """Moves the clock on and dispatches what is due."""
    at.clock.advance(seconds=seconds)
    await at.dispatch()


async def test_actions_run_in_the_order_they_ask_for(at: Bench, target: Receiver) -> None:
    await at.create(
        id="a",
        **steps_job(
            {
                "Third": call(target.url + "/3", {"Second": ["Succeeded"]}),
                "First": call(target.url + "/1"),
                "Second": call(target.url + "/2", {"First": ["Succeeded"]}),
            }
        ),
    )
    await at.dispatch()
    assert [hit.path for hit in target.hits] == ["/hook/1", "/hook/2", "/hook/3"]
    assert len({hit.key for hit in target.hits}) == 3
    (run,) = await at.runs("a")
    assert run["status"] == "Succeeded"
    assert list(run["actions"]) == ["First", "Second", "Third"]


async def test_actions_that_do_not_wait_for_each_other_run_side_by_side(at: Bench, target: Receiver) -> None:
    import asyncio

    both = asyncio.Barrier(2)

    async def meet(hit: Hit) -> web.Response:
        if hit.path != "/hook/last":
            await asyncio.wait_for(both.wait(), 20)
        return web.Response()

    target.answer = meet
    after = {"Left": ["Succeeded"], "Right": ["Succeeded"]}
    actions = {"Left": call(target.url), "Right": call(target.url), "Last": call(target.url + "/last", after)}
    await at.create(id="a", **steps_job(actions))
    await at.dispatch()
    (run,) = await at.runs("a")
    assert run["status"] == "Succeeded"


async def refuse(hit: Hit) -> web.Response:
    return web.Response(status=400 if "fail" in hit.path else 200)


async def test_a_failure_that_is_handled_is_a_success(at: Bench, target: Receiver) -> None:
    target.answer = refuse
    actions = {
        "Try": call(target.url + "/fail"),
        "Repair": call(target.url + "/repair", {"Try": ["Failed", "TimedOut"]}),
        "Rejoice": call(target.url + "/rejoice", {"Try": ["Succeeded"]}),
    }
    await at.create(id="a", **steps_job(actions))
    await at.dispatch()
    assert [hit.path for hit in target.hits] == ["/hook/fail", "/hook/repair"]
    (run,) = await at.runs("a")
    assert run["status"] == "Succeeded"
    assert {name: action["status"] for name, action in run["actions"].items()} == {
        "Try": "Failed",
        "Repair": "Succeeded",
        "Rejoice": "Skipped",
    }


async def test_a_leaf_that_fails_makes_the_run_failed(at: Bench, target: Receiver) -> None:
    target.answer = refuse
    actions = {"One": call(target.url), "Two": call(target.url + "/fail", {"One": ["Succeeded"]})}
    await at.create(id="a", **steps_job(actions))
    await at.dispatch()
    (run,) = await at.runs("a")
    assert run["status"] == "Failed"
    assert run["reason"].startswith("Two: ")


async def test_what_runs_after_a_skipped_action_can_ask_for_that(at: Bench, target: Receiver) -> None:
    actions = {
        "One": call(target.url + "/1"),
        "Two": call(target.url + "/2", {"One": ["Failed"]}),
        "Three": call(target.url + "/3", {"Two": ["Skipped"]}),
        "Four": call(target.url + "/4", {"Two": ["Succeeded"]}),
    }
    await at.create(id="a", **steps_job(actions))
    await at.dispatch()
    assert [hit.path for hit in target.hits] == ["/hook/1", "/hook/3"]


async def test_a_wait_holds_no_process_and_the_run_goes_on_where_it_was(storage: str, target: Receiver) -> None:
    actions = {
        "Before": call(target.url + "/before"),
        "Pause": wait(120, {"Before": ["Succeeded"]}),
        "After": call(target.url + "/after", {"Pause": ["Succeeded"]}),
    }
    async with bench(storage) as at:
        await at.create(id="a", **steps_job(actions))
        await at.dispatch()
        assert [hit.path for hit in target.hits] == ["/hook/before"]
        assert not await at.rows("run")
        (run,) = await at.runs("a")
        assert run["status"] == "Waiting"
        assert run["actions"]["Pause"]["status"] == "Waiting"
        await go_on(at, 119)
        assert len(target.hits) == 1
        # Another process goes on: all it needs is in the row.
        settings, clock = at.app.settings, at.clock
        async with bench(storage, clock, TABLE_NAME=settings.table_name, QUEUE_NAME=settings.queue_name) as other:
            await go_on(other, 1)
        assert [hit.path for hit in target.hits] == ["/hook/before", "/hook/after"]
        (run,) = await at.runs("a")
        assert run["status"] == "Succeeded"
        assert run["actions"]["Pause"]["startTime"] == "2026-09-08T12:00:00Z"
        assert run["actions"]["Pause"]["endTime"] == "2026-09-08T12:02:00Z"


async def test_a_wait_of_nothing_passes_through(at: Bench, target: Receiver) -> None:
    past = {"type": "Wait", "inputs": {"until": {"timestamp": "2020-01-01T00:00:00Z"}}}
    await at.create(
        id="a", **steps_job({"Zero": wait(0), "Past": past, "Last": call(target.url, {"Zero": ["Succeeded"]})})
    )
    await at.dispatch()
    assert len(target.hits) == 1
    (run,) = await at.runs("a")
    assert run["status"] == "Succeeded"


async def test_a_retry_comes_after_the_time_the_target_asks_for(at: Bench, target: Receiver) -> None:
    async def busy_once(hit: Hit) -> web.Response:
        return web.Response(status=503 if len(target.hits) == 1 else 200, headers={"Retry-After": "90"})

    target.answer = busy_once
    job = http_job(target.url) | {"trigger": {"type": "Once"}}
    job["action"]["inputs"]["retryPolicy"] = {"type": "fixed", "count": 2, "interval": "PT10S"}
    await at.create(id="a", **job)
    await at.dispatch()
    await go_on(at, 85)
    assert len(target.hits) == 1
    await go_on(at, 10)
    first, second = target.hits
    assert first.key == second.key
    assert [hit.headers["x-timerjobs-attempt"] for hit in target.hits] == ["1", "2"]
    (run,) = await at.runs("a")
    assert (run["status"], run["actions"]["Action"]["attempts"]) == ("Succeeded", 2)


async def test_retries_end_with_the_last_answer(at: Bench, target: Receiver) -> None:
    async def broken(hit: Hit) -> web.Response:
        return web.Response(status=500, text=f"no {len(target.hits)}")

    target.answer = broken
    job = http_job(target.url) | {"trigger": {"type": "Once"}}
    job["action"]["inputs"]["retryPolicy"] = {"type": "fixed", "count": 2, "interval": "PT10S"}
    await at.create(id="a", **job)
    await at.dispatch()
    for _ in range(4):
        await go_on(at, 11)
    assert len(target.hits) == 3
    (run,) = await at.runs("a")
    assert run["status"] == "Failed"
    assert run["actions"]["Action"]["response"]["body"] == "no 3"


async def test_a_202_with_a_location_is_polled_to_its_end(at: Bench, target: Receiver) -> None:
    async def later(hit: Hit) -> web.Response:
        if hit.method == "POST":
            return web.Response(status=202, headers={"Location": "/hook/state", "Retry-After": "5"})
        done = len(target.hits) > 3
        return web.json_response({"done": done}, status=200 if done else 202)

    target.answer = later
    await at.create(id="a", **http_job(target.url) | {"trigger": {"type": "Once"}})
    await at.dispatch()
    for seconds in (4, 2, 18, 3, 22):
        (run,) = await at.runs("a")
        assert run["status"] == "Waiting"
        await go_on(at, seconds)
    assert [hit.method for hit in target.hits] == ["POST", "GET", "GET", "GET"]
    (run,) = await at.runs("a")
    assert run["status"] == "Succeeded"
    assert run["actions"]["Action"]["response"]["body"] == {"done": True}


async def test_a_handed_off_run_of_many_steps_is_gone_on_with_after_a_crash(at: Bench, target: Receiver) -> None:
    names = [f"Step{n}" for n in range(4)]
    actions = {
        name: call(f"{target.url}/{name}", {names[n - 1]: ["Succeeded"]} if n else None)
        for n, name in enumerate(names)
    }
    await at.create(id="a", **steps_job(actions))
    seen = 0

    async def die(line: str) -> None:
        nonlocal seen
        seen += "$batch" in line
        if seen >= 4:  # fire, two checkpoints, and then it dies
            raise ConnectionError("dead")

    at.wire.hold = die
    with suppress(ConnectionError):
        await at.dispatch()
    at.wire.hold = None
    done = [hit.path for hit in target.hits]
    assert done[:3] == [f"/hook/{name}" for name in names[:3]]
    at.clock.advance(seconds=66)
    await at.take_runs()
    paths = [hit.path for hit in target.hits]
    assert paths[:2] == done[:2]
    assert paths.count("/hook/Step0") == paths.count("/hook/Step1") == 1  # what was stored is not repeated
    again = [hit.key for hit in target.hits if hit.path == "/hook/Step2"]
    assert len(again) == 2
    assert len(set(again)) == 1
    (run,) = await at.runs("a")
    assert run["status"] == "Succeeded"


async def test_each_further_step_costs_one_request_more(at: Bench, target: Receiver) -> None:
    counts = []
    for length in (1, 2, 3, 4):
        actions = {f"S{n}": call(target.url, {f"S{n - 1}": ["Succeeded"]} if n else None) for n in range(length)}
        await at.create(id=f"a{length}", **steps_job(actions))
        at.requests.clear()
        await at.dispatch(f"a{length}")
        counts.append(len(at.requests))
    assert [later - earlier for earlier, later in pairwise(counts)] == [1, 1, 1]


async def test_a_wait_costs_four_requests_beside_receiving_and_deleting_its_ticket(
    at: Bench, target: Receiver
) -> None:
    plain = steps_job({"One": call(target.url), "Two": call(target.url, {"One": ["Succeeded"]})})
    waiting = steps_job(
        {
            "One": call(target.url),
            "Pause": wait(5, {"One": ["Succeeded"]}),
            "Two": call(target.url, {"Pause": ["Succeeded"]}),
        }
    )
    counts = []
    for name, job in (("plain", plain), ("waits", waiting)):
        await at.create(id=name, **job)
        at.requests.clear()
        await at.dispatch(name)
        at.clock.advance(seconds=5)
        before = len(at.requests)
        await at.dispatch(name)
        counts.append(len(at.requests) if name == "waits" else before)
    # One more step (1), and idle, ticket, read, wake.
    assert counts[1] - counts[0] <= 1 + 4


async def test_expressions_reach_the_target_evaluated(at: Bench, target: Receiver) -> None:
    body = {
        "day": "@trigger().scheduledTime",
        "text": "n is @{parameters('n')}",
        "n": "@parameters('n')",
        "run": "@workflow().run.name",
        "plain": "@@home",
    }
    job = http_job(target.url, parameters={"n": 6}, id="a") | {"trigger": {"type": "Once"}}
    job["action"]["inputs"] |= {"body": body, "headers": {"x-n": "@{parameters('n')}"}}
    await at.create(**job)
    await at.dispatch()
    (hit,) = target.hits
    got = json.loads(hit.body)
    assert got["day"] == "2026-09-08T12:00:00Z"
    assert (got["text"], got["n"], got["plain"]) == ("n is 6", 6, "@home")
    assert got["run"].startswith("a")
    assert hit.headers["x-n"] == "6"


async def test_the_trigger_is_a_cloud_event(at: Bench, target: Receiver) -> None:
    job = http_job(target.url, id="a") | {"trigger": {"type": "Once"}}
    job["action"]["inputs"]["body"] = "@trigger()"
    await at.create(**job)
    await at.dispatch()
    event = json.loads(target.hits[0].body)
    assert event["specversion"] == "1.0"
    assert all(event[name] for name in ("id", "source", "type"))
    assert event["data"]["scheduledTime"] == "2026-09-08T12:00:00Z"


async def test_an_idle_run_of_a_deleted_job_never_wakes(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **steps_job({"Pause": wait(60), "Call": call(target.url, {"Pause": ["Succeeded"]})}))
    await at.dispatch()
    assert await at.rows("idle")
    assert (await at.call("delete", id="a")).status == 204
    for kind in ("job", "timer", "idle", "run", "past"):
        assert not await at.rows(kind)
    await go_on(at, 61)
    assert not target.hits


@pytest.mark.parametrize("lost", range(1, 8))
async def test_a_run_that_waits_survives_any_lost_answer(at: Bench, target: Receiver, lost: int) -> None:
    actions = {"Pause": wait(30), "Call": call(target.url, {"Pause": ["Succeeded"]})}
    await at.create(id="a", **steps_job(actions))
    seen = 0

    def lose(line: str) -> bool:
        nonlocal seen
        seen += "$batch" in line
        return "$batch" in line and seen == lost

    at.wire.lose_answer = lose
    await at.dispatch()
    await go_on(at, 30)
    await go_on(at, 70)
    await at.take_runs()
    (run,) = await at.runs("a")
    assert run["status"] == "Succeeded"
    assert len(target.hits) == 1


async def test_a_retry_costs_four_requests_beside_receiving_and_deleting_its_ticket(
    at: Bench, target: Receiver
) -> None:
    async def fail_once(hit: Hit) -> web.Response:
        return web.Response(status=500 if hit.headers["x-timerjobs-attempt"] == "1" else 200)

    counts = []
    for name, answer in (("plain", None), ("retried", fail_once)):
        target.answer = answer
        job = http_job(target.url) | {"trigger": {"type": "Once"}}
        job["action"]["inputs"]["retryPolicy"] = {"type": "fixed", "count": 1, "interval": "PT10S"}
        await at.create(id=name, **job)
        at.requests.clear()
        await at.dispatch(name)
        if answer:
            at.clock.advance(seconds=12)
            await at.dispatch(name)
        counts.append(len(at.requests))
    assert counts[1] - counts[0] == 4  # idle, ticket, read, wake


@pytest.mark.parametrize("uri", ["http://127.0.0.1:9/hook", "here"])
async def test_history_keeps_nothing_of_the_request(at: Bench, target: Receiver, uri: str) -> None:
    job = http_job((target.url if uri == "here" else uri) + "?sig=query-secret") | {"trigger": {"type": "Once"}}
    job["action"]["inputs"] |= {"headers": {"x-key": "header-secret"}, "body": "body-secret"}
    await at.create(id="a", **job)
    await at.dispatch()
    runs = await at.runs("a")
    assert runs[0]["status"] == ("Succeeded" if uri == "here" else "Failed")
    assert "secret" not in json.dumps(runs)
    assert "secret" not in json.dumps((await at.call("get", id="a")).body["lastRun"])


async def test_a_further_attempt_that_takes_long_stores_nothing_meanwhile(at: Bench, target: Receiver) -> None:
    go = asyncio.Event()

    async def answer(hit: Hit) -> web.Response:
        if hit.path == "/hook" and len(target.hits) > 1:
            await go.wait()
        return web.Response(status=500 if len(target.hits) == 1 else 200)

    target.answer = answer
    policy = {"type": "fixed", "count": 1, "interval": "PT10S"}
    await at.create(id="a", trigger={"type": "Once"}, actions={"Action": call(target.url, retryPolicy=policy)})
    await at.dispatch()
    at.clock.advance(seconds=12)
    dispatching = asyncio.create_task(at.dispatch("a"))
    await until(lambda: len(target.hits) == 2)
    at.requests.clear()
    for _ in range(5):  # as often as it would look whether a waiting step is due
        await asyncio.sleep(0.06)
    assert at.requests == []
    go.set()
    await dispatching
