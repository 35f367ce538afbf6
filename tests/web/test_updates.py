"""What an update does to a schedule: rules L4 to L6."""

from datetime import timedelta
from typing import Any

import pytest

from tests.harness import NOON, Bench, Receiver, http_job
from tests.web.support import FACTS, NOON_TEXT, daily, fields, got, hourly, put, put_in, tag_of

WRITTEN_OTHERWISE = {
    "order-of-hours": {"schedule": {"hours": [14, 2], "minutes": [30]}},
    "hour-twice": {"schedule": {"hours": [2, 14, 2], "minutes": [30]}},
    "hours-as-text": {"schedule": {"hours": ["2", "14"], "minutes": "30"}},
    "minutes-as-scalar": {"schedule": {"hours": [2, 14], "minutes": 30}},
    "interval-as-text": {"interval": "1"},
    "frequency-in-lower-case": {"frequency": "day"},
    "IANA-name-of-the-zone": {"timeZone": "America/Los_Angeles"},
    "zone-in-lower-case": {"timeZone": "pacific standard time"},
    "start-without-seconds": {"startTime": "2026-09-01T08:00"},
    "start-with-a-fraction": {"startTime": "2026-09-01T08:00:00.0"},
    "null-for-absent": {"endTime": None},
}


def at_two_and_fourteen(**recurrence: Any) -> dict[str, Any]:
    return daily(
        **{
            "timeZone": "Pacific Standard Time",
            "startTime": "2026-09-01T08:00:00",
            "schedule": {"hours": [2, 14], "minutes": [30]},
        }
        | recurrence
    )


@pytest.mark.parametrize("otherwise", WRITTEN_OTHERWISE.values(), ids=WRITTEN_OTHERWISE)
async def test_the_same_recurrence_written_otherwise_does_not_reset_it(at: Bench, otherwise: Any) -> None:
    """A reset would discard what is already due: the clock stands behind an occurrence not yet fired."""
    made = await put(at, "a", at_two_and_fourteen())
    assert made.body["nextOccurrence"] == "2026-09-08T21:30:00Z"
    at.clock.advance(hours=9, minutes=31)
    changed = await put(at, "a", at_two_and_fourteen(**otherwise))
    assert changed.status == 200
    assert {name: changed.body[name] for name in FACTS} == {name: made.body[name] for name in FACTS}
    assert tag_of(changed).split(".")[0] == tag_of(made).split(".")[0]


@pytest.mark.parametrize(
    "change",
    [
        {"description": "other"},
        {"tags": {"a": "b"}},
        {"historyLimit": 5},
        {"action": put_in("action.inputs.method", "PUT")["action"]},
        {"trigger": hourly()["trigger"] | {"maxLateness": "PT5M"}},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_a_job_whose_recurrence_stays_does_not_run_again_at_once(
    at: Bench, target: Receiver, change: Any
) -> None:
    await at.create(id="a", **hourly())
    await at.dispatch("a")
    at.clock.advance(minutes=10)
    changed = await put(at, "a", hourly(**change))
    assert changed.status == 200
    assert changed.body["nextOccurrence"] == "2026-09-08T13:00:00Z"
    assert changed.body["fired"] == 1


async def test_a_changed_recurrence_starts_anew_and_runs_at_once(at: Bench, target: Receiver) -> None:
    made = await put(at, "a", http_job(target.url, every=3600))
    await at.dispatch("a")
    at.clock.advance(minutes=10)
    changed = await put(at, "a", http_job(target.url, every=1800))
    assert changed.status == 200
    assert changed.body["nextOccurrence"] == "2026-09-08T12:10:00Z"
    assert changed.body["createdAt"] == NOON_TEXT
    assert tag_of(changed).split(".")[0] != tag_of(made).split(".")[0]
    await at.dispatch("a")
    after = await got(at, "a")
    assert (after["fired"], after["nextOccurrence"]) == (2, "2026-09-08T12:40:00Z")
    assert [hit.scheduled for hit in target.hits] == [NOON, NOON + timedelta(minutes=10)]
    assert len({hit.key for hit in target.hits}) == 2


async def test_a_changed_recurrence_told_to_skip_its_initial_run_does_not_run_at_once(at: Bench) -> None:
    await at.create(id="a", **hourly())
    await at.dispatch("a")
    at.clock.advance(minutes=10)
    body = hourly()
    body["trigger"] |= {"recurrence": {"frequency": "Hour", "interval": 2}, "skipInitialRun": True}
    changed = await put(at, "a", body)
    assert changed.body["nextOccurrence"] == "2026-09-08T14:10:00Z"
    assert changed.body["warnings"] == []


async def test_a_changed_recurrence_fires_only_points_later_than_the_last_one_fired(
    at: Bench, target: Receiver
) -> None:
    await at.create(id="a", **http_job(target.url, every=600, start=NOON))
    await at.dispatch("a")
    same_second = await put(at, "a", http_job(target.url, every=300, start=NOON))
    assert same_second.body["nextOccurrence"] == "2026-09-08T12:05:00Z"
    without_start = await put(at, "a", http_job(target.url, every=60))
    assert without_start.body["nextOccurrence"] == "2026-09-08T12:01:00Z"
    assert without_start.body["warnings"] == []


async def test_a_changed_recurrence_discards_points_before_the_update(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=600, start=NOON + timedelta(minutes=5)))
    at.clock.advance(minutes=17)
    changed = await put(at, "a", http_job(target.url, every=240, start=NOON))
    assert changed.body["nextOccurrence"] == "2026-09-08T12:20:00Z"


async def test_count_begins_anew_with_a_changed_recurrence_and_revives_a_completed_job(
    at: Bench, target: Receiver
) -> None:
    def counted(count: int) -> dict[str, Any]:
        body = http_job(target.url)
        body["trigger"]["recurrence"]["count"] = count
        return body

    await at.create(id="a", **counted(1))
    await at.dispatch("a")
    assert (await got(at, "a"))["state"] == "Completed"
    at.clock.advance(seconds=3)
    unchanged = await put(at, "a", counted(1))
    assert (unchanged.body["state"], unchanged.body["nextOccurrence"]) == ("Completed", None)
    revived = await put(at, "a", counted(2))
    assert (revived.body["state"], revived.body["nextOccurrence"]) == ("Enabled", "2026-09-08T12:00:03Z")
    for _ in range(4):
        await at.dispatch("a")
        at.clock.advance(seconds=10)
    done = await got(at, "a")
    assert (done["state"], done["fired"], len(target.hits)) == ("Completed", 3, 3)


async def test_a_parameter_resets_the_schedule_only_where_its_value_differs(at: Bench) -> None:
    def every(text: str, **parameters: Any) -> dict[str, Any]:
        recurrence = {"frequency": "Minute", "interval": text}
        return hourly(trigger={"type": "Recurrence", "recurrence": recurrence}, parameters=parameters)

    made = await put(at, "a", every("@parameters('n')", n=10))
    assert made.body["evaluatedRecurrence"]["interval"] == 10
    assert made.body["trigger"]["recurrence"]["interval"] == "@parameters('n')"
    await at.dispatch("a")
    at.clock.advance(minutes=1)
    same = await put(at, "a", every("@parameters('m')", m="10", other=5))
    assert same.body["nextOccurrence"] == "2026-09-08T12:10:00Z"
    changed = await put(at, "a", every("@parameters('m')", m=9))
    assert changed.body["nextOccurrence"] == "2026-09-08T12:01:00Z"


async def test_an_end_that_has_passed_does_not_fail_an_update_that_leaves_it(at: Bench) -> None:
    def until(end: str, **more: Any) -> dict[str, Any]:
        return daily(endTime=end) | more

    await put(at, "a", until("2026-09-09T00:00:00Z"))
    await at.dispatch("a")
    assert (await got(at, "a"))["state"] == "Completed"
    at.clock.advance(days=30)
    left = await put(at, "a", until("2026-09-09T00:00:00Z", description="other"))
    assert left.status == 200
    assert left.body["state"] == "Completed"
    moved = await put(at, "a", until("2026-09-10T00:00:00Z"))
    assert (moved.status, fields(moved)) == (400, ["trigger.recurrence.endTime"])
