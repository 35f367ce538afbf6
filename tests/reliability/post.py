"""The way of tickets through simulated time: what apps send is delivered when its time has come by the clock."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shared.storage.tickets import Ticket
from tests.harness import Bench, Clock

CYCLE = timedelta(seconds=70)  # longer than a detection period, and than a lock and the allowance for clocks


@dataclass
class Post:
    """Tickets under way, each with the instant from which it is to be had."""

    clock: Clock
    under_way: list[tuple[datetime, Ticket]] = field(default_factory=list)

    def collect(self, ticket: Ticket, delay: timedelta) -> None:
        """Takes a ticket that was sent; for `Wire.mail`."""
        self.under_way.append((self.clock() + delay, ticket))

    def take(self) -> Ticket | None:
        """The first ticket that is to be had by now, with the equal ones, which would do the same; None: none."""
        ready = sorted(at for at, _ in self.under_way if at <= self.clock())
        if not ready:
            return None
        first = next(ticket for at, ticket in self.under_way if at == ready[0])
        self.under_way = [(at, t) for at, t in self.under_way if t != first or at > self.clock()]
        return first

    async def deliver(self, at: Bench) -> None:
        """Carries out, one by one, all that are to be had, and those that doing so sends."""
        while (ticket := self.take()) is not None:
            await at.app.dispatcher.carry_out(ticket)


async def recover(at: Bench, post: Post, cycles: int = 2) -> None:
    """Detection and dispatch alone, until a cycle of detection leads to nothing. The clock that goes on is that of
    the post, which those of all processes follow."""
    for _ in range(cycles):
        post.clock.now += CYCLE
        await at.app.detector.tick()
        await post.deliver(at)
