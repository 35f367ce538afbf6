"""What is told of runs beside their records."""

from datetime import timedelta

import pytest

from shared.engine.events import Events
from shared.jobs.model import Ended, Status
from tests.harness import NOON


async def test_a_failed_run_is_logged_for_the_alerts_and_others_are_not(caplog: pytest.LogCaptureFixture) -> None:
    records = [
        Ended(
            seq=seq,
            status=status,
            scheduled=NOON,
            started=NOON,
            ended=NOON + timedelta(seconds=1),
            attempts=1,
            reason="it answered 500",
        )
        for seq, status in enumerate(
            (Status.SUCCEEDED, Status.FAILED, Status.TIMED_OUT, Status.CANCELLED), start=1
        )
    ]
    await Events(None).ended("nightly", "stamp", records)
    assert [record.getMessage() for record in caplog.records] == [
        "a run has failed: job nightly, run 2: Failed: it answered 500",
        "a run has failed: job nightly, run 3: TimedOut: it answered 500",
    ]
