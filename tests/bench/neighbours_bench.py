"""How late jobs are called beside jobs whose targets never answer, by the local host as a process of its own.

    .venv/bin/python -m tests.bench.neighbours_bench [--quick] [--runs N] [--only SCENE] [--trace]

100 jobs, each every 5 seconds, whose target answers at once; the jobs whose targets hang begin before them.
Lateness is from the scheduled time to the moment the target has the request. `--only` takes a part of a scene's
name; `--trace` says of the latest calls when the process did what.
"""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from devhost.azurite import Azurite
from shared.jobs.identity import partition_of
from shared.jobs.times import json_text
from tests.bench.support import QUICK, percentile, watch_loop
from tests.harness import Hit, receiving, until
from tests.stories.host import HostProcess
from tests.stories.neighbours import SCENES, Scene, hanging, neighbours

JOBS, EVERY = 100, 5
COUNT, WARM_UP = (2, 5) if QUICK else (8, 20)
EXPECTED = JOBS * COUNT
PATIENCE = 15  # seconds for what is not called in time
PARTITIONS = 16
LATE, SHOWN = 1.0, 5  # from how many seconds a call is traced, and how many are
SLOW_LOOP = 0.1  # from how many seconds this process itself is called late


class TracedHost(HostProcess):
    """The local host with `tests.bench.traced_host` around it."""

    module = "tests.bench.traced_host"

    def noted(self) -> list[dict[str, Any]]:
        """What it has printed."""
        return [json.loads(line.removeprefix("noted ")) for line in self.log if line.startswith("noted ")]


@dataclass(frozen=True)
class Played:
    """What came of a scene."""

    hits: list[Hit]
    missed: int
    hung: int
    noted: list[dict[str, Any]]
    begun: int  # so many were noted before the neighbours were due
    own_delay: float  # the longest of this process

    @property
    def late(self) -> list[float]:
        """The lateness of each occurrence that was called, in seconds."""
        return [lateness(hit) for hit in self.hits]


async def main() -> None:
    options = read_options()
    print(f"{JOBS} neighbours, each {COUNT} times; lateness in seconds (to be: p99 below 2 in each scene)")
    print(
        f"  {'scene':<22}{'called':>11}{'p50':>7}{'p99':>7}{'max':>7}{'Missed':>8}{'hung':>6}{'requests/s':>12}",
        end="",
    )
    print(f"{'CPU':>6}{'RSS MiB':>9}")
    for _ in range(options.runs):
        for name, scene in SCENES.items():
            if options.only in name:
                played = await play(scene, options.trace)
                print(line(name, played), flush=True)
                for text in remarks(played, options.trace):
                    print(f"    {text}", flush=True)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--trace", action="store_true")
    return parser.parse_args()


async def play(scene: Scene, trace: bool) -> Played:
    """One scene, with an Azurite and a process of its own."""
    delays = [0.0]
    with Azurite.start(in_memory=True) as azurite:
        env = {"PARTITIONS": str(PARTITIONS), "DETECTION_PERIOD": "PT1M", "LOCK_DURATION": "PT1M", **scene.env}
        host = TracedHost(azurite.connection_string, TRACE="1" if trace else "", **env)
        async with receiving() as quick, hanging(scene.ports) as (silent, _):
            try:
                await host.start()
                await host.put_all(scene.jobs(silent.urls))
                await asyncio.sleep(WARM_UP)
                await host.put_all(neighbours(quick.url, JOBS, EVERY, COUNT))
                begun = len(host.noted())
                watching = asyncio.create_task(watch_loop(SLOW_LOOP, delays.append))
                with suppress(AssertionError):
                    await until(lambda: len({hit.key for hit in quick.hits}) >= EXPECTED, COUNT * EVERY + PATIENCE)
                watching.cancel()
                await asyncio.sleep(1)  # for what it notes of the last calls
                noted = host.noted()
                missed = sum(job["missed"] for job in await host.jobs("neighbour-"))
            finally:
                await host.kill()
        return Played(quick.hits, missed, len(silent.hits), noted, begun, max(delays))


def lateness(hit: Hit) -> float:
    return (hit.at - hit.scheduled).total_seconds()


def line(name: str, played: Played) -> str:
    """The figures of a scene."""
    first, last = played.noted[played.begun - 1]["figures"], played.noted[-1]["figures"]
    seconds = last["at"] - first["at"]
    late = played.late
    times = [percentile(late, 0.5), percentile(late, 0.99), max(late)] if late else []
    called = f"{len({hit.key for hit in played.hits})}/{EXPECTED}"
    return (
        f"  {name:<22}{called:>11}"
        + ("".join(f"{time:>7.2f}" for time in times) or f"{'-':>7}{'-':>7}{'-':>7}")
        + f"{played.missed:>8}{played.hung:>6}{(last['requests'] - first['requests']) / seconds:>12.0f}"
        + f"{(last['processor'] - first['processor']) / seconds:>6.2f}{last['resident'] / 2**20:>9.0f}"
    )


def remarks(played: Played, trace: bool) -> Iterator[str]:
    """What must be known of a scene's figures, and traces of the latest calls, one of a partition and second."""
    if repeated := len(played.hits) - len({hit.key for hit in played.hits}):
        yield f"{repeated} calls were repeated"
    if played.own_delay >= SLOW_LOOP:
        yield f"this process itself was late by up to {played.own_delay:.2f} s"
    if trace:
        events = [event for noted in played.noted for event in noted["events"]]
        late = sorted((hit for hit in played.hits if lateness(hit) >= LATE), key=lateness)
        worst = {(hit.scheduled, partition_of(hit.job, PARTITIONS)): hit for hit in late}
        for hit in sorted(worst.values(), key=lateness, reverse=True)[:SHOWN]:
            yield from traced(hit, events)


def traced(hit: Hit, events: list[list[Any]]) -> Iterator[str]:
    """When the process did what for a call, in seconds after its scheduled time."""
    at, partition = hit.scheduled.timestamp(), partition_of(hit.job, PARTITIONS)
    before = [(time - at, kind, more) for time, kind, *more in events if time <= hit.at.timestamp()]
    whose = [hit.job, json_text(hit.scheduled)]
    stages = [
        *last(before, "received", partition),
        *last(before, "round", partition),
        *last(before, "started", *whose),
        *last(before, "call", *whose),
    ]
    yield f"{hit.job} in partition {partition}: {', '.join(stages)}, at the target {lateness(hit):.2f}"
    near = [event for event in before if event[0] > -1.5]
    polls = [f"{time:.2f} ({more[1]})" for time, kind, more in near if kind == "poll"]
    yield f"  the queue was asked at (messages in work): {' '.join(polls)}"
    early = [(time, more[1] - at) for time, kind, more in near if kind == "received" and more[1]]
    waited = Counter((f"{time:.1f}", f"{due:.0f}") for time, due in early if due > time)
    yield "  early tickets: " + (
        ", ".join(f"{n} at {time} for {due}" for (time, due), n in waited.items()) or "none"
    )
    for kind in ("slow request", "loop", "collection"):
        if slow := [(more[0], time, *more[1:]) for time, what, more in near if what == kind]:
            took, ended, *more = max(slow)
            yield f"  {kind}: {len(slow)}, the longest {took:.2f} until {ended:.2f} {' '.join(map(str, more))}"


def last(events: Sequence[tuple[float, str, list[Any]]], kind: str, *what: str) -> list[str]:
    """The last of these events."""
    times = [time for time, name, more in events if (name, *more[: len(what)]) == (kind, *what)]
    return [f"{kind} {times[-1]:.2f}"] if times else [f"not {kind}"]


if __name__ == "__main__":
    asyncio.run(main())
