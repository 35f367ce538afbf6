"""Jobs whose targets never answer do not hold up the jobs beside them, and cost them no occurrence."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.audit import audit
from tests.harness import Receiver, bench, until
from tests.stories.host import UNDER_WAY, HostProcess
from tests.stories.neighbours import SCENES, Scene, hanging, neighbours

# An occurrence is Missed once the next one is due: on a busy machine, not before it has had this long.
JOBS, EVERY = 100, 15
HELD = 10  # runs that hold their messages until they end would silence a process that has so many
ORDINARY = ("10 hanging, 40 slots", "3 x 100 actions", "100 at one host")
LONG = ("1 hanging", "10 hanging", "100 hanging")


@pytest.mark.parametrize(
    ("scene", "count"),
    [
        *(pytest.param(SCENES[name], 2, id=name) for name in ORDINARY),
        *(pytest.param(SCENES[name], 4, id=name, marks=pytest.mark.soak) for name in LONG),
    ],
)
async def test_every_occurrence_of_a_neighbour_is_called_while_the_calls_of_others_hang(
    storage: str, target: Receiver, scene: Scene, count: int
) -> None:
    async with hanging(scene.ports) as (silent, released):
        host = HostProcess(storage, PARTITIONS="16", DETECTION_PERIOD="PT1M", LOCK_DURATION="PT1M", **scene.env)
        try:
            await host.start()
            jobs = scene.jobs(silent.urls)
            await host.put_all(jobs)
            await until(lambda: len(silent.hits) >= HELD, 120)
            beside = neighbours(target.url, JOBS, EVERY, count)
            await host.put_all(beside)
            await until(lambda: len({hit.key for hit in target.hits}) >= JOBS * count, 120)
            histories = await host.settled(list(beside))
            for job_id in jobs:
                _, runs = await host.call("GET", f"/jobs/{job_id}/runs")
                assert not any("startTime" in run and run["status"] not in UNDER_WAY for run in runs["value"])
            released.set()
            assert await host.stop() == 0
        finally:
            await host.kill()
    assert len(target.hits) == JOBS * count, "an action was repeated"
    for history in histories.values():
        assert_all_called(history, count)
    async with bench(storage, None, **host.env) as at:
        assert await audit(at.app.store) == []


def assert_all_called(history: list[Any], count: int) -> None:
    """So many occurrences succeeded, one after the other, and none was left out."""
    assert {record["status"] for record in history} == {"Succeeded"}, history
    times = sorted(datetime.fromisoformat(record["scheduledTime"]) for record in history)
    assert times == [times[0] + timedelta(seconds=EVERY * n) for n in range(count)]
