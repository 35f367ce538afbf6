"""Jobs whose targets hang, and their neighbours: jobs whose target answers at once."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from shared.jobs.model import Ended, Stretch
from shared.storage.history import read_past
from tests.harness import Bench, Hit, Receiver, http_job, receiving

LIMIT = {"timeout": "PT5M"}


@dataclass(frozen=True)
class Scene:
    """So many jobs whose target hangs, each every so many seconds, with so many actions that run in parallel.

    Their calls are spread over so many ports: over so many targets, as the app sees it.
    """

    hanging: int
    every: int = 1
    actions: int = 1
    ports: int = 1
    env: Mapping[str, str] = field(default_factory=dict)

    def jobs(self, urls: list[str]) -> dict[str, Any]:
        """The jobs whose target hangs, by id."""
        return {f"hanging-{n}": hanging_job(urls, n, self.every, self.actions) for n in range(self.hanging)}


SCENES = {
    "no hanging": Scene(0),
    "1 hanging": Scene(1),
    "10 hanging": Scene(10, ports=10),
    "100 hanging": Scene(100, every=5, ports=100),
    "10 hanging, 40 slots": Scene(10, ports=10, env={"MAX_EXECUTING": "40"}),
    "3 x 100 actions": Scene(3, actions=100, ports=20),
    "100 at one host": Scene(100, every=5),
}


def hanging_job(urls: list[str], number: int, every: int, actions: int = 1) -> dict[str, Any]:
    """A job whose actions, all begun at once, may take 5 minutes each. Begins with the URL of its number."""
    job = http_job("", every)
    action = job.pop("action") | {"limit": LIMIT}
    uris = [urls[(number + n) % len(urls)] for n in range(actions)]
    named = {f"A{n}": action | {"inputs": action["inputs"] | {"uri": uri}} for n, uri in enumerate(uris)}
    return job | {"actions": named}


def once(url: str) -> dict[str, Any]:
    """A job that runs once, now, and may take 5 minutes."""
    job = http_job(url)
    return job | {"trigger": {"type": "Once"}, "action": job["action"] | {"limit": LIMIT}}


def neighbours(url: str, jobs: int, every: int, count: int) -> dict[str, Any]:
    """So many jobs, by id, each of which runs so many times; they take turns, second by second, for 5 seconds."""
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
    made = {}
    for n in range(jobs):
        job = http_job(url, every, start + timedelta(seconds=n % 5))
        job["trigger"]["recurrence"]["count"] = count
        made[f"neighbour-{n}"] = job
    return made


@asynccontextmanager
async def hanging(ports: int) -> AsyncIterator[tuple[Receiver, asyncio.Event]]:
    """A receiver on so many ports that answers nothing until the event is set."""
    released = asyncio.Event()

    async def answer(hit: Hit) -> web.Response:
        await released.wait()
        return web.Response()

    async with receiving(ports) as receiver:
        receiver.answer = answer
        try:
            yield receiver, released
        finally:
            released.set()  # for handlers whose callers are gone
            await asyncio.sleep(0)


async def recorded(at: Bench, jobs: Iterable[str], count: int = 1) -> dict[str, list[Ended | Stretch]]:
    """The history of each of these jobs, once it has so many records."""
    async with asyncio.timeout(300):
        while True:
            records: dict[str, list[Ended | Stretch]] = defaultdict(list)
            for row in await at.rows("past"):
                records[row["RowKey"].split(":")[1]].append(read_past(row))
            if all(len(records[job_id]) >= count for job_id in jobs):
                return {job_id: records[job_id] for job_id in jobs}
            await asyncio.sleep(0.5)
