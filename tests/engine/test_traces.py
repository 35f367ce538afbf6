"""The trace under which targets are called: one for each run."""

from datetime import timedelta

from aiohttp import web

from tests.harness import NOON, Bench, Hit, Receiver, http_job


def trace(hit: Hit) -> str:
    version, trace_id, parent, flags = hit.headers["traceparent"].split("-")
    assert (version, len(trace_id), len(parent), flags) == ("00", 32, 16, "01")
    assert int(trace_id, 16)
    assert int(parent, 16)
    return trace_id


async def test_every_attempt_at_a_run_is_of_one_trace_and_no_other_run_is(at: Bench, target: Receiver) -> None:
    retried = http_job(target.url, every=36000, start=NOON)
    retried["action"]["inputs"]["retryPolicy"] = {"type": "fixed", "count": 2, "interval": "PT5S"}
    retried["actions"] = {"One": retried.pop("action")}
    retried["actions"]["Two"] = {**retried["actions"]["One"], "runAfter": {"One": ["Failed"]}}
    await at.create(id="a", **retried)
    await at.create(id="b", **http_job(target.url, every=60, start=NOON))

    async def refused(hit: Hit) -> web.Response:
        return web.Response(status=500)

    target.answer = refused
    for _ in range(8):
        await at.dispatch()
        at.clock.advance(seconds=30)
    of_a = [hit for hit in target.hits if hit.job == "a"]
    of_b = [hit for hit in target.hits if hit.job == "b"]
    assert (len(of_a), len({trace(hit) for hit in of_a})) == (6, 1)
    assert (len(of_b), len({trace(hit) for hit in of_b})) == (4, 4)
    assert len({trace(hit) for hit in target.hits}) == 5
    assert len({hit.headers["traceparent"] for hit in target.hits}) == len(target.hits)


async def test_a_run_taken_over_keeps_its_trace_and_a_job_made_anew_has_others(
    at: Bench, target: Receiver
) -> None:
    await at.create(id="a", **http_job(target.url, every=36000, start=NOON))
    await at.fire_only("a")
    (run,) = await at.app.store.runs.of_job("a")
    at.clock.advance(minutes=2)
    await at.take_runs()
    assert trace(target.hits[0]) == run.trace_id
    await at.call("delete", id="a")
    await at.create(id="a", **http_job(target.url, every=36000, start=NOON + timedelta(minutes=2)))
    await at.dispatch()
    assert trace(target.hits[1]) != run.trace_id
