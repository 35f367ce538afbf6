"""The Queue action, on a real storage emulator."""

import asyncio
import base64
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from azure.storage.queue import QueueMessage, TextBase64DecodePolicy, TextBase64EncodePolicy
from azure.storage.queue.aio import QueueClient

from shared.engine.actions.outcome import Later, Outcome
from shared.engine.actions.queue import QueueAction, parse_queue_targets, queue_faults
from shared.engine.actions.retry import DEFAULT_RETRY
from shared.jobs.fields import MAX_MESSAGE
from shared.jobs.model import Status
from tests.engine.actions.support import KEY, NOW, an_attempt, answers, ended, goes_on
from tests.harness import Hit, Receiver

OWN = "timerjobs-tickets"
ALLOWED = ("orders", "letters")


class Queues:
    """Queues of one connection. The account's queues are the test's own: each name gets a suffix."""

    def __init__(self, connection: str) -> None:
        self.connection = connection
        self.suffix = uuid4().hex[:12]
        self.asked: list[str] = []
        self._open = AsyncExitStack()

    async def client(self, name: str) -> QueueClient:
        """As the app's composition root gives it, retries and all."""
        self.asked.append(name)
        client = QueueClient.from_connection_string(
            self.connection,
            f"{name}-{self.suffix}",
            message_encode_policy=TextBase64EncodePolicy(),
            retry_total=4,
            initial_backoff=1,
            increment_base=1,
        )
        return await self._open.enter_async_context(client)

    def action(self, elapsed: Any = lambda: 0.0) -> QueueAction:
        return QueueAction(self.client, ALLOWED, OWN, elapsed)

    async def put(self, inputs: Any, **changed: Any) -> Outcome | Later:
        return await self.action().attempt(an_attempt(inputs, **changed))

    async def messages(self, name: str = "orders") -> list[QueueMessage]:
        async with QueueClient.from_connection_string(self.connection, f"{name}-{self.suffix}") as client:
            return [message async for message in client.receive_messages()]

    async def close(self) -> None:
        await self._open.aclose()


@pytest.fixture
async def queues(storage: str) -> AsyncIterator[Queues]:
    """The emulator, with the queue `orders` made."""
    made = Queues(storage)
    await (await made.client("orders")).create_queue()
    made.asked.clear()
    yield made
    await made.close()


@pytest.fixture
async def failing(target: Receiver) -> AsyncIterator[Queues]:
    """Queues at an address where the receiver `target` answers in place of storage."""
    key = base64.b64encode(b"storage-key").decode()
    endpoint = target.url.removesuffix("/hook") + "/acct"
    made = Queues(f"DefaultEndpointsProtocol=http;AccountName=acct;AccountKey={key};QueueEndpoint={endpoint}")
    yield made
    await made.close()


def to_orders(message: Any) -> dict[str, Any]:
    return {"queue": "orders", "message": message}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("as it is, <ä> & \x01", "as it is, <ä> & \x01"),
        ("", ""),
        ('{"a": 1}', '{"a": 1}'),
        ({"a": [1, 2.5, None, True], "ä": "ö"}, '{"a":[1,2.5,null,true],"ä":"ö"}'),
        ([], "[]"),
        (5, "5"),
        (False, "false"),
        (None, "null"),
    ],
)
async def test_the_message_is_what_the_job_said_in_base64(queues: Queues, message: Any, text: str) -> None:
    outcome = ended(await queues.put(to_orders(message)), Status.SUCCEEDED)
    (got,) = await queues.messages()
    assert base64.b64decode(got.content, validate=True).decode() == text
    assert outcome.response == {"messageId": got.id}
    assert got.expires_on is not None
    assert got.expires_on.year == 9999  # it never expires


async def test_a_reader_with_the_librarys_decoding_gets_the_text(queues: Queues, storage: str) -> None:
    await queues.put(to_orders({"n": 1}))
    async with QueueClient.from_connection_string(
        storage, f"orders-{queues.suffix}", message_decode_policy=TextBase64DecodePolicy()
    ) as reader:
        message = await reader.receive_message()
    assert message is not None
    assert json.loads(message.content) == {"n": 1}


async def test_48_kib_are_taken_and_no_byte_more(queues: Queues) -> None:
    longest = "ä" * (MAX_MESSAGE // 2)
    ended(await queues.put(to_orders(longest)), Status.SUCCEEDED)
    outcome = ended(await queues.put(to_orders(longest + "x")), Status.FAILED)
    assert outcome.reason == "message has 49153 bytes; a queue takes at most 49152"
    (got,) = await queues.messages()
    assert len(base64.b64decode(got.content)) == MAX_MESSAGE


async def test_a_queue_that_does_not_exist_fails_the_action(queues: Queues) -> None:
    outcome = ended(await queues.put({"queue": "letters", "message": "x"}), Status.FAILED)
    assert outcome.reason == "the queue letters does not exist"


@pytest.mark.parametrize(
    ("inputs", "why"),
    [
        ({"queue": "others", "message": "x"}, "queue is not allowed: the operator must add it to QUEUE_TARGETS"),
        ({"queue": OWN, "message": "x"}, "queue is the app's own queue"),
        ({"queue": "orders-poison", "message": "x"}, "queue is the app's own queue, or one for poison messages"),
        ({"queue": 5, "message": "x"}, "queue must be the name of a queue"),
        ({"queue": ["orders"], "message": "x"}, "queue must be the name of a queue"),
        ({"message": "x"}, "queue is required"),
        ({"queue": "orders"}, "message is required"),
        (to_orders("\ud800"), "message must be text or JSON"),
        (to_orders({"a": float("nan")}), "message must be text or JSON"),
    ],
)
async def test_what_is_refused_fails_without_a_request(queues: Queues, inputs: Any, why: str) -> None:
    outcome = ended(await queues.put(inputs), Status.FAILED)
    assert outcome.reason.startswith(why)
    assert not queues.asked


async def test_the_own_queue_and_poison_queues_are_refused_even_if_listed() -> None:
    listed = {OWN, "orders-poison", "orders"}
    assert queue_faults(OWN, listed, OWN)
    assert queue_faults("orders-poison", listed, OWN)
    assert not queue_faults("orders", listed, OWN)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_a_fault_of_storage_that_may_pass_is_tried_again_later(
    target: Receiver, failing: Queues, status: int
) -> None:
    answers(target, {"status": status, "headers": {"x-ms-error-code": "ServerBusy"}})
    for number in (1, 2, 3, 4):
        later = goes_on(await failing.put(to_orders("x"), number=number))
        assert later.at - NOW == DEFAULT_RETRY.delay(number, f"{KEY}:{number}")
        assert later.attempted
        assert later.reason == (
            f"the queue orders: storage answered {status} (ServerBusy); retry {number} of 4 is to come"
        )
    outcome = ended(await failing.put(to_orders("x"), number=5), Status.FAILED)
    assert outcome.reason.endswith("after 4 retries")
    assert len(target.hits) == 5  # the client does not sleep on it and repeat


async def test_storage_that_cannot_be_reached_is_tried_again_later() -> None:
    nowhere = Queues(
        "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;QueueEndpoint=http://127.0.0.1:9/a"
    )
    later = goes_on(await nowhere.put(to_orders("x")))
    assert later.reason.startswith("the queue orders: storage does not answer")
    await nowhere.close()


@pytest.mark.parametrize("status", [400, 403, 409])
async def test_what_will_not_pass_fails_at_once_without_storages_own_text(
    target: Receiver, failing: Queues, status: int
) -> None:
    text = "<Error><Code>AuthenticationFailed</Code><Message>signed c2ln</Message></Error>"
    headers = {"Content-Type": "application/xml", "x-ms-error-code": "AuthenticationFailed"}
    answers(target, {"status": status, "text": text, "headers": headers})
    outcome = ended(await failing.put(to_orders("x")), Status.FAILED)
    assert outcome.reason == f"the queue orders: storage answered {status} (AuthenticationFailed)"


async def test_no_answer_in_time_is_tried_again_and_at_last_timed_out(target: Receiver, failing: Queues) -> None:
    async def stall(hit: Hit) -> Any:
        await asyncio.sleep(60)

    target.answer = stall
    soon = timedelta(seconds=0.2)
    goes_on(await failing.put(to_orders("x"), timeout=soon))
    ended(await failing.put(to_orders("x"), timeout=soon, number=5), Status.TIMED_OUT)


async def test_the_wait_counts_from_the_end_of_the_attempt(target: Receiver, failing: Queues) -> None:
    answers(target, {"status": 503})
    ticks = itertools.count(1000, 7.0)
    later = goes_on(await failing.action(lambda: next(ticks)).attempt(an_attempt(to_orders("x"))))
    assert later.at == NOW + timedelta(seconds=7) + DEFAULT_RETRY.delay(1, f"{KEY}:1")


def test_queue_targets_are_a_list_of_names() -> None:
    assert parse_queue_targets("", OWN) == frozenset()
    assert parse_queue_targets('["orders", "a-b-3"]', OWN) == {"orders", "a-b-3"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("orders", "must be JSON"),
        ("[" * 100_000, "must be JSON"),
        ('{"orders": 1}', "must list queues"),
        ("[5]", "must list queues"),
        ('["Orders"]', "not the name of a queue"),
        ('["a"]', "not the name of a queue"),
        ('["a--b"]', "not the name of a queue"),
        ('["*"]', "not the name of a queue"),
        (f'["{OWN}"]', "must not name timerjobs-tickets"),
        ('["orders-poison"]', "must not name orders-poison"),
    ],
)
def test_queue_targets_that_are_wrong_are_told(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_queue_targets(text, OWN)
