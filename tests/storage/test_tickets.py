"""Tickets: encoded as the queue trigger reads them, one for a partition and second, in time."""

import base64
from datetime import timedelta

import pytest
from azure.storage.queue.aio import QueueClient

from shared.storage.tickets import Ticket, read_ticket
from tests.harness import NOON, Bench

SOON = NOON + timedelta(seconds=30)


async def test_a_ticket_is_base64_text_in_the_queue(at: Bench, storage: str) -> None:
    await at.app.store.tickets.send(Ticket("01", NOON))
    async with QueueClient.from_connection_string(storage, at.app.settings.queue_name) as queue:
        message = await queue.receive_message()
    assert message is not None
    text = base64.b64decode(message.content, validate=True).decode()
    assert read_ticket(text) == Ticket("01", NOON)
    assert message.expires_on is not None
    assert message.expires_on.year == 9999  # time to live -1: it never expires


@pytest.mark.parametrize("ticket", [Ticket("0a", SOON), Ticket("ff"), Ticket("00", NOON)])
def test_a_ticket_is_read_as_it_was_written(ticket: Ticket) -> None:
    assert read_ticket(ticket.text()) == ticket


NO_TICKETS = """

x
[]
null
5
"x"
{}
{"partition": 1}
{"partition": "00"}
{"partition": "zz", "runs": true}
{"partition": "00", "due": "tomorrow"}
{"partition": "00", "due": 5}
"""


@pytest.mark.parametrize("text", NO_TICKETS.splitlines()[1:])
def test_what_is_no_ticket_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="not a ticket"):
        read_ticket(text)


async def test_a_second_far_ahead_is_announced_once(at: Bench) -> None:
    for _ in range(3):
        await at.app.store.tickets.announce("00", [SOON, SOON])
    assert len(at.requests) == 1
    await at.app.store.tickets.announce("01", [SOON])
    assert len(at.requests) == 2


async def test_a_second_near_by_is_announced_to_whoever_may_have_missed_it(at: Bench) -> None:
    for _ in range(2):
        await at.app.store.tickets.announce("00", [NOON + timedelta(seconds=5)])
    assert len(at.requests) == 2


async def test_a_ticket_is_visible_at_the_whole_second_before_its_due_time(at: Bench) -> None:
    at.clock.advance(seconds=0.4)
    await at.app.store.tickets.announce("00", [SOON])
    assert "visibilitytimeout=29" in at.requests[0]


async def test_a_ticket_for_what_is_past_is_visible_at_once(at: Bench) -> None:
    await at.app.store.tickets.announce("00", [NOON - timedelta(hours=1)])
    assert "visibilitytimeout=0" in at.requests[0]


async def test_a_ticket_further_off_than_a_queue_holds_comes_early(at: Bench) -> None:
    await at.app.store.tickets.send(Ticket("00", NOON + timedelta(days=30)), timedelta(days=30))
    assert f"visibilitytimeout={(6 * 24 + 23) * 3600}" in at.requests[0]
