"""GET /health: whether the scheduler does its work, by storage, detection and overdue timers."""

import asyncio
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shared.engine.clock import Clock
from shared.jobs.times import floor_second
from shared.storage.jobs import Jobs
from shared.storage.ledger import Ledger
from shared.storage.table import StoreFailed
from shared.storage.timers import Timers
from shared.web.exchange import Request, Response

CACHED = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What counts as healthy, and the key that shows the figures ('': nobody sees them)."""

    detection_age: timedelta
    overdue: timedelta
    key: str


class HealthRoute:
    """`/health`. Anonymous, so it is answered from memory for 10 seconds."""

    def __init__(self, jobs: Jobs, timers: Timers, ledger: Ledger, thresholds: Thresholds, clock: Clock) -> None:
        self._jobs = jobs
        self._timers = timers
        self._ledger = ledger
        self._thresholds = thresholds
        self._clock = clock
        self._built_at = clock()
        self._read_at: datetime | None = None
        self._figures: Mapping[str, Any] = {}
        self._lock = asyncio.Lock()

    async def health(self, request: Request) -> Response:
        """200 or 503; the figures only with the key, in `x-functions-key` or `code`."""
        async with self._lock:
            now = self._clock()
            if self._read_at is None or not timedelta(0) <= now - self._read_at < CACHED:
                self._figures = await self._measure(now)
                self._read_at = now
        healthy = not self._figures["problems"]
        body: dict[str, Any] = {"status": "Healthy" if healthy else "Unhealthy"}
        given = request.headers.get("x-functions-key") or request.query.get("code") or ""
        if self._thresholds.key and hmac.compare_digest(
            given.encode(errors="replace"), self._thresholds.key.encode()
        ):
            body |= self._figures
        return Response(status=200 if healthy else 503, body=body)

    async def _measure(self, now: datetime) -> dict[str, Any]:
        """The figures. Where detection has not ended a cycle yet, its age counts from the start of the process."""
        try:
            progress = await self._ledger.progress()
            before = floor_second(now)
            oldest = await asyncio.gather(*(self._timers.oldest(p, before=before) for p in self._jobs.partitions))
        except StoreFailed:
            return {"problems": ["storage does not answer"]}
        overdue = max((now - due for due in oldest if due), default=timedelta(0))
        age = now - (progress.cycle_ended if progress else self._built_at)
        problems = []
        if age > self._thresholds.detection_age:
            problems.append("detection has not ended a cycle for too long")
        if overdue > self._thresholds.overdue:
            problems.append("a timer is overdue for too long")
        return {
            "problems": problems,
            "detectionAgeSeconds": age.total_seconds(),
            "oldestOverdueSeconds": overdue.total_seconds(),
            "newerRows": progress.newer if progress else 0,
        }
