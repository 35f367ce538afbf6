"""A host killed again and again loses nothing (promises P1 and P4)."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from tests.audit import audit
from tests.harness import Hit, Receiver, bench, http_job
from tests.stories.host import HostProcess

UNDER_WAY = ("Running", "Waiting")  # statuses of runs that have not ended
SEED = 20260908
CREATORS = 8


@dataclass(frozen=True)
class Ordeal:
    """So many jobs, due every so many seconds for so many seconds, in so many processes, one of which is killed
    and started again after a pause of so many seconds."""

    jobs: int
    every: tuple[int, int]
    seconds: int
    processes: int
    pause: tuple[float, float]


SHORT = Ordeal(jobs=40, every=(1, 5), seconds=14, processes=2, pause=(0.3, 2))
LONG = Ordeal(jobs=300, every=(5, 5), seconds=120, processes=3, pause=(2, 5))


@pytest.mark.parametrize("ordeal", [SHORT, pytest.param(LONG, marks=pytest.mark.soak)], ids=["short", "long"])
async def test_killed_again_and_again_every_due_occurrence_is_fired_or_recorded_as_missed(
    storage: str, target: Receiver, ordeal: Ordeal, tell: Callable[[str, int], None]
) -> None:
    dice = random.Random(SEED)

    async def answer(hit: Hit) -> web.Response:
        await asyncio.sleep(dice.choice([0, 0, 0.3, 1.5]))
        return web.Response()

    target.answer = answer
    first = HostProcess(storage)
    hosts = [first, *(HostProcess(storage, **first.env) for _ in range(ordeal.processes - 1))]
    try:
        await asyncio.gather(*(host.start() for host in hosts))
        every = {f"job-{n}": dice.randint(*ordeal.every) for n in range(ordeal.jobs)}
        start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3 + ordeal.jobs // 20)
        end = start + timedelta(seconds=ordeal.seconds)
        parts = [dict(list(every.items())[n::CREATORS]) for n in range(CREATORS)]
        made = await asyncio.gather(*(create(first, target.url, part, start, end) for part in parts))
        begins = {job_id: begin for part in made for job_id, begin in part.items()}
        kills = 0
        while datetime.now(UTC) < end:
            await asyncio.sleep(dice.uniform(*ordeal.pause))
            victim = dice.choice(hosts)
            await victim.kill()
            await victim.start()
            kills += 1
        histories = await settled(first, list(every))
        assert [await host.stop() for host in hosts] == [0] * len(hosts)
    finally:
        await asyncio.gather(*(host.kill() for host in hosts))

    async with bench(storage, None, **first.env) as at:
        assert await audit(at.app.store) == []
        assert not await at.rows("run")
    check(every, begins, end, target.hits, histories)
    keys = [hit.key for hit in target.hits]
    tell("processes killed at work", kills)
    tell("  occurrences they fired", len(set(keys)))
    tell("  actions repeated, with their keys", len(keys) - len(set(keys)))
    if ordeal is LONG:
        assert len(keys) > len(set(keys)), "no kill met an action in flight: the story tells nothing"


async def create(
    host: HostProcess, url: str, every: dict[str, int], start: datetime, end: datetime
) -> dict[str, datetime]:
    """Creates these jobs; gives the first occurrence of each, which is later than `start` if that has passed."""
    begins = {}
    for job_id, seconds in every.items():
        body = http_job(url, every=seconds, start=start, historyLimit=500)
        body["trigger"]["recurrence"]["endTime"] = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        status, job = await host.call("PUT", f"/jobs/{job_id}", body)
        assert status == 201, job
        begins[job_id] = datetime.fromisoformat(job["nextOccurrence"])
    return begins


async def settled(host: HostProcess, jobs: list[str]) -> dict[str, list[Any]]:
    """The runs of each job, once all are Completed and nothing is executing."""
    histories: dict[str, list[Any]] = {}
    async with asyncio.timeout(300):
        for job_id in jobs:
            while True:
                _, job = await host.call("GET", f"/jobs/{job_id}")
                _, runs = await host.call("GET", f"/jobs/{job_id}/runs")
                if job["state"] == "Completed" and not any(run["status"] in UNDER_WAY for run in runs["value"]):
                    histories[job_id] = runs["value"]
                    break
                await asyncio.sleep(0.5)
    return histories


def check(
    every: dict[str, int],
    begins: dict[str, datetime],
    end: datetime,
    hits: list[Hit],
    histories: dict[str, list[Any]],
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
        point = begins[job_id]
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
