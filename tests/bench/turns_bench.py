"""How long the event loop stands still while it is asked the costliest things.

    .venv/bin/python -m tests.bench.turns_bench

Each body of up to 256 KiB is one that a search found costly (tests/worst.py). It is sent in a PUT, a preview and a
bulk request of three; then 1 MiB of history is read. Shown is the longest turn of the loop in milliseconds; under
100 is the aim, a lease lasts 60,000. Beside it stands how long the interpreter takes just to parse the body.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

from devhost.azurite import Azurite
from tests.bench.support import QUICK
from tests.harness import Bench, bench
from tests.web.support import ask
from tests.web.test_pages import recorded
from tests.worst import PARTS, filled

FEW = ("lists", "values", "headers", "hours", "days")


class Longest:
    """The longest turn of the loop."""

    milliseconds = 0.0


@contextmanager
def watched() -> Iterator[Longest]:
    """Watches the turns of the loop."""
    longest, loop, is_over = Longest(), asyncio.get_running_loop(), False
    since = time.perf_counter()

    def turn() -> None:
        nonlocal since
        now = time.perf_counter()
        longest.milliseconds, since = max(longest.milliseconds, 1000 * (now - since)), now
        if not is_over:
            loop.call_soon(turn)

    loop.call_soon(turn)
    yield longest
    is_over = True
    turn()


async def took(asked: Awaitable[Any]) -> float:
    """The longest turn of the loop while something is asked, in milliseconds."""
    with watched() as longest:
        await asked
    return longest.milliseconds


async def main() -> None:
    with Azurite.start(in_memory=True) as azurite:
        async with bench(azurite.connection_string, PARTITIONS="1") as at:
            await measure(at)


async def measure(at: Bench) -> None:
    print(f"{'a body of up to 256 KiB of':30}{'parse':>8}{'PUT':>8}{'preview':>9}{'bulk':>8}   ms")
    worst = 0.0
    for name in FEW if QUICK else PARTS:
        body = filled([(name, 1)])
        raw = json.dumps(body).encode()
        began = time.perf_counter()
        json.loads(raw)
        parse = 1000 * (time.perf_counter() - began)
        preview = {"trigger": body.get("trigger"), "parameters": body.get("parameters", {}), "count": 1000}
        lines = b"\n".join(json.dumps({"op": "put", "id": f"b-{n}", "job": body}).encode() for n in range(3))
        turns = [
            await took(ask(at, "put", raw=raw, job="any")),
            await took(ask(at, "preview", preview)),
            await took(at.call("carry_out", "bulk", raw=lines)),
        ]
        worst = max(worst, *turns)
        print(f"{name:30}{parse:8.1f}{turns[0]:8.1f}{turns[1]:9.1f}{turns[2]:8.1f}")
    await recorded(at, "past", range(1, 51), letters=10_000)
    history = await took(at.call("list", "runs", id="past"))
    print(f"{'1 MiB of history':30}{history:16.1f}\nthe longest turn: {max(worst, history):.1f} ms")


if __name__ == "__main__":
    asyncio.run(main())
