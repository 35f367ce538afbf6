"""A job from its creation to its calls, by hand."""

from tests.harness import NOON, Bench, Receiver, http_job


async def test_a_job_fires_now_and_at_each_interval(at: Bench, target: Receiver) -> None:
    job = await at.create(id="a", **http_job(target.url))
    assert job["nextOccurrence"] == "2026-09-08T12:00:00Z"
    at.requests.clear()
    await at.dispatch("a")
    print("\n".join(at.requests))
    assert [hit.scheduled for hit in target.hits] == [NOON]
    print(await at.runs("a"))
    print((await at.call("get", id="a")).body)
    at.clock.advance(seconds=10)
    await at.dispatch("a")
    assert len(target.hits) == 2
