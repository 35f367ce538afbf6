"""One host at a time manages the storage of a folder: a second one says who does, and ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from devhost.errors import DevhostError

FILE = "host"
WAIT_SECONDS = 1.0


@contextmanager
def only_run(folder: Path) -> Iterator[IO[str]]:
    """Take the folder for this process. `say` writes into the file what those who come later are to read.

    The kernel gives it free when the process ends, however that happens.
    Raises DevhostError, which names the process that has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DevhostError(f"this folder's app runs already{_first(file)}: stop that one first") from None
        file.truncate(0)
        try:
            yield file
        finally:
            file.truncate(0)


def say(file: IO[str], address: str) -> None:
    """Write where this process answers."""
    file.write(f", as process {os.getpid()} on {address}")
    file.flush()


def _first(file: IO[str]) -> str:
    """What the first one says. It has none at once; a moment later it knows its address."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        file.seek(0)
        if (said := file.read()) or time.monotonic() > deadline:
            return said
        time.sleep(0.02)
