"""Two processes at one table: what one has no room for, or leaves behind, the other does."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from shared.jobs.model import Ended, Status, Stretch
from tests.audit import audit
from tests.harness import Bench, Receiver, bench, http_job, until
from tests.stories.host import HostProcess
from tests.stories.neighbours import hanging, once, recorded

RUNS = 100
PORTS = 4  # targets that the runs are spread over: a process may open only so many connections to one


@asynccontextmanager
async def pair(storage: str, **env: str) -> AsyncIterator[tuple[HostProcess, HostProcess, Bench]]:
    """Two processes of one table, not started yet, the first with `env`; and a look into the table. Audits it."""
    first = HostProcess(storage, **env)
    second = HostProcess(storage, **{name: value for name, value in first.env.items() if name not in env})
    async with bench(storage, None, **first.env) as at:
        try:
            yield first, second, at
        finally:
            await asyncio.gather(first.kill(), second.kill())
        assert await audit(at.app.store) == []
        assert not await at.rows("run")


async def test_what_a_full_process_has_no_room_for_is_called_by_the_other(storage: str, target: Receiver) -> None:
    slots, more = 8, 40
    async with pair(storage, MAX_EXECUTING=str(slots)) as (full, other, at), hanging(PORTS) as (silent, released):
        await full.start()
        hung = {f"hanging-{n}": once(silent.urls[n % PORTS]) for n in range(slots)}
        await full.put_all(hung)
        await until(lambda: len(silent.hits) == slots)
        jobs = {f"more-{n}": once(target.url) for n in range(more)}
        await full.put_all(jobs)
        while len([row for row in await at.rows("run") if not row["owner"]]) < more:  # noqa: ASYNC110  polls storage
            await asyncio.sleep(0.1)
        assert not target.hits
        await other.start()
        assert_succeeded(await recorded(at, jobs))
        assert Counter(hit.job for hit in target.hits) == dict.fromkeys(jobs, 1)
        assert len(silent.hits) == slots
        released.set()
        assert_succeeded(await recorded(at, hung))
        assert [await host.stop() for host in (full, other)] == [0, 0]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_what_a_process_had_under_way_when_it_ended_is_done_by_the_other(
    storage: str, number: signal.Signals, tell: Callable[[str, int], None]
) -> None:
    async with (
        pair(storage) as (first, second, at),
        hanging(PORTS) as (quick, quick_released),
        hanging(PORTS) as (slow, slow_released),
    ):
        first.grace = 15  # the slow ones do not end in it
        jobs = await under_way(first, quick, slow)
        await second.start()
        first.send(number)
        if number is signal.SIGTERM:
            await until(lambda: any("Stopping" in line for line in first.log))
            quick_released.set()
        await first.ended()
        assert len(quick.hits + slow.hits) == RUNS
        quick_released.set()
        slow_released.set()
        assert_succeeded(await recorded(at, jobs))
        assert await second.stop() == 0
    # A run that ends while its process is being stopped is recorded; any other is called again.
    assert set(calls(quick).values()) == {1 if number is signal.SIGTERM else 2}
    assert set(calls(slow).values()) == {2}
    tell("actions repeated after the end of their process, with their keys", len(quick.hits + slow.hits) - RUNS)


async def test_what_a_process_has_under_way_when_it_is_drained_is_done_by_itself(
    storage: str, target: Receiver
) -> None:
    async with pair(storage) as (first, second, at), hanging(PORTS) as (slow, released):
        jobs = await under_way(first, slow)
        await second.start()
        first.send(signal.SIGUSR1)
        await until(lambda: any("Draining" in line for line in first.log))
        # So long it goes on with all of its runs under way.
        ticking = http_job(target.url, every=1)
        ticking["trigger"]["recurrence"]["count"] = 4
        await second.put_all({"ticking": ticking})
        await until(lambda: len(target.hits) == 4, 120)
        assert len(slow.hits) == RUNS
        released.set()
        await first.ended()
        assert any("no invocation is open" in line for line in first.log)
        assert_succeeded(await recorded(at, jobs))
        assert await second.stop() == 0
    assert set(calls(slow).values()) == {1}


async def under_way(host: HostProcess, *targets: Receiver) -> list[str]:
    """Starts the process and jobs; when it returns, each job has a run under way, at one of the targets."""
    await host.start()
    urls = [url for target in targets for url in target.urls]
    jobs = {f"job-{n}": once(urls[n % len(urls)]) for n in range(RUNS)}
    await host.put_all(jobs)
    await until(lambda: sum(len(target.hits) for target in targets) == RUNS, 120)
    return list(jobs)


def calls(target: Receiver) -> Counter[str]:
    """How often each key was called. Of one key no attempt is made twice, and no two jobs share one."""
    attempts = {(hit.key, hit.headers["x-timerjobs-fencing-token"]) for hit in target.hits}
    assert len(attempts) == len(target.hits), "one attempt was made twice"
    assert len({hit.key for hit in target.hits}) == len({hit.job for hit in target.hits})
    return Counter(hit.key for hit in target.hits)


def assert_succeeded(histories: dict[str, list[Ended | Stretch]]) -> None:
    """Every run of these jobs has."""
    for job_id, history in histories.items():
        assert {record.status for record in history} == {Status.SUCCEEDED}, (job_id, history)
