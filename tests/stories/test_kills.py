"""A host killed again and again loses nothing (promises P1 and P4)."""

import asyncio
import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from tests.audit import audit
from tests.harness import Hit, Receiver, bench, http_job
from tests.stories.host import HostProcess

JOBS = 50
KILLS = 20
SEED = 20260908


async def test_killed_twenty_times_every_due_occurrence_is_fired_or_recorded_as_missed(
    storage: str, target: Receiver
) -> None:
    dice = random.Random(SEED)

    async def answer(hit: Hit) -> web.Response:
        await asyncio.sleep(dice.choice([0, 0, 0.3, 1.5]))
        return web.Response()

    target.answer = answer
    host = HostProcess(storage)
    await host.start()
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
    end = start + timedelta(seconds=55)
    every = {f"job-{n}": dice.randint(1, 5) for n in range(JOBS)}
    for job_id, seconds in every.items():
        body = http_job(target.url, every=seconds, start=start, historyLimit=500)
        body["trigger"]["recurrence"]["endTime"] = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        status, job = await host.call("PUT", f"/jobs/{job_id}", body)
        assert status == 201, job
    for _ in range(KILLS):
        await asyncio.sleep(dice.uniform(0.3, 2.5))
        await host.kill()
        await host.start()
    histories = await settled(host, list(every))
    assert await host.stop() == 0

    async with bench(storage, None, **host.env) as at:
        assert await audit(at.app.store) == []
        assert not await at.rows("run")
    check(every, start, end, target.hits, histories)
    keys = [hit.key for hit in target.hits]
    print(f"{KILLS} kills: {len(set(keys))} occurrences fired, {len(keys) - len(set(keys))} actions repeated")
    assert len(keys) > len(set(keys)), "no kill met an action in flight: the story tells nothing"


async def settled(host: HostProcess, jobs: list[str]) -> dict[str, list[Any]]:
    """The runs of each job, once all are Completed and nothing is executing."""
    histories: dict[str, list[Any]] = {}
    async with asyncio.timeout(120):
        for job_id in jobs:
            while True:
                _, job = await host.call("GET", f"/jobs/{job_id}")
                _, runs = await host.call("GET", f"/jobs/{job_id}/runs")
                if job["state"] == "Completed" and all(run["status"] != "Running" for run in runs["value"]):
                    histories[job_id] = runs["value"]
                    break
                await asyncio.sleep(0.5)
    return histories


def check(
    every: dict[str, int], start: datetime, end: datetime, hits: list[Hit], histories: dict[str, list[Any]]
) -> None:
    """Every due occurrence was fired at least once or is in a Missed stretch; a repeated action has its key."""
    fired: dict[str, dict[datetime, set[str]]] = defaultdict(lambda: defaultdict(set))
    for hit in hits:
        assert hit.at >= hit.scheduled
        fired[hit.job][hit.scheduled].add(hit.key)
    attempts = [(hit.key, hit.headers["x-timerjobs-fencing-token"]) for hit in hits]
    assert len(attempts) == len(set(attempts)), "one attempt was made twice"
    for job_id, seconds in every.items():
        due = set()
        point = start
        while point <= end:
            due.add(point)
            point += timedelta(seconds=seconds)
        missed: set[datetime] = set()
        for record in histories[job_id]:
            if record["status"] == "Missed":
                assert record["reason"]
                at, last = datetime.fromisoformat(record["from"]), datetime.fromisoformat(record["to"])
                stretch = {at + timedelta(seconds=seconds * n) for n in range(record["count"])}
                assert max(stretch) == last
                assert not stretch & missed, "an occurrence is recorded as missed twice"
                missed |= stretch
            else:
                assert record["status"] == "Succeeded", record
        assert not missed & fired[job_id].keys(), "an occurrence is both fired and missed"
        assert missed | fired[job_id].keys() == due, f"{job_id}: {due - missed - fired[job_id].keys()}"
        assert all(len(keys) == 1 for keys in fired[job_id].values())
