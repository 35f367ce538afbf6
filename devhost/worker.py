"""How the process ends as a worker of the platform does: at once, with every task in it, and without clean-up.

**functionTimeout.** An invocation that takes longer than `functionTimeout` of host.json ends the worker process,
with all other invocations and whatever else runs in it, and the platform starts a new one. Here the process
executes itself anew: it keeps its id and its port, loads the app again, and Azurite, if it is ours, is stopped
before, so that it saves its data. The platform's host looks from outside; here a handler that blocks the event
loop postpones the end until it gives way.

**Scale-in.** A drained instance ends for good, by `kill` (`Host.drain`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn, Self


@dataclass(frozen=True)
class Start:
    """How this process was started: its folder and environment, before it changed either."""

    folder: str
    environment: dict[str, str]

    @classmethod
    def now(cls) -> Self:
        """To be called before anything is changed."""
        return cls(os.getcwd(), dict(os.environ))

    def again(self, *arguments: str) -> NoReturn:
        """Execute the same command anew in this process, with these arguments added."""
        _flush()
        os.chdir(self.folder)
        os.execve(sys.executable, [*sys.orig_argv, *arguments], self.environment)


def kill(status: int) -> NoReturn:
    """End the process: no task is cancelled, no `finally` is run, no thread is awaited."""
    _flush()
    os._exit(status)


@contextmanager
def time_limit(seconds: float, exceeded: Callable[[str], None], function: str) -> Iterator[None]:
    """Call `exceeded` with the function's name if the block lasts longer. Needs a running loop."""
    timer = asyncio.get_running_loop().call_later(seconds, exceeded, function)
    try:
        yield
    finally:
        timer.cancel()


def _flush() -> None:
    logging.shutdown()
    sys.stdout.flush()
