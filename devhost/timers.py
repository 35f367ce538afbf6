"""Timer triggers: NCRONTAB schedules in UTC."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

from azure.functions.timer import TimerRequest
from croniter import croniter

from devhost.errors import DevhostError
from devhost.functions import TimerFunction
from devhost.stopping import stops_within

log = logging.getLogger("devhost.timers")

LONGEST_SLEEP = 60.0  # seconds; so that a clock that was set is noticed


def next_tick(schedule: str, after: datetime) -> datetime:
    """The first instant after `after` that an NCRONTAB schedule names.

    Six fields, seconds first, or five without seconds; all fields must fit, days of month and of week both.
    Raises ValueError for a schedule that is wrong or never comes.
    """
    fields = len(schedule.split())
    if fields not in (5, 6):
        raise ValueError(f"{schedule!r} has {fields} fields, not 5 or 6")
    found = croniter(schedule, after, second_at_beginning=True, day_or=False).get_next(datetime)
    return datetime.fromtimestamp(found.timestamp(), UTC)


class TimerListener:
    """Runs one function by its schedule. A tick that comes while the last one still runs is left out."""

    def __init__(self, function: TimerFunction) -> None:
        """Raises DevhostError if the schedule is wrong."""
        self._function = function
        try:
            next_tick(function.schedule, datetime.now(UTC))
        except ValueError as error:
            raise DevhostError(f"function {function.name} has a wrong schedule: {error}") from None

    async def run(self, stop: asyncio.Event) -> None:
        """Tick until `stop` is set, and return when the last tick has ended."""
        if self._function.run_on_startup:
            await self._tick()
        due = datetime.now(UTC)
        while not stop.is_set():
            due = next_tick(self._function.schedule, max(due, datetime.now(UTC)))
            if await _reaches(due, stop):
                await self._tick()

    async def _tick(self) -> None:
        try:
            await self._function.invoke(TimerRequest(past_due=False))
        except Exception:
            log.exception("Function %s failed", self._function.name)


async def _reaches(due: datetime, stop: asyncio.Event) -> bool:
    while (left := (due - datetime.now(UTC)).total_seconds()) > 0:
        if await stops_within(stop, min(left, LONGEST_SLEEP)):
            return False
    return True
