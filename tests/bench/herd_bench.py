"""A herd beside the bare transactions of the same rows, in one run on this machine.

    .venv/bin/python -m tests.bench.herd_bench [--quick]

10,000 jobs fall due at one second. The app fires, executes and completes them as the host's queue trigger drives
it, each calling a target in another process. Every transaction it sends is noted; then the very same
transactions are sent to another table by the same client, a chain for each partition, with no scheduling
around them and nothing executed. Herd and bare transactions take turns.
"""

import asyncio
import cProfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from devhost.azurite import Azurite
from shared.jobs.model import Job
from shared.storage.table import Write
from shared.wiring import Store
from tests.bench.support import QUICK, Target, print_profile, target
from tests.harness import RealClock, bench, http_job
from tests.herd import announce, listening, new_jobs, write_jobs

JOBS = 1000 if QUICK else 10_000
ROUNDS = 2
PARTITIONS = 16


@dataclass
class Noted:
    """A transaction that the app sent."""

    partition: str
    writes: Sequence[Write]


@dataclass
class Took:
    """What a herd, or its bare transactions, took."""

    seconds: float
    processor: float
    requests: int = 0
    tickets: int = 0

    def line(self, name: str, jobs: int) -> str:
        rate, each = jobs / self.seconds, self.processor / jobs * 1000
        busy = self.processor / self.seconds
        return f"  {name:<24}{rate:>8.0f} /s{each:>10.2f} ms of processor each{busy:>8.0%} busy"


async def main() -> None:
    print(f"{JOBS:,} jobs at one second, {PARTITIONS} partitions:")
    ratios, bare_of_all, herd_of_all = [], 0.0, 0.0
    with Azurite.start(in_memory=True) as azurite, target() as called:
        for _ in range(ROUNDS):
            jobs = herd(called.url, JOBS)
            ours, noted = await scheduled(azurite.connection_string, called, jobs)
            bare = await replayed(azurite.connection_string, jobs, noted)
            print(ours.line("herd", JOBS))
            print(bare.line("the bare transactions", JOBS))
            ratios.append(bare.seconds / ours.seconds)
            bare_of_all += bare.processor
            herd_of_all += ours.processor
            each = (ours.requests + 2 * ours.tickets) / JOBS
            counted = f"{ours.requests} requests, {ours.tickets} tickets received"
            print(f"  {counted}: {each:.3f} storage transactions each")
            assert each <= 0.3
        print(
            f"ratio of the rates: {', '.join(f'{ratio:.2f}' for ratio in ratios)} (to be at least 0.7); "
            f"of the processor's time {bare_of_all / herd_of_all:.0%} goes into the bare transactions"
        )
        print("What limits it: the app's process. Its time goes to")
        await scheduled(azurite.connection_string, called, herd(called.url, 1000), profiled=True)


def herd(url: str, count: int) -> list[Job]:
    """So many jobs that are due now, and then in a day."""
    now = datetime.now(UTC).replace(microsecond=0)
    return new_jobs((http_job(url, every=86400, start=now, id=f"herd-{n}") for n in range(count)), now)


async def scheduled(
    storage: str, called: Target, jobs: list[Job], profiled: bool = False
) -> tuple[Took, list[Noted]]:
    """A herd, from its tickets to the last record."""
    profile = cProfile.Profile()
    async with bench(storage, RealClock(), PARTITIONS=str(PARTITIONS)) as at:
        await write_jobs(at.app.store, jobs)
        noted = noting(at.app.store)
        at.requests.clear()
        if profiled:
            profile.enable()
        begun, processor = time.perf_counter(), time.process_time()
        await announce(at.app, datetime.now(UTC))
        async with listening(at.app) as queue:
            await queue.quiet(at.app.store)
            took = Took(time.perf_counter() - begun, time.process_time() - processor)
            profile.disable()
            took.tickets = len(queue.received)
        took.requests = len([line for line in at.requests if not is_own(line)])
        keys = called.calls()
        assert len(keys) == len(set(keys)) == len(jobs), "an occurrence was not fired, or an action repeated"
        assert len(await at.rows("past")) == len(jobs)
    if profiled:
        print_profile(profile)
    return took, noted


def is_own(line: str) -> bool:
    """Whether a request is the bench's: the question whether all is recorded."""
    return "$top=1&" in f"{line}&" and "'run:'" in line


def noting(store: Store) -> list[Noted]:
    """Notes each transaction that is carried out from now on."""
    noted: list[Noted] = []
    commit = store.table.commit

    async def note(partition: str, writes: Sequence[Write]) -> list[str]:
        etags = await commit(partition, writes)
        noted.append(Noted(partition, writes))
        return etags

    store.table.commit = note  # type: ignore[method-assign]
    return noted


async def replayed(storage: str, jobs: list[Job], noted: list[Noted]) -> Took:
    """The same transactions on the same rows in another table, each write at the version its row has there."""
    async with bench(storage, RealClock(), PARTITIONS=str(PARTITIONS)) as at:
        await write_jobs(at.app.store, jobs)
        versions = {row["RowKey"]: row["etag"] for row in await at.rows("timer")}
        chains: dict[str, list[Noted]] = defaultdict(list)
        for each in noted:
            chains[each.partition].append(each)

        async def chain(partition: str) -> None:
            for each in chains[partition]:
                writes = [replace(w, etag=versions[w.key]) if w.etag else w for w in each.writes]
                etags = await at.app.store.table.commit(partition, writes)
                versions.update(zip((w.key for w in writes), etags, strict=True))

        begun, processor = time.perf_counter(), time.process_time()
        await asyncio.gather(*(chain(partition) for partition in chains))
        return Took(time.perf_counter() - begun, time.process_time() - processor)


if __name__ == "__main__":
    asyncio.run(main())
