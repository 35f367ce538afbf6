"""What tests of the engine and the API work with: a clock to set, a receiver of calls, a count of requests."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from aiohttp import web

from shared.engine.crew import Crew
from shared.jobs.model import Ended, Stretch
from shared.settings import Settings, read_settings
from shared.storage.history import read_past
from shared.storage.rows import job_range
from shared.web.api import respond
from shared.web.exchange import Request, Response
from shared.wiring import App, build
from tests.audit import audit
from tests.documented import hold_to_document
from tests.wire import Fate, Wire

NOON = datetime(2026, 9, 8, 12, 0, 0, tzinfo=UTC)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> datetime:
        """Moves the clock on by a timedelta's arguments."""
        self.now += timedelta(**by)
        return self.now


class RealClock(Clock):
    """This machine's clock, which nobody moves."""

    def __init__(self) -> None:
        pass

    @property
    def now(self) -> datetime:
        return datetime.now(UTC)

    @now.setter
    def now(self, now: datetime) -> None:
        raise AttributeError(f"the real clock cannot be set to {now}")


@dataclass(frozen=True, slots=True)
class Hit:
    """A call that a receiver got."""

    at: datetime
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def key(self) -> str:
        """Its idempotency key."""
        return self.headers["Idempotency-Key"]

    @property
    def scheduled(self) -> datetime:
        """The scheduled time it is for."""
        return datetime.fromisoformat(self.headers["x-timerjobs-scheduled-time"])

    @property
    def job(self) -> str:
        """The job it is for."""
        return self.headers["x-timerjobs-job-id"]

    @property
    def run(self) -> int:
        """The number of the run it is for."""
        return int(self.headers["x-timerjobs-run"])

    @property
    def start(self) -> str:
        """When its run started, as its body says if it is `SAYS_START`."""
        start: str = json.loads(self.body)["start"]
        return start


@dataclass
class Receiver:
    """An HTTP endpoint that keeps what it is sent. `answer` decides status and body; it may wait.

    `url` is the first of its `urls`, one for each port.
    """

    urls: list[str] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    answer: Callable[[Hit], Awaitable[web.Response]] | None = None

    @property
    def url(self) -> str:
        return self.urls[0]

    async def handle(self, request: web.Request) -> web.Response:
        hit = Hit(datetime.now(UTC), request.method, request.path_qs, dict(request.headers), await request.read())
        self.hits.append(hit)
        return await self.answer(hit) if self.answer else web.Response(text="ok")


@asynccontextmanager
async def receiving(ports: int = 1) -> AsyncIterator[Receiver]:
    """A receiver on so many ports of this machine."""
    receiver = Receiver()
    server = web.Application(client_max_size=10 * 1024 * 1024)
    server.router.add_route("*", "/{tail:.*}", receiver.handle)
    runner = web.AppRunner(server, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    for _ in range(ports):
        await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.urls = [f"http://127.0.0.1:{address[1]}/hook" for address in runner.addresses]
    try:
        yield receiver
    finally:
        await runner.cleanup()


def settings_for(connection: str, **env: str) -> Settings:
    """Settings with a table and a queue that no other test uses."""
    name = uuid4().hex[:16]
    return read_settings(
        {
            "AzureWebJobsStorage": connection,
            "TABLE_NAME": f"t{name}",
            "QUEUE_NAME": f"q{name}",
            "PARTITIONS": "2",
            "HORIZON": "PT15M",
            "OUTBOUND_ALLOW": '["127.0.0.0/8"]',
        }
        | env
    )


@dataclass
class Bench:
    """An app on a table of its own, with a settable clock and a count of storage requests."""

    app: App
    clock: Clock
    wire: Wire

    @property
    def requests(self) -> list[str]:
        """The storage requests sent so far."""
        return self.wire.requests

    @property
    def partitions(self) -> list[str]:
        return self.app.store.jobs.partitions

    async def create(self, **body: Any) -> Any:
        """POST /jobs, which must succeed; the job as answered."""
        response = await self.call("create", body=body)
        assert response.status == 201, response.body
        return response.body

    async def call(
        self,
        route: str,
        of: str = "jobs",
        *,
        body: Any = None,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        **parameters: str,
    ) -> Response:
        """The answer of a route of jobs, or of runs."""
        request = Request(
            url="http://localhost/api/jobs" + (f"/{parameters['id']}" if "id" in parameters else ""),
            headers={"content-type": "application/json"} | dict(headers or {}),
            route=parameters,
            query=query or {},
            body=raw if raw is not None else b"" if body is None else json.dumps(body).encode(),
        )
        operation = getattr(getattr(self.app.api, of), route)
        return hold_to_document(self.app.api, operation, await respond(operation, request))

    async def dispatch(self, job_id: str | None = None) -> None:
        """A whole pass in each partition (or the job's), as of the clock."""
        for partition in self.partitions if job_id is None else [self.app.store.jobs.partition(job_id)]:
            await self.app.dispatcher.fire_due(partition)

    async def fire_only(self, job_id: str) -> None:
        """Fires what is due and starts nothing, as a pass that dies right after its transactions would."""
        partition = self.app.store.jobs.partition(job_id)
        crew = Abandoned(partition, self.app.workshop, self.clock())
        await self.app.dispatcher.round(partition, self.clock(), crew)

    @contextmanager
    def full(self) -> Iterator[None]:
        """A process that has no slot free: what it fires waits for an executor."""
        slots = self.app.workshop.slots
        taken = [f"another-{number}" for number in range(slots.free)]
        for job_id in taken:
            slots.add(job_id)
        yield
        for job_id in taken:
            slots.give(job_id)

    async def take_runs(self) -> None:
        """A `runs` ticket in each partition."""
        for partition in self.partitions:
            await self.app.dispatcher.take_runs(partition)

    async def rows(self, kind: str) -> list[Any]:
        """All rows of a kind: job, timer, run, past."""
        found = []
        for partition in self.partitions:
            found += await self.app.store.table.scan(partition, f"{kind}:", f"{kind};")
        return found

    async def history(self, job_id: str) -> list[Ended | Stretch]:
        """What is recorded of the job's past, newest first."""
        rows = await self.app.store.table.scan(self.app.store.jobs.partition(job_id), *job_range("past", job_id))
        records = [read_past(row) for row in rows if row["kind"] != "mark"]
        return sorted(records, key=lambda record: -record.seq)

    async def runs(self, job_id: str) -> list[Any]:
        """GET /jobs/{id}/runs."""
        response = await self.call("list", "runs", id=job_id)
        assert response.status == 200, response.body
        value: list[Any] = response.body["value"]
        return value


class Abandoned(Crew):
    """The crew of a process that dies before it starts anything."""

    def start(self, run: Any) -> None:
        self._shop.slots.give(run.job_id)


@asynccontextmanager
async def bench(connection: str, clock: Clock | None = None, **env: str) -> AsyncIterator[Bench]:
    """A bench on this storage, its table audited when the test is done with it."""
    async with process(settings_for(connection, **env), clock or Clock()) as at:
        yield at
        at.wire.hold = None
        at.wire.fate = lambda line: Fate.DONE
        at.wire.lose_answer = lambda line: False
        assert await audit(at.app.store) == []


@asynccontextmanager
async def process(settings: Settings, clock: Clock) -> AsyncIterator[Bench]:
    """A process of the app on the table that these settings name; any number may be there."""
    wire = Wire()
    app = await build(settings, clock=clock, transport=wire.transport)
    wire.requests.clear()
    try:
        yield Bench(app, clock, wire)
    finally:
        await app.close()


SAYS_START = {"start": "@trigger().startTime"}


def http_job(uri: str, every: int = 10, start: datetime | None = None, **more: Any) -> dict[str, Any]:
    """A job that calls `uri` every so many seconds, once each time, and says when the run started."""
    recurrence: dict[str, Any] = {"frequency": "Second", "interval": every}
    if start:
        recurrence["startTime"] = start.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "trigger": {"type": "Recurrence", "recurrence": recurrence},
        "action": {
            "type": "Http",
            "inputs": {"method": "POST", "uri": uri, "body": SAYS_START, "retryPolicy": {"type": "none"}},
        },
    } | more


async def until(condition: Callable[[], Any], seconds: float = 30) -> None:
    """Waits for a condition. Fails after a long time, which is no measure of anything."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "waited in vain"
        await asyncio.sleep(0.02)
