"""Which timers get their ticket from whoever writes them, and which from detection."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from shared.storage.table import StoreFailed
from shared.storage.tickets import Ticket, Tickets

log = logging.getLogger("timerjobs.announce")

# Whoever writes a timer announces it this far beyond the horizon: so much may pass between the reading of a
# clock and a commit, or between two cycles of detection, without a timer that nobody announces in time.
MARGIN = timedelta(minutes=10)


class Announcer:
    """Sends the tickets of timers just written. Timers beyond the horizon are left to detection."""

    def __init__(self, tickets: Tickets, horizon: timedelta) -> None:
        self._tickets = tickets
        self._horizon = horizon

    async def written(self, partition: str, dues: Iterable[datetime], now: datetime) -> None:
        """Announces the timers that were committed at these seconds. Call it after the commit, as its author."""
        end = now + self._horizon + MARGIN
        with _left_to_detection(partition):
            await self._tickets.announce(partition, [due for due in dues if due < end])

    async def runs(self, partition: str) -> None:
        """Announces that there are runs to pick up."""
        with _left_to_detection(partition):
            await self._tickets.send(Ticket(partition))


@contextmanager
def _left_to_detection(partition: str) -> Iterator[None]:
    """A ticket is a hint: what it announces is committed, and detection finds it without."""
    try:
        yield
    except StoreFailed as failure:
        log.warning("a ticket was not sent: %s", failure, extra={"action": "announce", "partition": partition})
