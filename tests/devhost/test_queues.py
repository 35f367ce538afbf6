"""Queue triggers, against Azurite, by the requests they make."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import islice

import azure.functions as func
import pytest
from azure.storage.queue.aio import QueueClient

from devhost.azurite import Azurite
from devhost.functions import QueueFunction
from devhost.queues import LOCK_SECONDS, QueueListener, decode, growing_delays
from devhost.settings import QueueOptions
from tests.devhost.support import Proxy, eventually

Handler = Callable[[func.QueueMessage], Awaitable[None]]
OPTIONS = QueueOptions(
    batch_size=4,
    new_batch_threshold=2,
    max_polling_interval=timedelta(milliseconds=200),
    visibility_timeout=timedelta(seconds=1),
    max_dequeue_count=2,
)


class Queues:
    """A queue and its poison queue, seen directly, and a listener that is seen through a proxy."""

    def __init__(self, name: str, azurite: Azurite, proxy: Proxy) -> None:
        self.name = name
        self.proxy = proxy
        self.main = QueueClient.from_connection_string(azurite.connection_string, name)
        self.poison = QueueClient.from_connection_string(azurite.connection_string, f"{name}-poison")

    async def put(self, *contents: bytes) -> None:
        for content in contents:
            await self.main.send_message(base64.b64encode(content).decode())

    async def listen(
        self,
        handler: Handler,
        until: Callable[[], object],
        options: QueueOptions = OPTIONS,
        lock_seconds: int = LOCK_SECONDS,
    ) -> None:
        """Run a listener until the condition holds, and until it has ended in good order."""
        stop = asyncio.Event()
        function = QueueFunction("take", handler, "message", self.name)
        listener = QueueListener(function, self.proxy.connection_string, options, lock_seconds=lock_seconds)
        running = asyncio.create_task(listener.run(stop))
        try:
            await eventually(until)
        finally:
            stop.set()
            async with asyncio.timeout(30):
                await running

    def settlements(self) -> list[str]:
        """All requests of the listener but those that receive."""
        return [each for each in self.proxy.requests if not each.startswith("GET")]

    async def in_poison(self) -> list[str]:
        return [message.content async for message in self.poison.receive_messages()]

    async def left(self) -> int:
        """How many messages the queue holds, hidden ones included."""
        return (await self.main.get_queue_properties()).approximate_message_count or 0


@pytest.fixture
async def queues(queue_name: str, azurite: Azurite, proxy: Proxy) -> AsyncIterator[Queues]:
    queues = Queues(queue_name, azurite, proxy)
    await queues.main.create_queue()
    yield queues
    await queues.main.close()
    await queues.poison.close()


def test_delays_double_up_to_the_longest_and_stay_there() -> None:
    assert list(islice(growing_delays(0.1, 1.0), 6)) == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert list(islice(growing_delays(0.1, 0.1), 3)) == [0.1, 0.1, 0.1]


def test_contents_are_decoded_by_the_encoding() -> None:
    assert decode("aGVs\nbG8=", "base64") == b"hello"
    assert decode("aGVsbG8=", "none") == b"aGVsbG8="
    for wrong in ("hello", "{}", "aGVsbG8=x"):
        with pytest.raises(binascii.Error):
            decode(wrong, "base64")


async def test_the_function_gets_the_message_and_success_deletes_it(queues: Queues) -> None:
    taken: list[func.QueueMessage] = []

    async def take(message: func.QueueMessage) -> None:
        taken.append(message)

    before = datetime.now(UTC).replace(microsecond=0)
    await queues.put(b'{"a": 1}')
    await queues.listen(take, lambda: queues.proxy.count("DELETE"))
    (message,) = taken
    assert (message.get_json(), message.dequeue_count) == ({"a": 1}, 1)
    assert message.id
    assert message.pop_receipt
    assert message.insertion_time is not None
    assert message.expiration_time is not None
    assert message.time_next_visible is not None
    assert before <= message.insertion_time <= datetime.now(UTC)
    assert message.time_next_visible >= before + timedelta(seconds=600)
    assert await queues.left() == 0
    assert queues.proxy.requests[0] == f"GET /{queues.name}/messages?numofmessages=4&visibilitytimeout=600 200"
    assert queues.settlements() == [f"DELETE /{queues.name}/messages 204"]


async def test_a_queue_that_does_not_exist_is_created(queues: Queues) -> None:
    await queues.main.delete_queue()

    async def take(message: func.QueueMessage) -> None: ...

    receive = f"GET /{queues.name}/messages?numofmessages=4&visibilitytimeout=600"
    await queues.listen(take, lambda: queues.proxy.count(f"{receive} 200"))
    assert queues.proxy.requests[:3] == [f"{receive} 404", f"PUT /{queues.name} 201", f"{receive} 200"]


async def test_a_failure_hides_the_message_and_the_last_one_moves_it_to_poison(queues: Queues) -> None:
    attempts: list[int | None] = []

    async def fail(message: func.QueueMessage) -> None:
        attempts.append(message.dequeue_count)
        raise RuntimeError("on purpose")

    await queues.put(b"bad")
    await queues.listen(fail, lambda: queues.proxy.count("DELETE"))
    assert attempts == [1, 2]
    assert queues.settlements() == [
        f"PUT /{queues.name}/messages?visibilitytimeout=1 204",
        f"POST /{queues.name}-poison/messages 404",
        f"PUT /{queues.name}-poison 201",
        f"POST /{queues.name}-poison/messages 201",
        f"DELETE /{queues.name}/messages 204",
    ]
    assert await queues.in_poison() == [base64.b64encode(b"bad").decode()]
    assert await queues.left() == 0


async def test_a_failed_message_comes_again_and_may_then_succeed(queues: Queues) -> None:
    async def succeed_at_last(message: func.QueueMessage) -> None:
        if message.dequeue_count == 1:
            raise RuntimeError("on purpose")

    await queues.put(b"x")
    await queues.listen(succeed_at_last, lambda: queues.proxy.count("DELETE"))
    assert (await queues.left(), queues.proxy.count("POST")) == (0, 0)


async def test_a_message_that_is_not_base64_goes_to_poison_unseen(queues: Queues) -> None:
    seen: list[func.QueueMessage] = []

    async def take(message: func.QueueMessage) -> None:
        seen.append(message)

    await queues.main.send_message('{"not": "base64"}')
    await queues.listen(take, lambda: queues.proxy.count("DELETE"))
    assert await queues.in_poison() == ['{"not": "base64"}']
    assert seen == []


async def test_a_message_often_received_but_never_finished_goes_to_poison_unseen(queues: Queues) -> None:
    seen: list[func.QueueMessage] = []

    async def take(message: func.QueueMessage) -> None:
        seen.append(message)

    await queues.put(b"kills the host")
    for _ in range(OPTIONS.max_dequeue_count):
        assert await anext(queues.main.receive_messages(visibility_timeout=1))
        await asyncio.sleep(1.1)
    await queues.listen(take, lambda: queues.proxy.count("DELETE"))
    assert await queues.in_poison() == [base64.b64encode(b"kills the host").decode()]
    assert seen == []


async def test_encoding_none_hands_the_text_on_as_it_is(queues: Queues) -> None:
    bodies: list[bytes] = []

    async def take(message: func.QueueMessage) -> None:
        bodies.append(message.get_body())

    await queues.main.send_message("{“}")
    options = QueueOptions(message_encoding="none", max_polling_interval=timedelta(seconds=0.2))
    await queues.listen(take, lambda: bodies, options)
    assert bodies == ["{“}".encode()]


async def test_no_more_than_a_batch_and_the_threshold_are_in_work(queues: Queues) -> None:
    in_work, most, done = 0, 0, 0
    gate = asyncio.Semaphore(0)

    async def hold(message: func.QueueMessage) -> None:
        nonlocal in_work, most, done
        in_work += 1
        most = max(most, in_work)
        await gate.acquire()
        in_work, done = in_work - 1, done + 1

    async def release() -> None:
        try:
            await eventually(lambda: in_work == 4)
            gate.release()
            await asyncio.sleep(0.3)  # time in which a listener that counts wrongly takes more
            assert (in_work, queues.proxy.count("GET")) == (3, 1)
            gate.release()
            await eventually(lambda: in_work == 6)
            await asyncio.sleep(0.3)
        finally:
            for _ in range(12):
                gate.release()

    await queues.put(*(b"%d" % number for number in range(12)))
    releasing = asyncio.create_task(release())
    await queues.listen(hold, lambda: done == 12)
    await releasing
    assert most == 6


async def test_storage_errors_are_logged_in_a_line_and_survived(
    queues: Queues, caplog: pytest.LogCaptureFixture
) -> None:
    ids: list[str | None] = []

    async def take(message: func.QueueMessage) -> None:
        ids.append(message.id)

    await queues.put(b"x")
    queues.proxy.fail_once = {"GET", "DELETE"}
    await queues.listen(take, lambda: queues.proxy.count(f"DELETE /{queues.name}/messages 204"))
    assert [each.getMessage() for each in caplog.records] == [
        f"Queue {queues.name} fails; next try in 0.5 s: The server is busy.",
        f"Cannot delete message {ids[0]}: The server is busy.",
    ]
    assert (len(ids), await queues.left()) == (1, 0)


async def test_a_deletion_that_is_refused_is_not_tried_again(
    queues: Queues, caplog: pytest.LogCaptureFixture
) -> None:
    async def delete_it_first(message: func.QueueMessage) -> None:
        await queues.main.clear_messages()

    await queues.put(b"x")
    await queues.listen(delete_it_first, lambda: "Cannot delete" in caplog.text)
    assert queues.settlements() == [f"DELETE /{queues.name}/messages 404"]


@pytest.mark.parametrize("most_attempts", [1, 2])
async def test_what_fails_in_a_poison_queue_stays_there(
    azurite: Azurite, proxy: Proxy, queue_name: str, most_attempts: int
) -> None:
    queues = Queues(f"{queue_name}-poison", azurite, proxy)
    attempts: list[int | None] = []

    async def fail(message: func.QueueMessage) -> None:
        attempts.append(message.dequeue_count)
        raise RuntimeError("on purpose")

    await queues.main.create_queue()
    await queues.put(b"x")
    await queues.listen(fail, lambda: attempts, QueueOptions(max_dequeue_count=most_attempts))
    assert (queues.settlements(), await queues.left()) == ([], 1)
    await queues.main.close()
    await queues.poison.close()


async def test_stopping_lets_a_message_finish_and_deletes_it(queues: Queues) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def hold(message: func.QueueMessage) -> None:
        started.set()
        await release.wait()

    await queues.put(b"x")
    stop = asyncio.Event()
    function = QueueFunction("take", hold, "message", queues.name)
    running = asyncio.create_task(QueueListener(function, queues.proxy.connection_string, OPTIONS).run(stop))
    await started.wait()
    stop.set()
    release.set()
    await running
    assert await queues.left() == 0


async def test_a_function_that_takes_several_locks_gets_its_message_once(queues: Queues) -> None:
    attempts: list[int | None] = []

    async def hold(message: func.QueueMessage) -> None:
        attempts.append(message.dequeue_count)
        await eventually(lambda: queues.proxy.count("PUT") >= 5)

    await queues.put(b"x")
    await queues.listen(hold, lambda: queues.proxy.count("DELETE"), lock_seconds=2)
    assert attempts == [1]
    assert set(queues.settlements()) == {
        f"PUT /{queues.name}/messages?visibilitytimeout=2 204",
        f"DELETE /{queues.name}/messages 204",
    }
    assert await queues.left() == 0


async def test_a_renewal_that_fails_is_tried_again_and_the_function_runs_on(
    queues: Queues, caplog: pytest.LogCaptureFixture
) -> None:
    ids: list[str | None] = []
    renewed = f"PUT /{queues.name}/messages?visibilitytimeout=2"

    async def hold(message: func.QueueMessage) -> None:
        ids.append(message.id)
        await eventually(lambda: queues.proxy.count(f"{renewed} 204"))

    await queues.put(b"x")
    queues.proxy.fail_once = {"PUT"}
    await queues.listen(hold, lambda: queues.proxy.count("DELETE"), lock_seconds=2)
    assert queues.settlements()[:2] == [f"{renewed} 503", f"{renewed} 204"]
    assert [each.getMessage() for each in caplog.records] == [
        f"Cannot renew message {ids[0]}: The server is busy."
    ]
    assert (len(ids), await queues.left()) == (1, 0)


async def test_a_message_that_is_no_longer_ours_is_not_renewed_again(
    queues: Queues, caplog: pytest.LogCaptureFixture
) -> None:
    ended: list[bool] = []

    async def delete_it_first(message: func.QueueMessage) -> None:
        await queues.main.clear_messages()
        await eventually(lambda: "Cannot renew" in caplog.text)
        await asyncio.sleep(1.2)  # time in which a listener that does not give up tries again
        ended.append(True)

    await queues.put(b"x")
    await queues.listen(delete_it_first, lambda: "Cannot delete" in caplog.text, lock_seconds=2)
    assert ended
    assert queues.settlements() == [
        f"PUT /{queues.name}/messages?visibilitytimeout=2 404",
        f"DELETE /{queues.name}/messages 404",
    ]


async def test_a_message_that_was_renewed_is_shown_again_if_its_function_fails(queues: Queues) -> None:
    async def succeed_at_last(message: func.QueueMessage) -> None:
        if message.dequeue_count == 1:
            await eventually(lambda: queues.proxy.count("PUT"))
            raise RuntimeError("on purpose")

    await queues.put(b"x")
    await queues.listen(succeed_at_last, lambda: queues.proxy.count("DELETE"), lock_seconds=2)
    assert queues.settlements() == [
        f"PUT /{queues.name}/messages?visibilitytimeout=2 204",
        f"PUT /{queues.name}/messages?visibilitytimeout=1 204",
        f"DELETE /{queues.name}/messages 204",
    ]


async def test_a_renewal_under_way_when_the_function_ends_is_awaited_for_its_pop_receipt(queues: Queues) -> None:
    answer = queues.proxy.answers_after["PUT"] = asyncio.Event()

    async def end_in_between(message: func.QueueMessage) -> None:
        await eventually(lambda: queues.proxy.count("PUT"))
        asyncio.get_running_loop().call_later(0.2, answer.set)  # time for a deletion that does not wait

    await queues.put(b"x")
    await queues.listen(end_in_between, lambda: queues.proxy.count("DELETE"), lock_seconds=2)
    assert queues.settlements() == [
        f"PUT /{queues.name}/messages?visibilitytimeout=2 204",
        f"DELETE /{queues.name}/messages 204",
    ]
