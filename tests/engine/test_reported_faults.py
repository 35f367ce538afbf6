"""Faults that reports of other schedulers led to, in the order in which they were filed: F1 to F13.

Each is the case as it was reported; further cases of its kind are tested where that kind belongs.
"""

import asyncio
import json
import random
from base64 import b64encode
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.errors import Misconfigured
from shared.settings import read_settings
from tests.engine.actions.support import raw_server
from tests.engine.test_gate import Slow, sliding, started
from tests.engine.test_start_times import agree, once
from tests.engine.test_zone_data import ALMATY, MONTHS, instant, job_by, lived, windows_of
from tests.harness import NOON, Bench, Receiver, bench, http_job, until
from tests.web.support import ask

DOCS = Path(__file__).parents[2] / "docs"
DAILY = {"frequency": "Day", "interval": 1, "schedule": {"hours": [8], "minutes": [0]}}


def of_rule(target: Receiver, recurrence: dict[str, Any], **more: Any) -> dict[str, Any]:
    return http_job(target.url) | {"trigger": {"type": "Recurrence", "recurrence": recurrence}} | more


async def put(at: Bench, body: dict[str, Any]) -> Any:
    response = await at.call("put", id="a", body=body)
    assert response.status in (200, 201), response.body
    return response.body


async def test_f1_an_upgrade_of_zone_data_drops_no_window(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        body = job_by(target, "Africa/Cairo", "2023-03-01T00:00:00", "Month", "SlidingWindow")
        await lived(at, body, "Etc/GMT-2", MONTHS, timedelta(hours=12))
        windows = windows_of(await at.runs("a"))
        assert ("2023-04-30T22:00:00Z", "2023-05-31T21:00:00Z") in windows
        assert [start for start, _ in windows[1:]] == [end for _, end in windows[:-1]]


@pytest.mark.parametrize(
    ("one", "other"),
    [(None, "UTC"), ("UTC", None), ("Europe/Kiev", "Europe/Kyiv"), ("India Standard Time", "Asia/Kolkata")],
)
async def test_f2_another_name_of_the_same_zone_starts_no_schedule_anew(
    at: Bench, target: Receiver, one: str | None, other: str | None
) -> None:
    await put(at, of_rule(target, DAILY | {"timeZone": one}))
    await at.dispatch("a")
    calls = len(target.hits)
    before = (await at.call("get", id="a")).body
    at.clock.advance(minutes=1)
    again = await put(at, of_rule(target, DAILY | {"timeZone": other}))
    await at.dispatch("a")
    assert len(target.hits) == calls
    assert again["nextOccurrence"] == before["nextOccurrence"]


async def test_f2_a_count_goes_on_under_another_name_of_its_zone(at: Bench, target: Receiver) -> None:
    rule = {"frequency": "Day", "interval": 1, "startTime": "2026-09-08T15:00:00", "count": 3}
    await put(at, of_rule(target, rule | {"timeZone": "Europe/Kiev"}))
    for day in range(8):
        if day == 2:
            await put(at, of_rule(target, rule | {"timeZone": "Europe/Kyiv"}))
        await at.dispatch("a")
        at.clock.advance(days=1)
    assert len(target.hits) == 3


async def test_f3_what_was_dispatched_by_older_zone_data_is_not_run_again(storage: str, target: Receiver) -> None:
    for lateness in ("PT1M", "P1D"):
        target.hits.clear()
        async with bench(storage, PARTITIONS="1") as at:
            body = job_by(target, "Asia/Almaty", "2024-02-27T08:00:00", maxLateness=lateness)
            await lived(at, body, "Etc/GMT-6", ALMATY, timedelta(minutes=30))
            days = [hit.scheduled for hit in target.hits if hit.scheduled >= instant("2024-03-05T00:00:00")]
            assert [f"{day:%dT%H:%M}" for day in days] == ["05T02:00", "06T03:00", "07T03:00"]
            assert (await at.call("get", id="a")).body["missed"] == 0


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("POST", b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nnull"),
        ("GET", b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ],
)
async def test_f4_bytes_behind_the_end_of_an_answer_are_none_of_it(at: Bench, method: str, answer: bytes) -> None:
    async with raw_server(answer, len(answer)) as url:
        retry = {"type": "fixed", "count": 2, "interval": "PT1S"}
        action = {"type": "Http", "inputs": {"method": method, "uri": url, "retryPolicy": retry}}
        await at.create(id="a", trigger={"type": "Once"}, action=action)
        await at.dispatch("a")
        (run,) = await at.runs("a")
    assert (run["status"], run["attempts"]) == ("Succeeded", 1)
    assert run["actions"]["Action"]["response"]["statusCode"] == 204


async def test_f5_a_definition_of_100_kib_that_cannot_be_compressed_is_taken(at: Bench, target: Receiver) -> None:
    for data in (b64encode(random.Random(1).randbytes(75 * 1024)).decode(), "x" * 200 * 1024):
        body = once(target)
        body["action"]["inputs"]["body"] = {"data": data}
        name = f"a-{len(data)}"
        await at.create(id=name, **body)
        await at.dispatch(name)
        assert json.loads(target.hits[-1].body) == {"data": data}


@pytest.mark.parametrize("way", ["resume", "put"])
async def test_f6_a_job_whose_end_has_passed_while_it_was_suspended_completes(
    at: Bench, target: Receiver, way: str
) -> None:
    body = of_rule(target, {"frequency": "Minute", "interval": 10, "endTime": "2026-09-08T13:00:00Z"})
    await at.create(id="a", state="Suspended", **body)
    at.clock.advance(hours=2)
    response = await (
        at.call("resume", id="a") if way == "resume" else at.call("put", id="a", body=body | {"state": "Enabled"})
    )
    assert response.status == 200, response.body
    assert (response.body["state"], response.body["fired"]) == ("Completed", 0)


async def test_f7_the_page_says_how_a_day_of_25_hours_is_waited_for(at: Bench) -> None:
    async def due(delay: str) -> str:
        rule = {"frequency": "Day", "interval": 1, "timeZone": "Central Standard Time"}
        rule["startTime"] = "2026-10-31T00:00:00"
        trigger = {"type": "SlidingWindow", "recurrence": rule, "inputs": {"delay": delay}}
        asked = {"trigger": trigger, "createdAt": "2026-10-30T00:00:00Z", "count": 2}
        second = (await ask(at, "preview", asked)).body["occurrences"][1]
        assert (second["windowStartTime"], second["windowEndTime"]) == (
            "2026-11-01T05:00:00Z",
            "2026-11-02T06:00:00Z",
        )
        return str(second["dueTime"])

    assert await due("P1D") == "2026-11-02T05:00:00Z"
    assert await due("PT25H") == "2026-11-02T06:00:00Z"
    page = (DOCS / "recurrence.md").read_text()
    assert "`PT25H`" in page
    assert "`P31DT1H`" in page


async def test_f8_min_interval_refuses_no_schedule_that_keeps_it(storage: str, target: Receiver) -> None:
    keeps = {"frequency": "Week", "interval": 1, "startTime": "2026-09-09T00:00:00Z"}
    keeps["schedule"] = {"weekDays": ["Monday", "Thursday"], "hours": [0, 23], "minutes": [0]}
    breaks = {"frequency": "Month", "interval": 1}
    breaks["schedule"] = {"monthDays": [-1, 1], "hours": [0, 23], "minutes": [0]}
    async with bench(storage, MIN_INTERVAL="PT2H") as at:
        assert (await at.call("create", body=of_rule(target, keeps))).status == 201
        assert (await at.call("create", body=of_rule(target, breaks))).status == 400


async def test_f9_the_page_says_that_a_key_counts_within_an_id(at: Bench, target: Receiver) -> None:
    for job_id in ("one", "two", None):
        body = http_job(target.url) | ({"id": job_id} if job_id else {})
        assert (await at.call("create", body=body, headers={"idempotency-key": "k1"})).status == 201
    assert "A key counts within an id" in (DOCS / "jobs.md").read_text()


def test_f10_a_horizon_shorter_than_a_detection_period_is_refused() -> None:
    with pytest.raises(Misconfigured) as refused:
        read_settings(
            {"AzureWebJobsStorage": "UseDevelopmentStorage=true", "HORIZON": "PT1M", "DETECTION_PERIOD": "PT1H"}
        )
    (fault,) = [fault for fault in refused.value.faults if fault.field == "HORIZON"]
    assert "DETECTION_PERIOD" in fault.reason


async def test_f11_a_run_that_is_taken_over_has_one_start(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **once(target))
    await at.fire_only("a")
    at.clock.advance(minutes=2, seconds=10)
    slow = Slow(target)
    taking = asyncio.create_task(at.take_runs())
    await until(lambda: target.hits)
    (running,) = await at.runs("a")
    assert (running["status"], running["startTime"], running["lateness"]) == (
        "Running",
        "2026-09-08T12:00:00Z",
        "PT0S",
    )
    slow.go.set()
    await taking
    assert await agree(at, target, NOON)


async def test_f12_a_service_type_that_nobody_has_is_warned_of(at: Bench) -> None:
    made = await at.create(id="a", trigger={"type": "Once"}, serviceType="Countdwon")
    assert [warning["code"] for warning in made["warnings"]] == ["NoHost"]


async def test_f13_a_window_that_waits_for_room_shows_its_bounds(at: Bench, target: Receiver) -> None:
    slow = Slow(target)
    bound: dict[str, Any] = {"runtimeConfiguration": {"concurrency": {"runs": 1, "maximumWaitingRuns": 5}}}
    await at.create(id="a", **sliding(target.url, 3600, "2026-09-08T10:00:00Z", **bound))
    slow.go.set()
    await at.dispatch("a")
    slow.go.clear()
    at.clock.advance(hours=1)
    under_way = await started(at, target, len(target.hits) + 1)
    response = await at.call("resubmit", "runs", id="a", seq="1")
    assert response.status == 202
    first = next(run for run in await at.runs("a") if run["seq"] == 1)
    shown = next(run for run in await at.runs("a") if run["seq"] == response.body["seq"])
    assert shown["status"] == "Waiting"
    for run in (response.body, shown):
        assert run["windowStartTime"] == first["windowStartTime"]
        assert run["windowEndTime"] == first["windowEndTime"]
    slow.go.set()
    await under_way
    await at.dispatch("a")
