"""POST /bulk/jobs: JSON lines in, JSON lines out.

The platform hands a whole body in and takes a whole answer, so it is read and carried out in parts: what is under
way at any moment is bounded, and so is the time.
"""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from shared.engine.admin import entity_tag
from shared.engine.bulk import Bulk, Order
from shared.engine.clock import Clock
from shared.errors import Fault, InvalidInput, TimerJobsError, TooLarge, Unavailable
from shared.giving_way import give_way
from shared.jobs.faults import read_model
from shared.jobs.fields import Model, check_job_id
from shared.jobs.identity import check_id
from shared.jobs.model import Job
from shared.web.exchange import (
    Request,
    Response,
    check_media_type,
    check_size,
    known_query,
    parse_json,
    problem,
    told_error,
)

MAX_BYTES = 16 * 1024 * 1024
MAX_LINES = 10_000
MEDIA_TYPES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines", "application/json")
# What is carried out at a time: new jobs of so many lines fill a transaction in each of 16 partitions.
PART_LINES = 1000
PART_BYTES = 4 * 1024 * 1024
MAX_ANSWER = 16 * 1024 * 1024  # bytes, beyond which no part is begun
MOST_FAULTS = 10  # told of a line
STOP = 150.0  # seconds after which no part is begun; what is under way then has 40 more
GIVE_UP = 190.0


class BulkLine(Model):
    """A line of the body of `POST /bulk/jobs`."""

    op: Literal["put", "delete", "suspend", "resume", "run"]
    id: Annotated[str, AfterValidator(check_job_id)] | None = None
    job: Any = None


@dataclass(slots=True)
class _Line:
    """A line by its number in the body, with the order that it is; or what is wrong with it."""

    number: int
    order: Order | None = None
    error: InvalidInput | TooLarge | None = None


class BulkRoute:
    """`/bulk/jobs`."""

    def __init__(
        self, bulk: Bulk, clock: Clock, max_line: int, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._bulk = bulk
        self._clock = clock
        self._max_line = max_line
        self._seconds = seconds

    async def carry_out(self, request: Request) -> Response:
        """Carries out each line, as its own request would be; ends before 200 seconds.

        An answer for each line, in order. If time runs out, a last one says from which line on nothing was done;
        lines before it whose outcome is not known say so.
        """
        known_query(request)
        check_size(request.body, MAX_BYTES)
        check_media_type(request, *MEDIA_TYPES)
        count = request.body.count(b"\n") + (not request.body.endswith(b"\n"))
        if count > MAX_LINES:
            raise TooLarge(f"the body has {count} lines; the limit is {MAX_LINES}")
        began = self._seconds()
        answer = bytearray()
        async for part in _parts(request.body, self._max_line):
            used = self._seconds() - began
            if used >= STOP or len(answer) >= MAX_ANSWER:
                why = "time is up" if used >= STOP else "the answer is full"
                answer += _text(
                    {"stoppedAt": part[0].number, "detail": f"{why}; nothing is done from this line on"}
                )
                break
            orders = [line.order for line in part if line.order]
            try:
                async with asyncio.timeout(GIVE_UP - used):
                    await self._bulk.carry_out(orders, self._clock())
            except TimeoutError:
                began = -math.inf
            for line in part:
                await give_way()
                answer += _text(_answer(line))
        return Response(status=200, body=bytes(answer), headers={"Content-Type": MEDIA_TYPES[0]})


async def _parts(body: bytes, max_line: int) -> AsyncIterator[list[_Line]]:
    """The lines but the blank ones, up to 1,000 and about 4 MiB at a time."""
    part: list[_Line] = []
    size = 0
    for number, text in enumerate(BytesIO(body), 1):
        if not text.strip():
            continue
        await give_way()
        part.append(_line(number, text.rstrip(b"\r\n"), max_line))
        size += len(text)
        if len(part) >= PART_LINES or size >= PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _line(number: int, text: bytes, max_line: int) -> _Line:
    try:
        if len(text) > max_line:
            raise TooLarge(f"the line is {len(text)} bytes long; the limit is {max_line}")
        return _Line(number, order=_order(parse_json(text)))
    except (InvalidInput, TooLarge) as error:
        return _Line(number, error=error)


def _order(value: Any) -> Order:
    """The operation in a line. Raises InvalidInput."""
    line, faults = read_model(BulkLine, value)
    if line is None:
        raise InvalidInput(faults)
    job_id, body = line.id, line.job
    if line.op == "put":
        if not isinstance(body, dict):
            raise InvalidInput([Fault("job", "is required" if body is None else "must be an object")])
        if job_id is None and body.get("id") is not None:
            try:
                job_id = check_id(body["id"])
            except InvalidInput as error:
                raise error.under("job") from None
        return Order("put", job_id, body)
    if body is not None:
        faults.append(Fault("job", f"does not go with {line.op}"))
    if job_id is None:
        faults.append(Fault("id", "is required"))
    if faults:
        raise InvalidInput(faults)
    return Order(line.op, job_id)


def _answer(line: _Line) -> dict[str, Any]:
    """What is answered to a line."""
    order = line.order
    if order is None:
        assert line.error
        return {"line": line.number} | _refusal(line.error)
    answer = {"line": line.number, "op": order.op, "id": order.job_id}
    if order.status:
        answer["status"] = order.status
        if isinstance(order.made, Job):
            return answer | {"etag": entity_tag(order.made)}
        return answer | ({"run": order.made.seq} if order.made else {})
    if order.error is None:
        return answer | _refusal(Unavailable("time ran out; it may have been carried out, or not"))
    if isinstance(order.error, InvalidInput):
        return answer | _refusal(order.error.under("job"))
    return answer | _refusal(told_error(order.error))


def _refusal(error: TimerJobsError) -> dict[str, Any]:
    body = problem(error).body
    if "errors" in body:
        body["errors"] = body["errors"][:MOST_FAULTS]
    return {"status": error.status, "problem": body}


def _text(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False).encode(errors="replace") + b"\n"
