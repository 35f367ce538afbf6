"""GET /jobs/{id}/occurrences: the next ones of a job as it stands."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.harness import NOON, Bench, http_job
from tests.web.support import NOON_TEXT, ask, daily, got, hourly, valid

NOWHERE = "http://127.0.0.1:9/"


async def occurrences(at: Bench, **query: str) -> list[Any]:
    response = await ask(at, "occurrences", job="a", query=query)
    assert response.status == 200, response.body
    assert response.body.keys() == {"value"}
    value: list[Any] = response.body["value"]
    return value


async def scheduled(at: Bench, **query: str) -> list[str]:
    return [each["scheduledTime"] for each in await occurrences(at, **query)]


def window(**trigger: Any) -> dict[str, Any]:
    recurrence = {"frequency": "Hour", "interval": 1, "startTime": "2026-09-08T10:00:00Z"}
    return hourly(trigger={"type": "SlidingWindow", "recurrence": recurrence} | trigger)


async def test_ten_are_shown_unless_another_number_is_asked_for(at: Bench) -> None:
    await at.create(id="a", **hourly())
    ten = await scheduled(at)
    assert ten[:2] == [NOON_TEXT, "2026-09-08T13:00:00Z"]
    assert len(ten) == 10
    for count in (1, 2, 10):
        assert await scheduled(at, count=str(count)) == ten[:count]
    assert len(await scheduled(at, count="1000")) == 1000


async def test_each_holds_what_the_contract_names_and_no_more(at: Bench) -> None:
    await at.create(id="a", **daily(timeZone="Tokyo Standard Time", startTime="2026-09-09T09:00:00"))
    assert await occurrences(at, count="1") == [
        {
            "scheduledTime": "2026-09-09T00:00:00Z",
            "dueTime": "2026-09-09T00:00:00Z",
            "localTime": "2026-09-09T09:00:00+09:00",
        }
    ]


async def test_a_window_has_its_bounds_and_is_due_after_its_delay(at: Bench) -> None:
    await at.create(id="a", **window(inputs={"delay": "PT90M"}))
    assert (await occurrences(at, count="2"))[1] == {
        "scheduledTime": "2026-09-08T11:00:00Z",
        "dueTime": "2026-09-08T12:30:00Z",
        "localTime": "2026-09-08T11:00:00+00:00",
        "windowStartTime": "2026-09-08T11:00:00Z",
        "windowEndTime": "2026-09-08T12:00:00Z",
    }


async def test_windows_begin_with_the_first_that_was_not_dispatched(at: Bench) -> None:
    await at.create(id="a", **window())
    assert (await scheduled(at, count="3"))[0] == "2026-09-08T10:00:00Z"
    await at.fire_only("a")
    assert await scheduled(at, count="1") == [(await got(at, "a"))["nextOccurrence"]]


async def test_jitter_moves_the_due_time_by_the_same_share_each_time(at: Bench) -> None:
    await at.create(id="a", **hourly(trigger=hourly()["trigger"] | {"jitter": "PT30M"}))
    shares = set()
    for each in await occurrences(at):
        share = datetime.fromisoformat(each["dueTime"]) - datetime.fromisoformat(each["scheduledTime"])
        shares.add(share)
        assert each["scheduledTime"].endswith(":00:00Z")
    assert len(shares) == 1
    assert timedelta(0) < shares.pop() <= timedelta(minutes=30)


async def test_jitter_stays_short_of_the_next_occurrence(at: Bench) -> None:
    trigger = hourly()["trigger"] | {"jitter": "PT24H"}
    await at.create(id="a", **hourly(trigger=trigger))
    for each in await occurrences(at):
        late = datetime.fromisoformat(each["dueTime"]) - datetime.fromisoformat(each["scheduledTime"])
        assert timedelta(0) <= late < timedelta(hours=1)


async def test_they_go_on_from_what_was_fired(at: Bench) -> None:
    await at.create(id="a", **hourly())
    await at.fire_only("a")
    assert (await scheduled(at))[0] == (await got(at, "a"))["nextOccurrence"] == "2026-09-08T13:00:00Z"


async def test_no_more_are_shown_than_the_jobs_count_leaves(at: Bench) -> None:
    body = http_job(NOWHERE)
    body["trigger"]["recurrence"]["count"] = 3
    await at.create(id="a", **body)
    whole = await scheduled(at)
    assert len(whole) == 3
    assert await scheduled(at, count="2") == whole[:2]
    await at.fire_only("a")
    assert await scheduled(at) == whole[1:]
    await ask(at, "run_now", job="a")
    assert await scheduled(at) == whole[1:]


async def test_none_are_shown_beyond_the_end(at: Bench) -> None:
    await at.create(id="a", **daily(endTime="2026-09-10T12:00:00Z"))
    assert await scheduled(at) == [NOON_TEXT, "2026-09-09T12:00:00Z", "2026-09-10T12:00:00Z"]


@pytest.mark.parametrize("run_at", [None, "2020-01-01T00:00:00Z", "2026-12-24T18:00:00Z"])
async def test_once_has_one_until_it_was_fired(at: Bench, run_at: str | None) -> None:
    trigger = {"type": "Once"} | ({"runAt": run_at} if run_at else {})
    await at.create(id="a", **valid(trigger=trigger, deleteAfter="P1D"))
    coming = run_at if run_at and run_at > NOON_TEXT else NOON_TEXT
    assert await scheduled(at) == [coming]
    at.clock.now = max(NOON, datetime.fromisoformat(coming))
    await at.fire_only("a")
    assert (await got(at, "a"))["state"] == "Completed"
    assert await occurrences(at) == []


async def test_a_suspended_job_has_none_until_it_is_resumed(at: Bench) -> None:
    await at.create(id="a", **daily(startTime="2026-09-10T12:00:00Z") | {"state": "Suspended"})
    assert await occurrences(at) == []
    await ask(at, "resume", job="a")
    assert await scheduled(at, count="1") == ["2026-09-10T12:00:00Z"]
    await ask(at, "suspend", job="a")
    assert await occurrences(at) == []


async def test_a_clock_change_is_noted(at: Bench) -> None:
    schedule = {"hours": [2], "minutes": [30]}
    await at.create(
        id="a", **daily(timeZone="America/Los_Angeles", startTime="2027-03-13T00:00:00", schedule=schedule)
    )
    three = await occurrences(at, count="3")
    assert [each["localTime"][11:16] for each in three] == ["02:30", "03:30", "02:30"]
    assert ["note" in each for each in three] == [False, True, False]


@pytest.mark.parametrize(
    "body",
    [
        hourly(),
        window(inputs={"delay": "PT1H"}),
        valid(),
        daily(frequency="Month", startTime="2026-01-31T08:00:00Z"),
    ],
)
async def test_they_are_those_of_the_preview(at: Bench, body: Any) -> None:
    said = await ask(at, "preview", {"trigger": body["trigger"], "count": 25})
    await at.create(id="a", **body)
    assert await occurrences(at, count="25") == said.body["occurrences"]


async def test_one_request_to_storage_is_enough(at: Bench) -> None:
    await at.create(id="a", **hourly())
    at.requests.clear()
    await occurrences(at, count="1000")
    assert len(at.requests) == 1
    assert at.requests[0].startswith("GET ")
