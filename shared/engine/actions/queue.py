"""The Queue action: a message on a storage queue that the operator allows jobs to write to."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from typing import Any

from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.storage.queue.aio import QueueClient

from shared.engine.actions.inputs import BadInput, member
from shared.engine.actions.outcome import Attempt, Later, Outcome
from shared.engine.actions.retry import DEFAULT_RETRY, seed_of, try_again
from shared.errors import Fault
from shared.jobs.fields import MAX_MESSAGE, QUEUE_NAME
from shared.jobs.model import Status

QUEUE_TARGETS = "QUEUE_TARGETS"
_POISON = "-poison"


def parse_queue_targets(text: str, own_queue: str) -> frozenset[str]:
    """The setting QUEUE_TARGETS: the names of the queues that jobs may put messages on.

    `own_queue` is the tickets', which must not be named. Empty text allows nothing. Raises ValueError.
    """
    try:
        names = json.loads(text or "[]")
    except (ValueError, RecursionError):
        raise ValueError("must be JSON") from None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError('must list queues as JSON: ["orders", "letters"]')
    for name in names:
        if not QUEUE_NAME.fullmatch(name):
            raise ValueError(f"names {name[:80]!r}, which is not the name of a queue")
        if _is_reserved(name, own_queue):
            raise ValueError(f"must not name {name}: it is the app's own queue, or one for poison messages")
    return frozenset(names)


def queue_faults(queue: Any, allowed: Collection[str], own_queue: str) -> list[Fault]:
    """What is wrong with an action's `queue`, or not allowed by the operator."""
    if not isinstance(queue, str):
        return [Fault("queue", "must be the name of a queue")]
    if _is_reserved(queue, own_queue):
        return [Fault("queue", "is the app's own queue, or one for poison messages")]
    if queue not in allowed:
        return [Fault("queue", f"is not allowed: the operator must add it to {QUEUE_TARGETS}")]
    return []


def _is_reserved(name: str, own_queue: str) -> bool:
    return name == own_queue or name.endswith(_POISON)


class QueueAction:
    """Puts the job's message on a queue: text as it is, other JSON as compact JSON text.

    `queue` gives the client of a queue by its name, and keeps it; it must have TextBase64EncodePolicy, as the
    app's queues have. A message never expires. `elapsed` tells the seconds passed since any fixed moment.
    """

    def __init__(
        self,
        queue: Callable[[str], Awaitable[QueueClient]],
        allowed: Collection[str],
        own_queue: str,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue = queue
        self._allowed = allowed
        self._own_queue = own_queue
        self._elapsed = elapsed

    async def attempt(self, attempt: Attempt) -> Outcome | Later:
        """Puts the message. Faults of storage that may pass are retried by the default policy."""
        began = self._elapsed()
        try:
            name, text = self._read(attempt)
        except ValueError as error:
            return Outcome(status=Status.FAILED, reason=str(error))
        seconds = attempt.timeout.total_seconds()
        try:
            async with asyncio.timeout(seconds):
                client = await self._queue(name)
                # The run retries, so the client does not sleep on it.
                sent = await client.send_message(text, time_to_live=-1, retry_total=0)
        except TimeoutError:
            failed = Outcome(status=Status.TIMED_OUT, reason=f"no answer within {seconds:g} s")
        except ResourceNotFoundError:
            return Outcome(status=Status.FAILED, reason=f"the queue {name} does not exist")
        except AzureError as error:
            failed = Outcome(status=Status.FAILED, reason=f"the queue {name}: {_told(error)}")
            if not _may_pass(error):
                return failed
        else:
            return Outcome(status=Status.SUCCEEDED, response={"messageId": sent.id})
        return try_again(
            failed,
            DEFAULT_RETRY,
            failures=attempt.number - 1,
            seed=seed_of(attempt),
            ended=attempt.now + timedelta(seconds=self._elapsed() - began),
        )

    def _read(self, attempt: Attempt) -> tuple[str, str]:
        """The queue's name and the message. Raises BadInput."""
        name = member(attempt.inputs, "queue")
        for fault in queue_faults(name, self._allowed, self._own_queue):
            raise BadInput(*fault)
        if "message" not in attempt.inputs:
            raise BadInput("message", "is required")
        return name, message_text(attempt.inputs["message"])


def message_text(message: Any) -> str:
    """The text that a message is sent as. Raises BadInput where it is no JSON, or too long."""
    try:
        text = message if isinstance(message, str) else _compact(message)
        size = len(text.encode())
    except (TypeError, ValueError):
        raise BadInput("message", "must be text or JSON") from None
    if size > MAX_MESSAGE:
        raise BadInput("message", f"has {size} bytes; a queue takes at most {MAX_MESSAGE}")
    return text


def _compact(message: Any) -> str:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _may_pass(error: AzureError) -> bool:
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        return error.status_code in (408, 429) or error.status_code >= 500
    return isinstance(error, (ServiceRequestError, ServiceResponseError))


def _told(error: AzureError) -> str:
    """The error without storage's own text, which may quote what a request was signed with."""
    code = getattr(error, "error_code", None) or type(error).__name__
    code = getattr(code, "value", code)  # the library's enumeration holds only the codes it knows
    status = getattr(error, "status_code", None)
    return f"storage answered {status} ({code})" if status else f"storage does not answer ({code})"
