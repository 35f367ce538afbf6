"""Occurrences to come, as JSON."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from shared.giving_way import give_way
from shared.jobs.model import Job, State
from shared.jobs.times import json_text
from shared.jobs.transitions import timing_of
from shared.recurrence import Schedule


async def points_from(schedule: Schedule, first: datetime | None, count: int) -> list[datetime]:
    """Up to `count` scheduled times from a first one on."""
    points: list[datetime] = []
    point = first
    while point is not None and len(points) < count:
        await give_way()
        points.append(point)
        point = schedule.after(point)
    return points


def occurrence_view(schedule: Schedule, point: datetime, due: Callable[[datetime], datetime]) -> dict[str, Any]:
    """One occurrence: nominal, due and local time, a sliding window's bounds, and a note at a gap or fold."""
    item = {
        "scheduledTime": json_text(point),
        "dueTime": json_text(due(point)),
        "localTime": schedule.local(point).isoformat(),
    }
    if window := schedule.window(point):
        item |= {"windowStartTime": json_text(window[0]), "windowEndTime": json_text(window[1])}
    note = schedule.note(point)
    return item | ({"note": note} if note else {})


async def upcoming(job: Job, schedule: Schedule, count: int) -> list[dict[str, Any]]:
    """The job's next occurrences, at most `count` and what its own count leaves; none unless it is Enabled."""
    if job.state is not State.ENABLED or job.pending is None:
        return []
    timing = timing_of(job)
    if schedule.count is not None:
        count = min(count, schedule.count - (job.core.counters.fired - job.core.counters.base))
    points = await points_from(schedule, job.pending.scheduled, count)
    return [occurrence_view(schedule, point, timing.due) for point in points]
