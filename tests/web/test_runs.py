"""The routes of runs: what they answer of a run in each of its states, and when they refuse."""

from typing import Any

import pytest

from tests.engine.test_gate import Slow, bounded, sliding, started
from tests.engine.test_steps import call, steps_job, wait
from tests.harness import NOON, Bench, Receiver, http_job
from tests.web.support import NOON_TEXT, ask, every_row, fields, put

ENDED = {"seq", "scheduledTime", "startTime", "endTime", "lateness", "status", "attempts", "actions"}
STRETCH = {"seq", "status", "reason", "from", "to", "count"}
TEN_LATER = "2026-09-08T12:00:10Z"


async def run_of(at: Bench, seq: int) -> Any:
    """The run as GET answers it, which it must."""
    response = await ask(at, "run", job="a", seq=str(seq))
    assert response.status == 200, response.body
    return response.body


async def refused(at: Bench, route: str, seq: int | None, status: int) -> str:
    """The detail of a refusal, which must leave every row as it was."""
    before = await every_row(at)
    response = await ask(at, route, job="a", seq=None if seq is None else str(seq))
    assert response.status == status, response.body
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.body["title"] == {404: "Not found", 409: "Conflict"}[status]
    assert "errors" not in response.body
    assert await every_row(at) == before
    detail: str = response.body["detail"]
    return detail


async def missed(at: Bench, target: Receiver) -> None:
    """A job `a` whose run 2 fired, and whose run 1 is a stretch of two missed occurrences."""
    await at.create(id="a", **http_job(target.url, start=NOON))
    at.clock.advance(seconds=25)
    await at.dispatch("a")


async def waiting(at: Bench, target: Receiver) -> Any:
    """A job `a` that has a run executing, one waiting for room, and a skipped occurrence; the pass under way."""
    await at.create(id="a", **bounded(target.url, 1, 1))
    under_way = await started(at, target, 1)
    for _ in range(2):
        at.clock.advance(seconds=10)
        await at.dispatch("a")
    return under_way


async def test_a_run_by_its_number_is_as_the_list_has_it(at: Bench, target: Receiver) -> None:
    slow = Slow(target)
    under_way = await waiting(at, target)
    listed = await at.runs("a")
    assert [run["status"] for run in listed] == ["Skipped", "Waiting", "Running"]
    assert [await run_of(at, n) for n in (3, 2, 1)] == listed
    slow.go.set()
    await under_way
    assert [await run_of(at, n) for n in (3, 2, 1)] == await at.runs("a")


async def test_an_executing_run_is_told_with_no_end(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url))
    await at.fire_only("a")
    assert await run_of(at, 1) == {
        "seq": 1,
        "scheduledTime": NOON_TEXT,
        "startTime": NOON_TEXT,
        "endTime": None,
        "lateness": "PT0S",
        "status": "Running",
        "attempts": 1,
        "actions": {},
    }


async def test_a_run_that_waits_for_room_has_not_started(at: Bench, target: Receiver) -> None:
    slow = Slow(target)
    under_way = await waiting(at, target)
    assert await run_of(at, 2) == {
        "seq": 2,
        "scheduledTime": TEN_LATER,
        "startTime": None,
        "endTime": None,
        "status": "Waiting",
        "reason": "waits until fewer runs are under way",
        "attempts": 0,
        "actions": {},
    }
    slow.go.set()
    await under_way


async def test_a_run_that_sleeps_tells_when_it_goes_on(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **steps_job({"Pause": wait(60), "Call": call(target.url, {"Pause": ["Succeeded"]})}))
    await at.dispatch("a")
    sleeping = await run_of(at, 1)
    assert sleeping.keys() == ENDED | {"reason"}
    assert (sleeping["status"], sleeping["endTime"]) == ("Waiting", None)
    assert sleeping["reason"] == "goes on at 2026-09-08T12:01:00Z"
    assert sleeping["actions"]["Pause"]["status"] == "Waiting"


async def test_a_run_that_has_ended_is_told_with_its_actions(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, start=NOON))
    at.clock.advance(seconds=1.5)
    await at.dispatch("a")
    ended = await run_of(at, 1)
    assert ended.keys() == ENDED
    assert (ended["scheduledTime"], ended["lateness"]) == (NOON_TEXT, "PT1.5S")
    assert ended["startTime"] == ended["endTime"] == "2026-09-08T12:00:01.500Z"
    assert (ended["status"], ended["attempts"]) == ("Succeeded", 1)
    assert ended["actions"]["Action"]["status"] == "Succeeded"
    assert ended["actions"]["Action"]["response"]["statusCode"] == 200


async def test_a_stretch_has_bounds_and_no_actions(at: Bench, target: Receiver) -> None:
    await missed(at, target)
    stretch = await run_of(at, 1)
    assert stretch.keys() == STRETCH
    assert (stretch["status"], stretch["count"]) == ("Missed", 2)
    assert (stretch["from"], stretch["to"]) == (NOON_TEXT, TEN_LATER)


async def test_a_windows_run_is_told_with_its_bounds_also_when_it_is_repeated(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **sliding(target.url, start=NOON_TEXT))
    await at.dispatch("a")
    bounds = {"windowStartTime": NOON_TEXT, "windowEndTime": "2026-09-08T13:00:00Z"}
    ended = await run_of(at, 1)
    assert ended.keys() == ENDED | bounds.keys()
    assert bounds.items() <= ended.items()
    again = await ask(at, "resubmit", job="a", seq="1")
    assert again.status == 202
    assert bounds.items() <= again.body.items()
    await at.take_runs()
    assert bounds.items() <= (await run_of(at, 2)).items()


@pytest.mark.parametrize("route", ["runs", "run_now", "suspend", "resume", "occurrences"])
async def test_what_is_asked_of_no_job_is_not_found(at: Bench, route: str) -> None:
    assert "'a'" in await refused(at, route, None, 404)


@pytest.mark.parametrize("route", ["run", "cancel", "resubmit"])
async def test_a_run_of_no_job_and_an_unknown_run_are_not_found(at: Bench, target: Receiver, route: str) -> None:
    assert "there is no job 'a'" in await refused(at, route, 1, 404)
    await at.create(id="a", **http_job(target.url, start=NOON.replace(hour=15)))
    await at.create(id="ab", **http_job(target.url))
    await at.dispatch("ab")
    for seq in (0, 1, 9_999_999_999):
        assert f"no run {seq}" in await refused(at, route, seq, 404)


@pytest.mark.parametrize("route", ["run", "cancel", "resubmit"])
async def test_a_run_beyond_the_history_is_not_found(at: Bench, target: Receiver, route: str) -> None:
    await at.create(id="a", **http_job(target.url, historyLimit=2))
    for _ in range(4):
        await at.dispatch("a")
        at.clock.advance(seconds=10)
    await refused(at, route, 2, 404)
    assert (await run_of(at, 3))["status"] == "Succeeded"


async def test_what_has_ended_is_not_cancelled(at: Bench, target: Receiver) -> None:
    await missed(at, target)
    for seq in (1, 2):
        assert await refused(at, "cancel", seq, 409) == f"run {seq} has ended"


async def test_what_has_not_ended_is_not_repeated(at: Bench, target: Receiver) -> None:
    slow = Slow(target)
    under_way = await waiting(at, target)
    for seq in (1, 2):
        assert await refused(at, "resubmit", seq, 409) == f"run {seq} has not ended"
    assert "no more runs may be" in await refused(at, "resubmit", 3, 409)  # it has ended, but there is no room
    slow.go.set()
    await under_way


async def test_a_run_that_sleeps_is_not_repeated(at: Bench) -> None:
    await at.create(id="a", **steps_job({"Pause": wait(60)}))
    await at.dispatch("a")
    assert await refused(at, "resubmit", 1, 409) == "run 1 has not ended"


async def test_run_now_answers_with_the_run(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600, start=NOON.replace(hour=15)))
    answer = await ask(at, "run_now", job="a")
    assert (answer.status, answer.body) == (202, await run_of(at, 1))
    assert (answer.body["status"], answer.body["scheduledTime"]) == ("Waiting", NOON_TEXT)
    assert "Content-Type" not in answer.headers  # which makes it application/json


async def test_run_now_where_there_is_no_room_answers_with_what_waits(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **bounded(target.url, 1, 1))
    await ask(at, "run_now", job="a")
    answer = await ask(at, "run_now", job="a")
    assert (answer.status, answer.body) == (202, await run_of(at, 2))
    assert (answer.body["status"], answer.body["startTime"]) == ("Waiting", None)
    assert "under way: 1, waiting: 1" in await refused(at, "run_now", None, 409)
    await at.take_runs()


async def test_a_completed_job_runs_no_more_but_what_it_ran_can_be_repeated(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url) | {"trigger": {"type": "Once"}})
    await at.dispatch("a")
    assert "Completed" in await refused(at, "run_now", None, 409)
    again = await ask(at, "resubmit", job="a", seq="1")
    assert (again.status, again.body["seq"], again.body["scheduledTime"]) == (202, 2, NOON_TEXT)
    await at.take_runs()
    assert [run["status"] for run in await at.runs("a")] == ["Succeeded", "Succeeded"]


@pytest.mark.parametrize("route", ["suspend", "resume"])
async def test_a_completed_job_is_neither_suspended_nor_resumed(at: Bench, target: Receiver, route: str) -> None:
    await at.create(id="a", **http_job(target.url) | {"trigger": {"type": "Once"}})
    await at.dispatch("a")
    assert "Completed" in await refused(at, route, None, 409)


async def test_a_skipped_stretch_is_repeated_for_its_last_time(at: Bench, target: Receiver) -> None:
    slow = Slow(target)
    under_way = await waiting(at, target)
    slow.go.set()
    await under_way
    again = await ask(at, "resubmit", job="a", seq="3")
    assert (again.status, again.body["seq"]) == (202, 4)
    assert again.body["scheduledTime"] == "2026-09-08T12:00:20Z"
    await at.take_runs()
    assert (await run_of(at, 4))["status"] == "Succeeded"


@pytest.mark.parametrize("of", ["executing", "sleeping", "waiting for room"])
async def test_cancel_answers_with_the_record(at: Bench, target: Receiver, of: str) -> None:
    if of == "sleeping":
        await at.create(id="a", **steps_job({"Pause": wait(60)}))
        await at.dispatch("a")
    else:
        await at.create(id="a", **bounded(target.url, 1, 1))
        await at.fire_only("a")
        await ask(at, "run_now", job="a")
    seq = "2" if of == "waiting for room" else "1"
    answer = await ask(at, "cancel", job="a", seq=seq)
    assert answer.status == 202, answer.body
    assert answer.body == await run_of(at, int(seq))
    assert answer.body.keys() == ENDED | {"reason"}
    assert (answer.body["status"], answer.body["reason"]) == ("Cancelled", "cancelled by hand")
    assert answer.body["endTime"] == NOON_TEXT
    assert await refused(at, "cancel", int(seq), 409) == f"run {seq} has ended"
    await at.take_runs()


async def test_suspend_and_resume_answer_with_the_job(at: Bench) -> None:
    made = await at.create(id="a", **http_job("http://127.0.0.1:9/", every=3600, start=NOON.replace(hour=15)))
    at.clock.advance(minutes=1)
    for route, state, following in (("suspend", "Suspended", None), ("resume", "Enabled", made["nextOccurrence"])):
        answer = await ask(at, route, job="a")
        read = await ask(at, "get", job="a")
        assert (answer.status, answer.body) == (200, read.body)
        assert answer.headers["ETag"] == read.headers["ETag"]
        assert (answer.body["state"], answer.body["nextOccurrence"]) == (state, following)
        before = await every_row(at)
        assert (await ask(at, route, job="a")).body == answer.body
        assert await every_row(at) == before


async def test_a_suspended_job_can_be_put_back_as_it_is_and_stays_suspended(at: Bench) -> None:
    await at.create(id="a", state="Suspended", **http_job("http://127.0.0.1:9/"))
    read = await ask(at, "get", job="a")
    before = await every_row(at)
    again = await put(at, "a", read.body)
    assert (again.status, again.body) == (200, read.body)
    assert await every_row(at) == before


async def test_the_key_may_stand_in_the_query_of_each_route(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url))
    for route, seq, status in (
        ("run_now", None, 202),
        ("run", "1", 200),
        ("cancel", "1", 202),
        ("suspend", None, 200),
    ):
        assert (await ask(at, route, job="a", seq=seq, query={"code": "key"})).status == status


@pytest.mark.parametrize("route", ["run_now", "resubmit", "cancel", "suspend", "resume"])
async def test_a_body_is_refused_where_a_route_takes_none(at: Bench, target: Receiver, route: str) -> None:
    await at.create(id="a", **http_job(target.url, every=3600, start=NOON))
    await at.dispatch()
    seq = "1" if route in ("resubmit", "cancel") else None
    for raw in (b'{"at": "tomorrow"}', b"[]", b"nonsense", b"\xff"):
        answer = await ask(at, route, raw=raw, job="a", seq=seq)
        assert (answer.status, fields(answer)) == (400, ["body"])
    for raw in (b"", b"{}", b" null "):
        assert (await ask(at, route, raw=raw, job="a", seq=seq)).status in (200, 202, 409)


async def test_a_run_that_wakes_between_two_readings_is_cancelled(
    at: Bench, target: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await at.create(id="a", **steps_job({"Pause": wait(60), "Call": call(target.url, {"Pause": ["Succeeded"]})}))
    await at.dispatch("a")
    runs, misses = at.app.store.runs, iter([True])
    idle = runs.idle

    async def woken(job_id: str, seq: int) -> Any:
        return None if next(misses, False) else await idle(job_id, seq)

    monkeypatch.setattr(runs, "idle", woken)
    response = await ask(at, "cancel", job="a", seq="1")
    assert (response.status, response.body["status"]) == (202, "Cancelled")
