"""POST /CreateTimerJob: the Logic Apps job scheduler template's request and answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from shared.errors import Misconfigured
from shared.settings import read_settings
from shared.web.api import respond
from shared.web.exchange import Request, Response
from shared.wiring import build
from tests.harness import Bench, Receiver, bench, settings_for
from tests.web.support import ask, got, swept

ACTION = {"type": "Http", "inputs": {"method": "GET", "uri": "https://example.org/job"}}


@pytest_asyncio.fixture
async def with_action(storage: str, target: Receiver) -> AsyncIterator[Bench]:
    """A bench whose operator has named an action."""
    action = {"type": "Http", "inputs": {"method": "POST", "uri": target.url}}
    async with bench(storage, TEMPLATE_ACTION=json.dumps(action)) as made:
        yield made


async def post(at: Bench, body: Any, raw: bytes | None = None, **query: str) -> Response:
    request = Request(
        url="http://localhost/api/CreateTimerJob?code=secret",
        headers={"content-type": "application/json"},
        route={},
        query=query,
        body=json.dumps(body).encode() if raw is None else raw,
    )
    return await respond(at.app.api.template.create, request)


def timer(recurrence: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    body = {
        "timerjobid": "correlated",
        "jobRecurrence": {"frequency": "minute", "interval": 5} | (recurrence or {}),
    }
    return body | more


def text_of(response: Response) -> str:
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    return response.content().decode()


async def recurrence_of(at: Bench, response: Response) -> Any:
    assert response.status == 201, response.content()
    return (await got(at, response.headers["Location"].rpartition("/")[2]))["trigger"]["recurrence"]


async def test_the_template_s_own_example_runs_until_its_count(with_action: Bench, target: Receiver) -> None:
    at = with_action
    made = await post(at, timer({"count": 2}))
    assert (made.status, text_of(made)) == (201, "Next execution time will be at 2026-09-08T12:05:00.0000000Z")
    job_id = made.headers["Location"].removeprefix("/api/jobs/")
    job = await got(at, job_id)
    assert job["tags"] == {"timerjobid": "correlated"}
    assert job["nextOccurrence"] == "2026-09-08T12:05:00Z"
    assert job["warnings"] == []
    await at.dispatch()
    assert target.hits == []
    for _ in range(3):
        at.clock.advance(minutes=5)
        await at.dispatch()
    assert [hit.scheduled.strftime("%H:%M:%S") for hit in target.hits] == ["12:05:00", "12:10:00"]
    assert (await got(at, job_id))["state"] == "Completed"


async def test_each_request_makes_a_job_of_its_own(with_action: Bench) -> None:
    made = [(await post(with_action, timer())).headers["Location"] for _ in range(3)]
    assert len(set(made)) == 3
    listed = await ask(with_action, "list", query={"tag": "timerjobid:correlated"})
    assert sorted(f"/api/jobs/{job['id']}" for job in listed.body["value"]) == sorted(made)


async def test_a_unique_one_is_made_only_where_there_is_none(with_action: Bench) -> None:
    at = with_action
    first = await post(at, timer(), unique="true")
    assert first.status == 201
    again = await post(at, timer(), unique="true")
    first_id = first.headers["Location"].rpartition("/")[2]
    assert (again.status, text_of(again)) == (409, f"A timer job with this timerjobid exists: {first_id}")
    assert (await post(at, timer(timerjobid="other"), unique="true")).status == 201
    assert (await post(at, timer(), unique="false")).status == 201
    await ask(at, "delete", job=first_id)
    assert (await post(at, timer(), unique="true")).status == 409  # the one that was not unique
    for job in (await ask(at, "list", query={"tag": "timerjobid:correlated"})).body["value"]:
        await ask(at, "delete", job=job["id"])
    assert (await post(at, timer(), unique="true")).status == 201


async def test_whether_there_is_one_costs_a_range_read_in_each_partition(with_action: Bench) -> None:
    for _ in range(5):
        await post(with_action, timer(timerjobid="another"))
    with_action.requests.clear()
    assert (await post(with_action, timer(), unique="true")).status == 201
    assert sum(line.startswith("GET") for line in with_action.requests) == len(with_action.partitions)


async def test_of_unique_ones_that_come_at_once_one_is_made(with_action: Bench) -> None:
    all_five = await asyncio.gather(*(post(with_action, timer(), unique="true") for _ in range(5)))
    assert sorted(response.status for response in all_five) == [201, 409, 409, 409, 409]


@pytest.mark.parametrize(
    ("start", "frequency", "interval", "first"),
    [
        (None, "second", 30, "2026-09-08T12:00:30Z"),
        ("2026-09-01T00:00:00Z", "Hour", 1, "2026-09-08T13:00:00Z"),  # past: from now on
        ("2026-09-08T12:00:00Z", "day", 1, "2026-09-09T12:00:00Z"),
        ("2026-09-30T06:10:49.9712118Z", "WEEK", 1, "2026-10-07T06:10:50Z"),
        ("2026-09-30T06:10:49.0000000Z", "week", 2, "2026-10-14T06:10:49Z"),
        ("2027-01-31T10:00:00Z", "month", 1, "2027-02-28T10:00:00Z"),
        ("2026-09-30T08:00:00+02:00", "hour", 1, "2026-09-30T07:00:00Z"),
        ("2026-09-30T08:00:00-0730", "hour", 1, "2026-09-30T16:30:00Z"),
        ("2026-09-30T08:00:00", "hour", 1, "2026-09-30T09:00:00Z"),
        ("2026-09-30T08:00", "hour", 1, "2026-09-30T09:00:00Z"),
        ("2026-09-30t08:00:00z", "hour", 1, "2026-09-30T09:00:00Z"),
        ("1970-01-01T00:00:00+14:00", "hour", 1, "2026-09-08T13:00:00Z"),
    ],
)
async def test_it_fires_first_one_interval_after_its_start(
    with_action: Bench, start: str | None, frequency: str, interval: int, first: str
) -> None:
    more = {} if start is None else {"startTime": start}
    made = await post(with_action, timer({"frequency": frequency, "interval": interval}, **more))
    recurrence = await recurrence_of(with_action, made)
    assert recurrence["startTime"] == first
    assert text_of(made).endswith(f" {first[:-1]}.0000000Z")


async def test_a_start_within_a_second_is_not_too_early(with_action: Bench) -> None:
    with_action.clock.advance(milliseconds=1)
    made = await post(with_action, timer({"frequency": "second", "interval": 1}))
    assert (await recurrence_of(with_action, made))["startTime"] == "2026-09-08T12:00:02Z"


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({}, {}),
        ({"count": -1}, {}),
        ({"count": None, "endTime": None}, {}),
        ({"count": 7}, {"count": 7}),
        ({"endTime": "2026-09-08T13:00:00Z"}, {"endTime": "2026-09-08T12:59:59Z"}),
        ({"endTime": "2026-09-08T13:00:00.001Z"}, {"endTime": "2026-09-08T13:00:00Z"}),
        ({"endTime": "2026-09-08T15:00:00+02:00", "count": 3}, {"endTime": "2026-09-08T12:59:59Z", "count": 3}),
        ({"endTime": "2026-09-08T12:05:00.0000001Z"}, {"endTime": "2026-09-08T12:05:00Z"}),
    ],
    ids=str,
)
async def test_its_limits_are_kept_and_the_end_is_not_part_of_the_time(
    with_action: Bench, limits: dict[str, Any], kept: dict[str, Any]
) -> None:
    recurrence = await recurrence_of(with_action, await post(with_action, timer(limits)))
    assert {name: recurrence[name] for name in ("count", "endTime") if name in recurrence} == kept


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"count": 0}, ("endTime()", "count(0)")),
        ({"endTime": "2026-09-08T12:05:00Z"}, ("endTime(2026-09-08T12:05:00Z)", "count()")),
        ({"endTime": "2020-01-01T00:00:00Z", "count": 5}, ("endTime(2020-01-01T00:00:00Z)", "count(5)")),
    ],
)
async def test_limits_that_are_met_already_are_a_conflict(
    with_action: Bench, limits: dict[str, Any], told: tuple[str, str]
) -> None:
    refused = await post(with_action, timer(limits))
    assert (refused.status, text_of(refused)) == (
        409,
        "Job completion criteria met.\nDetails: \nEither\n"
        f"{told[0]} < Next execution time(2026-09-08T12:05:00.0000000Z)\nOR\n"
        f"{told[1]} > execution count (0)",
    )
    assert await swept(with_action) == []


async def test_the_job_status_of_the_template_is_not_looked_at(with_action: Bench) -> None:
    status = {"executionCount": 9, "faultedCount": "?", "lastExecutionTime": "2030-01-01T00:00:00Z"}
    made = await post(with_action, timer({"count": 5}, jobStatus=status))
    assert (await recurrence_of(with_action, made))["startTime"] == "2026-09-08T12:05:00Z"


async def test_a_request_may_bring_its_own_action(at: Bench) -> None:
    made = await post(at, timer(action=ACTION))
    assert made.status == 201
    job = await got(at, made.headers["Location"].rpartition("/")[2])
    assert job["actions"] == {"Action": ACTION}
    assert made.headers["ETag"] == (await ask(at, "get", job=job["id"])).headers["ETag"]


WRONG: list[tuple[Any, list[str]]] = [
    ([], ["body"]),
    ({}, ["timerjobid", "jobRecurrence"]),
    (timer(timerjobid=5), ["timerjobid"]),
    (timer(timerjobid=""), ["timerjobid"]),
    (timer(timerjobid="x" * 257), ["timerjobid"]),
    (timer(unknown=1), ["unknown"]),
    (timer({"schedule": {"hours": [5]}}), ["jobRecurrence.schedule"]),
    (timer({"timeZone": "UTC"}), ["jobRecurrence.timeZone"]),
    (timer({"frequency": "year"}), ["jobRecurrence.frequency"]),
    (timer({"interval": 0}), ["jobRecurrence.interval"]),
    (timer({"interval": -5}), ["jobRecurrence.interval"]),
    (timer({"interval": "5"}), ["jobRecurrence.interval"]),
    (timer({"interval": 10**30}), ["jobRecurrence.interval"]),
    (timer({"frequency": "month", "interval": 17}), ["jobRecurrence.interval"]),
    (timer({"count": -2}), ["jobRecurrence.count"]),
    (timer({"count": 1.5}), ["jobRecurrence.count"]),
    (timer({"endTime": "tomorrow"}), ["jobRecurrence.endTime"]),
    (timer({"endTime": "2026-02-30T00:00:00Z"}), ["jobRecurrence.endTime"]),
    (timer({"frequency": "x", "interval": 0}, startTime="x"), ["startTime"]),
    (timer(startTime="2026-09-08"), ["startTime"]),
    (timer(startTime="2026-09-08T25:00:00Z"), ["startTime"]),
    (timer(startTime="2026-09-08T12:00:00+25:00"), ["startTime"]),
    (timer(startTime="0001-01-01T00:00:00+14:00"), ["startTime"]),
    (timer(startTime="9999-12-31T23:59:59-14:00"), ["startTime"]),
    (timer(startTime="2090-01-01T00:00:00Z"), ["startTime"]),
    (timer(startTime=5), ["startTime"]),
    (timer(action={"type": "Http", "inputs": {"method": "GET", "uri": "x"}}), ["action.inputs.uri"]),
    (timer(action={"type": "Queue", "inputs": {"queue": "orders", "message": 1}}), ["action.inputs.queue"]),
    (
        timer({"count": "x"}, timerjobid=5, action={"type": "x"}),
        ["timerjobid", "jobRecurrence.count", "action.type"],
    ),
]


async def test_what_is_wrong_is_told_in_the_template_s_words_and_by_field(with_action: Bench) -> None:
    for body, fields in WRONG:
        refused = await post(with_action, body)
        assert refused.status == 400, body
        first, *lines = text_of(refused).split("\n")
        assert first == "Failed to create timer job"
        assert sorted(line.split()[0] for line in lines) == sorted(fields), (body, lines)
    for raw in (b"", b"{", b"\xff"):
        refused = await post(with_action, None, raw=raw)
        assert text_of(refused).startswith("Failed to create timer job\nbody is ")
    assert text_of(await post(with_action, timer(), unique="yes")).endswith("\nunique must be true or false")
    assert text_of(await post(with_action, timer(), once="true")).startswith("Failed to create timer job\nonce ")
    assert await swept(with_action) == []


async def test_without_an_action_of_the_operator_s_a_request_must_bring_one(at: Bench) -> None:
    refused = await post(at, timer())
    assert refused.status == 400
    assert text_of(refused).startswith("Failed to create timer job\naction is required")


async def test_other_errors_are_problems(with_action: Bench) -> None:
    too_large = await post(with_action, None, raw=b" " * (256 * 1024 + 1))
    assert (too_large.status, too_large.body["title"]) == (413, "Too large")


async def test_the_operator_s_limits_hold(storage: str) -> None:
    async with bench(storage, MIN_INTERVAL="PT1M") as at:
        refused = await post(at, timer({"frequency": "second", "interval": 59}, action=ACTION))
        assert text_of(refused).startswith("Failed to create timer job\njobRecurrence.interval lets it fire again")


@pytest.mark.parametrize(
    "action",
    [
        "{",
        "5",
        "null",
        "[" * 100_000,
        '{"type": "Http"}',
        '{"type": "Http", "inputs": {"method": "GET", "uri": "nowhere"}}',
        '{"type": "Queue", "inputs": {"queue": "not-allowed", "message": 1}}',
    ],
    ids=["json", "number", "null", "deep", "inputs", "uri", "queue"],
)
async def test_an_action_of_the_operator_s_that_is_wrong_stops_the_app(storage: str, action: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        await build(settings_for(storage, TEMPLATE_ACTION=action))
    assert [fault.field for fault in raised.value.faults] == ["TEMPLATE_ACTION"]
    assert read_settings({"AzureWebJobsStorage": storage}).template_action == ""
