"""A cycle of detection with nothing due, at 1,000, 10,000 and 100,000 jobs.

    .venv/bin/python -m tests.bench.detection_bench [--quick]

The jobs are due in a year, far beyond the horizon. Requests are what Azure charges for, and each reads a key
range that holds nothing. Azurite looks through all rows of a table at each query, so that its seconds grow
with the rows; a real table's do not.
"""

import asyncio
import os
import time
from datetime import timedelta

from devhost.azurite import Azurite
from tests.bench.support import QUICK
from tests.harness import NOON, bench, http_job
from tests.herd import new_jobs, write_jobs

SIZES = (100, 1_000) if QUICK else (1_000, 10_000, 100_000)
CYCLES = 3
PARTITIONS = 16


async def main() -> None:
    most = int(os.environ.get("BENCH_JOBS") or max(SIZES))
    print(f"A cycle of detection with nothing due, {PARTITIONS} partitions (to be at most {3 * PARTITIONS + 4}):")
    with Azurite.start(in_memory=True) as azurite:
        async with bench(azurite.connection_string, PARTITIONS=str(PARTITIONS)) as at:
            written = 0
            for size in (size for size in SIZES if size <= most):
                body = http_job("http://127.0.0.1:9/", every=86400, start=NOON + timedelta(days=365))
                while written < size:
                    more = range(written, min(size, written + 5_000))
                    await write_jobs(at.app.store, new_jobs((body | {"id": f"job-{n}"} for n in more), NOON))
                    written = more.stop
                await at.app.detector.tick()
                requests, seconds = set(), []
                for _ in range(CYCLES):
                    at.clock.advance(minutes=2)
                    at.requests.clear()
                    begun = time.perf_counter()
                    assert await at.app.detector.tick()
                    seconds.append(time.perf_counter() - begun)
                    requests.add(len(at.requests))
                assert requests == {3 * PARTITIONS + 3}
                print(
                    f"  {size:>9,} jobs{requests.pop():>6} requests{min(seconds):>9.2f} s on Azurite", flush=True
                )
    print("What limits it: the number of partitions. The seconds are Azurite's, which looks through all rows.")


if __name__ == "__main__":
    asyncio.run(main())
