"""Jobs whose targets never answer do not hold up the jobs beside them, and cost them no occurrence."""

from datetime import timedelta

import pytest

from shared.jobs.model import Ended, Status, Stretch
from tests.audit import audit
from tests.harness import Receiver, bench, until
from tests.stories.host import HostProcess
from tests.stories.neighbours import SCENES, Scene, hanging, neighbours, recorded

# An occurrence is Missed once the next one is due: on a busy machine, not before it has had this long.
JOBS, EVERY = 100, 15
HELD = 10  # runs that hold their messages until they end would silence a process that has so many
ORDINARY = ("10 hanging, 40 slots", "100 at one host")
LONG = ("1 hanging", "10 hanging", "100 hanging", "3 x 100 actions")


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
    env = {"PARTITIONS": "16", "DETECTION_PERIOD": "PT1M", "LOCK_DURATION": "PT1M", **scene.env}
    host = HostProcess(storage, **env)
    async with bench(storage, None, **host.env) as at, hanging(scene.ports) as (silent, released):
        try:
            await host.start()
            await host.put_all(scene.jobs(silent.urls))
            await until(lambda: len(silent.hits) >= HELD, 120)
            beside = neighbours(target.url, JOBS, EVERY, count)
            await host.put_all(beside)
            await until(lambda: len({hit.key for hit in target.hits}) >= JOBS * count, 120)
            histories = await recorded(at, beside, count)
            assert all(job["lastRun"] is None for job in await host.jobs("hanging-")), "a hanging run has ended"
            released.set()
            assert await host.stop() == 0
        finally:
            await host.kill()
        assert await audit(at.app.store) == []
    assert len(target.hits) == JOBS * count, "an action was repeated"
    for history in histories.values():
        assert_all_called(history, count)


def assert_all_called(history: list[Ended | Stretch], count: int) -> None:
    """So many occurrences succeeded, one after the other, and none was left out."""
    times = sorted(record.scheduled for record in history if isinstance(record, Ended))
    assert {record.status for record in history} == {Status.SUCCEEDED}, history
    assert times == [times[0] + timedelta(seconds=EVERY * n) for n in range(count)]
