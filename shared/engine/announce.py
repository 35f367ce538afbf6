"""Which timers get their ticket from whoever writes them, and which from detection."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from shared.engine.workflows import is_own
from shared.storage.hosts import Hosts
from shared.storage.table import StoreFailed
from shared.storage.tickets import Ticket, Tickets

log = logging.getLogger("timerjobs.announce")

# Whoever writes a timer announces it this far beyond the horizon: so much may pass between the reading of a
# clock and a commit, or between two cycles of detection, without a timer that nobody announces in time.
MARGIN = timedelta(minutes=10)
TAKE = 100  # runs that one ticket has picked up


class Announcer:
    """Sends the tickets of timers just written, and tells of runs. Timers beyond the horizon are left to
    detection."""

    def __init__(self, tickets: Tickets, hosts: Hosts, horizon: timedelta) -> None:
        self._tickets = tickets
        self._hosts = hosts
        self._horizon = horizon

    async def written(self, partition: str, dues: Iterable[datetime], now: datetime) -> None:
        """Announces the timers that were committed at these seconds. Call it after the commit, as its author."""
        end = now + self._horizon + MARGIN
        with _left_to_detection(partition):
            await self._tickets.announce(partition, [due for due in dues if due < end])

    async def runs(self, partition: str, service_types: Iterable[str]) -> None:
        """Announces that there are runs to pick up, by the service type of each: those of the app's own by a
        ticket for each 100, others by the event of their type."""
        counts = Counter(service_types)
        own = sum(count for name, count in counts.items() if is_own(name))
        with _left_to_detection(partition):
            for _ in range(0, own, TAKE):
                await self._tickets.send(Ticket(partition))
            for name in counts:
                if not is_own(name) and await self._hosts.raise_event(name):
                    log.info("%s has runnable instances", name, extra={"action": "raise", "type": name})


@contextmanager
def _left_to_detection(partition: str) -> Iterator[None]:
    """A ticket is a hint: what it announces is committed, and detection finds it without."""
    try:
        yield
    except StoreFailed as failure:
        log.warning("a ticket was not sent: %s", failure, extra={"action": "announce", "partition": partition})
