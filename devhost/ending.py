"""The end of the host after a signal: in bounded time, whatever still runs, with storage saved and stopped."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from typing import Self

from devhost.azurite import Azurite

log = logging.getLogger("devhost")

# Together 4 seconds, so that the end comes within 5 on a busy machine too. Runs that are cut off are protected by
# their leases and are taken up again.
GRACE_SECONDS = 1.5  # for what is running to finish
CANCEL_SECONDS = 1.0  # for what has been cancelled to end
SAVE_SECONDS = 1.5  # for Azurite to save, which has what the others leave of their time as well


class Ending:
    """Sees to it that the process ends. A context manager: leaving it stops Azurite."""

    def __init__(self, grace: float) -> None:
        """`grace` is in seconds, as `GRACE_SECONDS`."""
        self.azurite: Azurite | None = None
        self._grace = grace
        self._by: float | None = None
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        """At a signal: from now on time runs. At a second one there is no grace any more."""
        grace = self._grace
        if self._timer is not None:
            self._timer.cancel()
            grace = 0.0
        self._by = time.monotonic() + grace + CANCEL_SECONDS + SAVE_SECONDS
        self._timer = threading.Timer(grace + CANCEL_SECONDS, self._leave)
        self._timer.daemon = True
        self._timer.start()

    def _leave(self) -> None:
        log.warning("Runs under way were cut off; they are taken over when their locks have run out")
        self._stop_azurite()
        logging.shutdown()
        os._exit(0)

    def _stop_azurite(self) -> None:
        if self.azurite is not None:
            left = GRACE_SECONDS + CANCEL_SECONDS if self._by is None else self._by - time.monotonic()
            self.azurite.stop(max(SAVE_SECONDS, left))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # The rest is short, and a signal in the middle of it would leave Azurite behind.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if self._timer is not None:
            self._timer.cancel()
        self._stop_azurite()
