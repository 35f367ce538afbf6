"""The local host, which also prints what it uses and, where TRACE is set, when it did what.

.venv/bin/python -m tests.bench.traced_host, with the options of devhost
"""

import asyncio
import functools
import gc
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from azure.core.pipeline.transport import AioHttpTransport

from devhost.__main__ import _exit, main
from devhost.host import Host
from devhost.queues import QueueListener
from shared.engine.actions.http import HttpAction
from shared.engine.crew import Crew
from shared.engine.dispatch import Dispatcher
from shared.jobs.times import json_text
from tests.bench.support import watch_loop

EVERY = 0.5  # seconds between two lines
SLOW_REQUEST, SLOW_LOOP, SLOW_COLLECTION = 0.2, 0.1, 0.05  # seconds from which they are noted


class Notes:
    """What the host has used so far, and the events that were not printed yet: `[time, kind, ...]`."""

    def __init__(self) -> None:
        self.requests = 0
        self.in_work = 0
        self._events: list[list[Any]] = []
        self._traced = bool(os.environ.get("TRACE"))

    def event(self, kind: str, *more: Any) -> None:
        """Something that happens now."""
        if self._traced:
            self._events.append([time.time(), kind, *more])

    def print(self) -> None:
        """One line of both."""
        figures = {
            "at": time.time(),
            "requests": self.requests,
            "processor": time.process_time(),
            "resident": int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
        }
        events, self._events = self._events, []
        print("noted", json.dumps({"figures": figures, "events": events}), flush=True)


def watch(notes: Notes) -> None:
    """Has the classes of host and app note what they do."""
    _before(
        Dispatcher,
        "carry_out",
        lambda _, ticket: notes.event("received", ticket.partition, ticket.due and ticket.due.timestamp()),
    )
    _before(Dispatcher, "round", lambda _, partition, *rest: notes.event("round", partition))
    _before(Crew, "start", lambda _, run: notes.event("started", run.job_id, json_text(run.scheduled)))
    _before(HttpAction, "attempt", lambda _, attempt: notes.event("call", *_occurrence(attempt.headers)))
    _around(AioHttpTransport, "send", functools.partial(_send, notes))
    _around(QueueListener, "_process", functools.partial(_process, notes))
    _around(Host, "run", functools.partial(_run, notes))
    gc.callbacks.append(_Collections(notes))


def _before(owner: type, name: str, note: Callable[..., None]) -> None:
    def noted(real: Callable[..., Any], *given: Any) -> Any:
        note(*given)
        return real(*given)

    _around(owner, name, noted)


def _around(owner: type, name: str, call: Callable[..., Any]) -> None:
    """Has calls of a method go to `call`, with the method as its first argument."""
    real = getattr(owner, name)
    setattr(owner, name, lambda *given, **named: call(real, *given, **named))


def _occurrence(headers: Any) -> tuple[str, str]:
    return headers["x-timerjobs-job-id"], headers["x-timerjobs-scheduled-time"]


async def _send(notes: Notes, real: Callable[..., Any], transport: Any, request: Any, **options: Any) -> Any:
    notes.requests += 1
    begun = time.perf_counter()
    answer = await real(transport, request, **options)
    took, path = time.perf_counter() - begun, request.url.split("?")[0]
    if request.method == "GET" and path.endswith("/messages"):
        notes.event("poll", took, notes.in_work)
    elif took > SLOW_REQUEST:
        notes.event("slow request", took, f"{request.method} {path}")
    return answer


async def _process(notes: Notes, real: Callable[..., Any], *given: Any) -> None:
    notes.in_work += 1
    try:
        await real(*given)
    finally:
        notes.in_work -= 1


async def _run(notes: Notes, real: Callable[..., Any], *given: Any) -> None:
    async def print_all() -> None:
        while True:
            notes.print()
            await asyncio.sleep(EVERY)

    beside = asyncio.gather(print_all(), watch_loop(SLOW_LOOP, lambda late: notes.event("loop", late)))
    try:
        await real(*given)
    finally:
        beside.cancel()


class _Collections:
    """Notes long garbage collections."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._begun = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._begun = time.perf_counter()
        elif time.perf_counter() - self._begun > SLOW_COLLECTION:
            self._notes.event("collection", time.perf_counter() - self._begun, info["generation"])


if __name__ == "__main__":
    watch(Notes())
    _exit(main())
