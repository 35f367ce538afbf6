"""Tickets: queue messages that say where to look, and when. A hint each; the truth is in the table."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from azure.storage.queue.aio import QueueClient

from shared.jobs.times import from_key_text, key_text
from shared.storage.table import service_errors

MAX_DELAY = timedelta(days=6, hours=23)
# A (partition, second) pair is remembered as announced only while it is further ahead than this: who comes
# later may have missed the pass of a ticket nearer than the clocks of two instances may differ.
REMEMBER_BEYOND = timedelta(seconds=10)
MEMORY = 20_000


@dataclass(frozen=True, slots=True)
class Ticket:
    """Look at this partition's timers at `due` (a whole second, UTC); without `due`: at its runs."""

    partition: str
    due: datetime | None = None

    def text(self) -> str:
        """The message body."""
        if self.due is None:
            return json.dumps({"partition": self.partition, "runs": True})
        return json.dumps({"partition": self.partition, "due": key_text(self.due)})


def read_ticket(text: str) -> Ticket:
    """The ticket in a message body. Raises ValueError for any other text."""
    try:
        body = json.loads(text)
        partition = body["partition"]
        int(partition, 16)
        return Ticket(partition, None if body.get("runs") else from_key_text(body["due"]))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"not a ticket: {text[:200]!r}") from error


class Tickets:
    """The queue, for sending. Receiving is the host's, through the queue trigger."""

    def __init__(self, client: QueueClient, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._clock = clock
        self._announced: dict[tuple[str, datetime], None] = {}

    async def announce(self, partition: str, dues: Iterable[datetime]) -> None:
        """One ticket for each due second that this process has not announced yet, visible when it comes."""
        for due in sorted(set(dues)):
            key = (partition, due)
            if key in self._announced:
                continue
            ahead = due - self._clock()
            await self.send(Ticket(partition, due), ahead)
            if ahead > REMEMBER_BEYOND:
                self._announced[key] = None
                if len(self._announced) > MEMORY:
                    del self._announced[next(iter(self._announced))]

    async def send(self, ticket: Ticket, delay: timedelta = timedelta(0)) -> None:
        """Sends a ticket that becomes visible after `delay`, rounded down to whole seconds; it never expires."""
        seconds = int(max(timedelta(0), min(delay, MAX_DELAY)).total_seconds())
        with service_errors():
            await self._client.send_message(ticket.text(), visibility_timeout=seconds, time_to_live=-1)
