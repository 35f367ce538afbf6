"""POST /preview: what a trigger would do, and that it is what the job then does."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.harness import NOON, Bench
from tests.web.support import NOON_TEXT, ask, daily, fields, hourly, valid


async def preview(at: Bench, trigger: Any, **more: Any) -> Any:
    response = await ask(at, "preview", {"trigger": trigger} | more)
    assert response.status == 200, response.body
    return response.body


def recurrence(**properties: Any) -> dict[str, Any]:
    return {"type": "Recurrence", "recurrence": {"frequency": "Day", "interval": 1} | properties}


def scheduled(answer: Any) -> list[str]:
    return [each["scheduledTime"] for each in answer["occurrences"]]


async def test_ten_occurrences_are_shown_unless_another_number_is_asked_for(at: Bench) -> None:
    trigger = hourly()["trigger"]
    ten = await preview(at, trigger)
    assert scheduled(ten)[:2] == [NOON_TEXT, "2026-09-08T13:00:00Z"]
    assert len(ten["occurrences"]) == 10
    assert scheduled(await preview(at, trigger, count=2)) == scheduled(ten)[:2]
    assert len((await preview(at, trigger, count=1000))["occurrences"]) == 1000


async def test_nothing_is_stored_and_storage_is_not_asked(at: Bench) -> None:
    at.requests.clear()
    await preview(at, hourly()["trigger"])
    assert at.requests == []


async def test_the_answer_holds_what_the_contract_names_and_no_more(at: Bench) -> None:
    trigger = daily(timeZone="Tokyo Standard Time", schedule={"hours": ["9"]})["trigger"]
    answer = await preview(at, trigger | {"skipInitialRun": True}, count=1)
    assert answer == {
        "occurrences": [
            {
                "scheduledTime": "2026-09-09T00:00:00Z",
                "dueTime": "2026-09-09T00:00:00Z",
                "localTime": "2026-09-09T09:00:00+09:00",
            }
        ],
        "completed": False,
        "evaluatedRecurrence": trigger["recurrence"],
        "describe": answer["describe"],
        "warnings": [],
    }
    assert "Tokyo Standard Time" in answer["describe"]


async def test_it_warns_of_a_run_at_creation(at: Bench) -> None:
    assert (await preview(at, recurrence()))["warnings"] == [{"code": "InitialRun", "at": NOON_TEXT}]
    assert (await preview(at, recurrence(startTime="2026-09-09T00:00:00Z")))["warnings"] == []


async def test_creation_is_now_unless_another_instant_is_given(at: Bench) -> None:
    at.clock.advance(days=1, seconds=0.75)
    assert scheduled(await preview(at, recurrence(), count=1)) == ["2026-09-09T12:00:00Z"]
    for text in ("2030-02-28T23:59:59Z", "2030-02-28T23:59:59.9999999Z"):
        answer = await preview(at, recurrence(), count=2, createdAt=text)
        assert scheduled(answer) == ["2030-02-28T23:59:59Z", "2030-03-01T23:59:59Z"]


@pytest.mark.parametrize("created", ["1970-01-01T00:00:00Z", "2999-12-31T23:59:59Z"])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue"])
@pytest.mark.parametrize("frequency", ["Second", "Day", "Month"])
async def test_any_instant_of_creation_that_is_taken_can_be_shown(
    at: Bench, created: str, zone: str, frequency: str
) -> None:
    interval = {"Second": 9_999_999, "Day": 500, "Month": 16}[frequency]
    trigger = recurrence(frequency=frequency, interval=interval, timeZone=zone)
    answer = await preview(at, trigger, createdAt=created, count=1000)
    assert len(answer["occurrences"]) == 1000
    assert answer["occurrences"][0]["scheduledTime"] == created


async def test_a_gap_and_a_fold_are_noted(at: Bench) -> None:
    def at_half_past(hour: int, start: str) -> Any:
        return recurrence(
            timeZone="America/Los_Angeles", startTime=start, schedule={"hours": [hour], "minutes": [30]}
        )

    spring = await preview(at, at_half_past(2, "2027-03-13T00:00:00"), count=3)
    assert scheduled(spring) == ["2027-03-13T10:30:00Z", "2027-03-14T10:30:00Z", "2027-03-15T09:30:00Z"]
    assert [each["localTime"][11:16] for each in spring["occurrences"]] == ["02:30", "03:30", "02:30"]
    assert [("note" in each) for each in spring["occurrences"]] == [False, True, False]
    autumn = await preview(at, at_half_past(1, "2027-11-06T00:00:00"), count=3)
    assert scheduled(autumn) == ["2027-11-06T08:30:00Z", "2027-11-07T08:30:00Z", "2027-11-08T09:30:00Z"]
    assert [("note" in each) for each in autumn["occurrences"]] == [False, True, False]


async def test_it_is_completed_where_no_occurrence_is_left_behind_those_shown(at: Bench) -> None:
    three = recurrence(count=3)
    assert (await preview(at, three, count=2))["completed"] is False
    for count in (3, 4):
        answer = await preview(at, three, count=count)
        assert (len(answer["occurrences"]), answer["completed"]) == (3, True)
    ending = recurrence(endTime="2026-09-10T12:00:00Z")
    assert (await preview(at, ending, count=2))["completed"] is False
    answer = await preview(at, ending, count=3)
    assert (len(answer["occurrences"]), answer["completed"]) == (3, True)
    never = recurrence(startTime="2026-09-10T12:00:00Z", endTime="2026-09-10T13:00:00Z", schedule={"hours": [5]})
    answer = await preview(at, never)
    assert (answer["occurrences"], answer["completed"]) == ([], True)


async def test_once_has_one_occurrence(at: Bench) -> None:
    answer = await preview(at, {"type": "Once", "runAt": "2026-12-24T18:00:00Z"})
    assert (scheduled(answer), answer["completed"]) == (["2026-12-24T18:00:00Z"], True)
    assert "evaluatedRecurrence" not in answer
    for late in ({"type": "Once"}, {"type": "Once", "runAt": "2020-01-01T00:00:00Z"}):
        assert scheduled(await preview(at, late)) == [NOON_TEXT]


async def test_expressions_are_evaluated_with_the_parameters_given(at: Bench) -> None:
    trigger = recurrence(interval="@parameters('n')")
    answer = await preview(at, trigger, parameters={"n": 7}, count=2)
    assert scheduled(answer) == [NOON_TEXT, "2026-09-15T12:00:00Z"]
    assert answer["evaluatedRecurrence"] == {"frequency": "Day", "interval": 7}


async def test_null_means_absent(at: Bench) -> None:
    answer = await preview(at, recurrence(), parameters=None, createdAt=None, count=None)
    assert answer == await preview(at, recurrence())


async def test_all_independent_faults_are_told_at_once(at: Bench) -> None:
    body = {
        "trigger": {"type": "Recurrence", "jitter": 1, "recurrence": {"frequency": "Day", "interval": 0}},
        "count": 0,
        "colour": "red",
    }
    response = await ask(at, "preview", body)
    assert sorted(fields(response)) == ["colour", "count", "trigger.jitter", "trigger.recurrence.interval"]
    del body["trigger"]
    assert fields(await ask(at, "preview", body | {"createdAt": "x"})) == [
        "trigger",
        "createdAt",
        "count",
        "colour",
    ]


@pytest.mark.parametrize(
    "trigger",
    [
        hourly()["trigger"],
        hourly()["trigger"] | {"skipInitialRun": True},
        valid()["trigger"],
        {"type": "Once", "runAt": "2026-09-08T12:34:56.5Z"},
        recurrence(frequency="Week", schedule={"weekDays": ["Friday", "Monday"], "hours": [6, 18]}),
        recurrence(frequency="Month", startTime="2026-01-31T08:00:00Z", count=4),
    ],
    ids=["hourly", "skipping", "daily", "once", "weekly", "monthly"],
)
async def test_the_job_does_what_the_preview_said(at: Bench, trigger: Any) -> None:
    said = await preview(at, trigger, count=4)
    made = await at.create(**valid(id="a", trigger=trigger))
    assert made["warnings"] == said["warnings"]
    assert made["describe"] == said["describe"]
    done: list[str] = []
    while (following := (await at.call("get", id="a")).body["nextOccurrence"]) and len(done) < 4:
        done.append(following)
        at.clock.now = max(NOON, datetime.fromisoformat(following)) + timedelta(seconds=1)
        await at.fire_only("a")
    assert done == scheduled(said)
