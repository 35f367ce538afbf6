"""How fast jobs are created over HTTP, beside the bare transactions of the same rows.

    .venv/bin/python -m tests.bench.creation_bench [--quick]

One after the other, 16 at once, and by POST /bulk/jobs, with the local host as a process of its own; beside each,
what the storage client does alone in this process: a transaction for each job, or one for 50 jobs. The sides
take turns.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp

from devhost.azurite import Azurite
from shared.jobs.model import Job
from shared.storage.jobs import Jobs
from tests.bench.support import QUICK
from tests.harness import Bench, RealClock, bench, http_job
from tests.herd import new_jobs, write_jobs
from tests.stories.host import HostProcess

ONE_BY_ONE, AT_ONCE, IN_BULK = (30, 60, 200) if QUICK else (200, 800, 5_000)
SIDE_BY_SIDE = 16
ROUNDS = 2
FAR = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)  # beyond the horizon: no tickets

Make = Callable[[list[dict[str, Any]]], Awaitable[None]]


async def main() -> None:
    with Azurite.start(in_memory=True) as azurite:
        host = HostProcess(azurite.connection_string, PARTITIONS="16", DETECTION_PERIOD="PT1M")
        await host.start()
        async with (
            bench(azurite.connection_string, RealClock(), PARTITIONS="16") as at,
            aiohttp.ClientSession() as session,
        ):
            over_http, bare = Posting(session, host.url), Bare(at)
            print("Creation over HTTP, beside the bare transactions of the same rows:")
            await compare("one after the other", ONE_BY_ONE, over_http.single, bare.single)
            await compare(f"{SIDE_BY_SIDE} at once", AT_ONCE, over_http.gathered, bare.gathered)
            if await over_http.has_bulk():
                await compare("POST /bulk/jobs", IN_BULK, over_http.bulk, bare.packed)
            else:
                print("  POST /bulk/jobs         is not there")
        await host.stop()
    print(
        "What limits it: one transaction for each job, and in it the storage client, which takes most of the\n"
        "  processor's time; in bulk a transaction holds 50 jobs."
    )


async def compare(name: str, count: int, ours: Make, bare: Make) -> None:
    """Both sides, taking turns; the sum of all rounds counts."""
    spent = [0.0, 0.0]
    for turn in range(ROUNDS):
        for side, make in enumerate((ours, bare)):
            bodies = [
                http_job("http://127.0.0.1:9/", 86400, FAR, id=f"{name.split()[-1][1:5]}-{side}-{turn}-{n}")
                for n in range(count)
            ]
            begun = time.perf_counter()
            await make(bodies)
            spent[side] += time.perf_counter() - begun
    ours_rate, bare_rate = (count * ROUNDS / seconds for seconds in spent)
    print(
        f"  {name:<22}{ours_rate:>8.0f} /s, bare{bare_rate:>8.0f} /s, ratio {ours_rate / bare_rate:.2f}",
        flush=True,
    )


class Posting:
    """Creation through the API."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def single(self, bodies: list[dict[str, Any]]) -> None:
        for body in bodies:
            async with self._session.post(f"{self._url}/api/jobs", json=body) as answer:
                assert answer.status == 201, await answer.text()

    async def gathered(self, bodies: list[dict[str, Any]]) -> None:
        await asyncio.gather(*(self.single(bodies[n::SIDE_BY_SIDE]) for n in range(SIDE_BY_SIDE)))

    async def bulk(self, bodies: list[dict[str, Any]]) -> None:
        status, answers = await self._bulk(bodies)
        assert status == 200
        assert [json.loads(line)["status"] for line in answers] == [201] * len(bodies)

    async def has_bulk(self) -> bool:
        """Whether the app has the route."""
        status, _ = await self._bulk([])
        return status not in (404, 405)

    async def _bulk(self, bodies: list[dict[str, Any]]) -> tuple[int, list[str]]:
        lines = [json.dumps({"op": "put", "id": body["id"], "job": body}) for body in bodies]
        headers = {"Content-Type": "application/x-ndjson"}
        address, data = f"{self._url}/api/bulk/jobs", "\n".join(lines).encode()
        async with self._session.post(address, data=data, headers=headers) as answer:
            return answer.status, (await answer.text()).splitlines()


class Bare:
    """The rows of creation, written with nothing around."""

    def __init__(self, at: Bench) -> None:
        self._store = at.app.store

    async def single(self, bodies: list[dict[str, Any]]) -> None:
        await self._each(new_jobs(bodies, datetime.now(UTC)))

    async def gathered(self, bodies: list[dict[str, Any]]) -> None:
        jobs = new_jobs(bodies, datetime.now(UTC))
        await asyncio.gather(*(self._each(jobs[n::SIDE_BY_SIDE]) for n in range(SIDE_BY_SIDE)))

    async def packed(self, bodies: list[dict[str, Any]]) -> None:
        await write_jobs(self._store, new_jobs(bodies, datetime.now(UTC)))

    async def _each(self, jobs: list[Job]) -> None:
        rows: Jobs = self._store.jobs
        for job in jobs:
            await rows.create(job, "bare")


if __name__ == "__main__":
    asyncio.run(main())
