"""How late lone jobs are called, by the local host as a process of its own.

    .venv/bin/python -m tests.bench.lateness_bench [--quick]

200 jobs that run once, each at a whole second drawn from two minutes, so that few share a second of a
partition. Lateness is from the scheduled time to the moment the target has the request.
"""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from devhost.azurite import Azurite
from tests.bench.support import QUICK, percentile
from tests.harness import Hit, http_job, receiving, until
from tests.stories.host import HostProcess

JOBS, SPAN = (30, 15) if QUICK else (200, 120)
LEAD = 10 + JOBS // 8  # seconds for creating them
ALONE = timedelta(seconds=3)


async def main() -> None:
    dice = random.Random(1)
    with Azurite.start(in_memory=True) as azurite:
        async with receiving() as receiver:
            host = HostProcess(azurite.connection_string, PARTITIONS="16", DETECTION_PERIOD="PT1M")
            await host.start()
            start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=LEAD)
            times = [start + timedelta(seconds=dice.randrange(SPAN)) for _ in range(JOBS)]
            for number, at in enumerate(times):
                trigger = {"type": "Once", "runAt": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
                body = http_job(receiver.url) | {"trigger": trigger}
                status, job = await host.call("PUT", f"/jobs/lone-{number}", body)
                assert status == 201, job
            assert datetime.now(UTC) < start, "creating them took too long"
            await until(lambda: len(receiver.hits) >= JOBS, SPAN + LEAD + 60)
            assert await host.stop() == 0
            told(receiver.hits)


def told(hits: list[Hit]) -> None:
    assert len({hit.key for hit in hits}) == len(hits) == JOBS
    print(f"Lateness of {JOBS} lone jobs, from the scheduled time to the call (to be: p50 0.5 s, p99 1.5 s):")
    late = [(hit.at - hit.scheduled).total_seconds() for hit in hits]
    print(f"  all                       {line(late)}")
    times = sorted({hit.scheduled for hit in hits})
    woken = {b for a, b in pairwise(times) if b - a >= ALONE}
    idle = [(hit.at - hit.scheduled).total_seconds() for hit in hits if hit.scheduled in woken]
    if idle:
        print(f"  after 3 idle seconds ({len(idle):>3}){line(idle)}")
    print(
        "What limits it: how often the host looks into its queue. It waits 0.1 s after a ticket, then twice as\n"
        "  long each time up to maxPollingInterval (1 s in host.json), so 0.5 s is the mean of an idle app."
    )


def line(late: list[float]) -> str:
    shares = " ".join(f"p{share * 100:.0f} {percentile(late, share):.2f} s  " for share in (0.5, 0.9, 0.99))
    return f"{shares} most {max(late):.2f} s"


if __name__ == "__main__":
    asyncio.run(main())
