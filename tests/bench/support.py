"""What benches share: their size, a target in a process of its own, and where time goes."""

import asyncio
import cProfile
import multiprocessing
import pstats
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from aiohttp import web

# `make bench QUICK=1`: small sizes, to see that the benches run.
QUICK = "--quick" in sys.argv


class Target:
    """An HTTP endpoint in a process of its own, which answers at once and remembers whom it was called for."""

    def __init__(self, pipe: "Connection[Any, Any]") -> None:
        self._pipe = pipe
        self.url: str = pipe.recv()

    def calls(self) -> list[str]:
        """The idempotency keys it was called with since it was last asked."""
        self._pipe.send("calls")
        keys: list[str] = self._pipe.recv()
        return keys


@contextmanager
def target() -> Iterator[Target]:
    """A target, for as long as the context lasts."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        yield Target(here)
    finally:
        process.terminate()
        process.join()


def _serve(pipe: "Connection[Any, Any]") -> None:
    keys: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        keys.append(request.headers["Idempotency-Key"])
        await request.read()
        return web.Response(text="ok")

    async def serve() -> None:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        pipe.send(f"http://127.0.0.1:{runner.addresses[0][1]}/hook")
        while await asyncio.to_thread(pipe.recv):
            pipe.send(list(keys))
            keys.clear()

    asyncio.run(serve())


async def watch_loop(least: float, late: Callable[[float], None]) -> None:
    """Tells by how many seconds, if by so many at least, the event loop wakes too late. Ends when cancelled."""
    loop, nap = asyncio.get_running_loop(), 0.02
    while True:
        due = loop.time() + nap
        await asyncio.sleep(nap)
        if loop.time() - due >= least:
            late(loop.time() - due)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of them lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


# Whose code a file is; the first that fits.
_OWNERS = (
    ("/shared/", "timerjobs"),
    ("/azure/", "the storage client"),
    ("/email/", "the storage client: multipart bodies, by the email library"),
    ("/http/client", "the storage client: multipart bodies, by the email library"),
    ("/copy.py", "the storage client"),
    ("/urllib/", "the storage client"),
    ("/aiohttp/", "HTTP, of actions and storage (aiohttp)"),
    ("/yarl/", "HTTP, of actions and storage (aiohttp)"),
    ("/multidict/", "HTTP, of actions and storage (aiohttp)"),
    ("/asyncio/", "the event loop"),
    ("/selectors", "the event loop"),
    ("/contextlib", "the event loop"),
    ("/json/", "JSON"),
    ("/devhost/", "the queue trigger"),
    ("/tests/", "the bench"),
)


def print_profile(profile: cProfile.Profile) -> None:
    """Whose code the processor's time went to. A built-in function's time is its callers'."""
    spent: Counter[str] = Counter()
    stats: Any = pstats.Stats(profile)
    for (file, _, name), (_, _, own, _, callers) in stats.stats.items():
        if "poll" in name and "select" in name:
            continue  # waiting
        if file != "~":
            spent[_owner(file)] += own
            continue
        for (caller, _, _), (_, _, of_it, _) in callers.items():
            spent[_owner(caller)] += of_it
    total = sum(spent.values())
    for owner, seconds in spent.most_common(7):
        print(f"    {seconds / total:>5.0%} {owner}")


def _owner(file: str) -> str:
    return next((owner for part, owner in _OWNERS if part in file), "other")
