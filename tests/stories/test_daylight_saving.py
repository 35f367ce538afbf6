"""The two daily jobs of the recurrence guide, dispatched minute by minute through both changes of 2019."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.harness import Clock, Receiver, bench, http_job

# Central time. Scheduled times (UTC) on the day before a change, on its day, and on the day after.
SPRING = {
    "01:30": ["03-09T07:30", "03-10T07:30", "03-11T06:30"],
    "02:30": ["03-09T08:30", "03-10T08:30", "03-11T07:30"],
}
AUTUMN = {
    "01:30": ["11-02T06:30", "11-03T06:30", "11-04T07:30"],
    "02:30": ["11-02T07:30", "11-03T08:30", "11-04T08:30"],
}
CHANGES = [pytest.param("2019-03-09", SPRING, id="spring"), pytest.param("2019-11-02", AUTUMN, id="autumn")]


def daily(uri: str, start: str) -> dict[str, Any]:
    recurrence = {"frequency": "Day", "interval": 1, "startTime": start, "timeZone": "Central Standard Time"}
    return http_job(uri) | {"trigger": {"type": "Recurrence", "recurrence": recurrence}}


@pytest.mark.parametrize(
    ("day", "expected"), [("2019-03-09", SPRING), ("2019-11-02", AUTUMN)], ids=["spring", "autumn"]
)
async def test_each_job_fires_once_a_day_at_its_local_time(
    storage: str, target: Receiver, day: str, expected: dict[str, list[str]]
) -> None:
    first = datetime.fromisoformat(day).replace(tzinfo=UTC)
    async with bench(storage, Clock(first), PARTITIONS="1") as at:
        for wall in expected:
            await at.create(id=wall.replace(":", "-"), **daily(target.url, f"{day}T{wall}:00"))
        for days in range(3):
            for minute in range(6 * 60, 9 * 60):  # from 00:00 or 01:00 to 03:00 or 04:00 in Chicago
                at.clock.now = first + timedelta(days=days, minutes=minute)
                await at.dispatch()
    for wall, times in expected.items():
        fired = [hit.scheduled for hit in target.hits if hit.job == wall.replace(":", "-")]
        assert fired == [datetime.fromisoformat(f"2019-{time}").replace(tzinfo=UTC) for time in times]
