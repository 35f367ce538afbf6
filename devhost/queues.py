"""Queue triggers, with the same requests as the Functions host makes."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Iterator

from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.functions.queue import QueueMessage
from azure.storage.queue import QueueMessage as StoredMessage
from azure.storage.queue.aio import QueueClient

from devhost.errors import DevhostError
from devhost.functions import QueueFunction
from devhost.settings import QueueOptions
from devhost.stopping import stops_within

log = logging.getLogger("devhost.queues")

POISON = "-poison"
LOCK_SECONDS = 600  # how long a received message is hidden, and again at half of it; fixed on the platform
FIRST_POLL_SECONDS = 0.1
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.5, 30.0


def growing_delays(first: float, longest: float) -> Iterator[float]:
    """Delays in seconds, without end: they double from `first` up to `longest` and stay there."""
    delay = min(first, longest)
    while True:
        yield delay
        delay = min(delay * 2, longest)


def decode(content: str, encoding: str) -> bytes:
    """The bytes of a message, by messageEncoding. Raises ValueError if they should be base64 and are not."""
    if encoding == "none":
        return content.encode()
    return base64.b64decode("".join(content.split()), validate=True)


class QueueListener:
    """Polls one queue for one function.

    It receives the next batch once no more than `new_batch_threshold` messages are in work, so at most
    batch_size + new_batch_threshold ever are. While its function runs, a message is hidden anew at half of its
    lock, so it is not delivered twice. It is deleted after its function returned; one that was not deleted, for
    whatever reason, comes again.
    """

    def __init__(
        self,
        function: QueueFunction,
        connection: str,
        options: QueueOptions,
        *,
        lock_seconds: int = LOCK_SECONDS,
    ) -> None:
        """Raises DevhostError if the connection string is wrong."""
        self._function = function
        self._options = options
        self._lock_seconds = lock_seconds
        self._queue = _client(connection, function.queue)
        # A poison queue has none of its own: what fails there stays, hidden until its lock ends.
        is_poison = function.queue.endswith(POISON)
        self._poison = None if is_poison else _client(connection, function.queue + POISON)

    async def run(self, stop: asyncio.Event) -> None:
        """Poll until `stop` is set, and return when every message received is dealt with."""
        try:
            async with asyncio.TaskGroup() as work:
                await self._poll(stop, work)
        finally:
            for client in filter(None, (self._queue, self._poison)):
                await client.close()

    async def _poll(self, stop: asyncio.Event, work: asyncio.TaskGroup) -> None:
        in_work: set[asyncio.Task[None]] = set()
        idle, failing = self._idle_delays(), _retry_delays()
        while not stop.is_set():
            try:
                messages = await self._receive()
            except AzureError as error:
                delay = next(failing)
                log.warning("Queue %s fails; next try in %g s: %s", self._function.queue, delay, _line(error))
                await stops_within(stop, delay)
                continue
            failing = _retry_delays()
            if not messages:
                await stops_within(stop, next(idle))
                continue
            idle = self._idle_delays()
            for message in messages:
                task = work.create_task(self._process(message))
                in_work.add(task)
                task.add_done_callback(in_work.discard)
            while len(in_work) > self._options.new_batch_threshold:
                await asyncio.wait(in_work, return_when=asyncio.FIRST_COMPLETED)

    def _idle_delays(self) -> Iterator[float]:
        return growing_delays(FIRST_POLL_SECONDS, self._options.max_polling_interval.total_seconds())

    async def _receive(self) -> list[StoredMessage]:
        """One batch, or nothing; a queue that does not exist is created."""
        pages = self._queue.receive_messages(
            messages_per_page=self._options.batch_size, visibility_timeout=self._lock_seconds
        ).by_page()
        try:
            async for page in pages:
                return [message async for message in page]
        except ResourceNotFoundError:
            await _create(self._queue)
        return []

    async def _process(self, message: StoredMessage) -> None:
        function, most = self._function.name, self._options.max_dequeue_count
        attempt = message.dequeue_count or 1
        try:
            body = decode(message.content, self._options.message_encoding)
        except ValueError as error:
            log.warning("Message %s for function %s is not base64 (%s)", message.id, function, error)
            await self._give_up(message)
            return
        if attempt > most:
            log.warning("Message %s for function %s was never finished", message.id, function)
            await self._give_up(message)
            return
        if await self._succeeds(message, body, attempt):
            await self._delete(message)
        else:
            await (self._give_up(message) if attempt >= most else self._show_again(message))

    async def _succeeds(self, message: StoredMessage, body: bytes, attempt: int) -> bool:
        """Call the function, keep its message hidden meanwhile, and say whether it returned."""
        function, most = self._function.name, self._options.max_dequeue_count
        ended = asyncio.Event()
        async with asyncio.TaskGroup() as beside:
            beside.create_task(self._keep_hidden(message, ended))
            try:
                await self._function.invoke(_trigger(message, body))
            except Exception:
                log.exception(
                    "Function %s failed, message %s, attempt %d of %d", function, message.id, attempt, most
                )
                return False
            finally:
                ended.set()  # a renewal under way is awaited: it brings the pop receipt that deleting needs
        return True

    async def _keep_hidden(self, message: StoredMessage, ended: asyncio.Event) -> None:
        """Hide a message anew at half of its lock until `ended`, or until storage says it is no longer ours."""
        half = self._lock_seconds / 2
        delay, failing = half, _retry_delays()
        while not await stops_within(ended, delay):
            try:
                await self._hide(message, self._lock_seconds)
                delay, failing = half, _retry_delays()
            except AzureError as error:
                log.warning("Cannot renew message %s: %s", message.id, _line(error))
                if _is_refused(error):
                    return
                delay = min(half, next(failing))

    async def _give_up(self, message: StoredMessage) -> None:
        """Post a message to the poison queue, then delete it. A crash in between leaves it in both."""
        poison = self._poison
        if poison is None:
            return
        if await self._carry_out("post to poison", message, lambda: _post(poison, message.content)):
            log.warning("Message %s is now in queue %s", message.id, poison.queue_name)
            await self._delete(message)

    async def _show_again(self, message: StoredMessage) -> None:
        if self._poison is None:
            return
        seconds = int(self._options.visibility_timeout.total_seconds())
        await self._carry_out("release", message, lambda: self._hide(message, seconds))

    async def _hide(self, message: StoredMessage, seconds: int) -> None:
        """Hide a message for so long from now on; its pop receipt becomes another."""
        hidden = await self._queue.update_message(message.id, message.pop_receipt, visibility_timeout=seconds)
        message.pop_receipt = hidden.pop_receipt

    async def _delete(self, message: StoredMessage) -> None:
        await self._carry_out(
            "delete", message, lambda: self._queue.delete_message(message.id, message.pop_receipt)
        )

    async def _carry_out(self, what: str, message: StoredMessage, call: Callable[[], Awaitable[object]]) -> bool:
        """Make a storage call until it succeeds (True) or is refused (False), as after the lock's end."""
        delays = _retry_delays()
        while True:
            try:
                await call()
                return True
            except AzureError as error:
                log.warning("Cannot %s message %s: %s", what, message.id, _line(error))
                if _is_refused(error):
                    return False
            await asyncio.sleep(next(delays))


def _retry_delays() -> Iterator[float]:
    return growing_delays(FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS)


def _is_refused(error: AzureError) -> bool:
    return isinstance(error, HttpResponseError) and (error.status_code or 500) < 500


def _client(connection: str, queue: str) -> QueueClient:
    try:
        # Each failure is logged and retried here, so not also in the client.
        return QueueClient.from_connection_string(connection, queue, retry_total=0)
    except ValueError as error:
        raise DevhostError(f"the connection string for queue {queue} is wrong: {error}") from None


async def _create(queue: QueueClient) -> None:
    try:
        await queue.create_queue()
    except ResourceExistsError:
        return
    log.info("Queue %s created", queue.queue_name)


async def _post(queue: QueueClient, content: str) -> None:
    try:
        await queue.send_message(content)
    except ResourceNotFoundError:
        await _create(queue)
        await queue.send_message(content)


def _trigger(message: StoredMessage, body: bytes) -> QueueMessage:
    return QueueMessage(  # type: ignore[no-untyped-call]
        id=message.id,
        body=body,
        dequeue_count=message.dequeue_count,
        insertion_time=message.inserted_on,
        expiration_time=message.expires_on,
        time_next_visible=message.next_visible_on,
        pop_receipt=message.pop_receipt,
    )


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
