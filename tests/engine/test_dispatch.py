"""Dispatch: what is due is fired once, in bulk, and nobody is stopped by a neighbour."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from shared.engine.crew import Crew
from shared.jobs.times import key_text
from shared.storage.rows import timer_key
from shared.storage.table import Verb, Write
from shared.storage.tickets import Ticket
from tests.harness import NOON, Bench, Receiver, bench, http_job


async def test_an_occurrence_is_fired_once_and_its_history_written(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=60))
    await at.dispatch("a")
    await at.dispatch("a")
    assert [hit.scheduled for hit in target.hits] == [NOON]
    (run,) = await at.runs("a")
    assert (run["seq"], run["status"], run["scheduledTime"]) == (1, "Succeeded", "2026-09-08T12:00:00Z")
    assert run["actions"]["Action"]["response"]["statusCode"] == 200
    job = (await at.call("get", id="a")).body
    assert (job["fired"], job["nextOccurrence"]) == (1, "2026-09-08T12:01:00Z")
    assert job["lastRun"]["seq"] == 1


async def test_the_target_is_told_which_occurrence_it_is(at: Bench, target: Receiver) -> None:
    job = await at.create(id="a", **http_job(target.url))
    await at.dispatch("a")
    (hit,) = target.hits
    stamp = (await at.app.admin.get("a")).core.stamp
    assert hit.method == "POST"
    assert hit.body == b'{"start": "2026-09-08T12:00:00Z"}'
    assert hit.headers["Content-Type"] == "application/json"
    assert hit.key == f"a:{stamp}:20260908T120000Z:Action"
    assert hit.headers["x-timerjobs-job-id"] == job["id"]
    assert hit.headers["x-timerjobs-run"] == "1"
    assert hit.headers["x-timerjobs-scheduled-time"] == "2026-09-08T12:00:00Z"
    assert hit.headers["x-timerjobs-attempt"] == "1"
    assert hit.headers["x-timerjobs-fencing-token"] == "1000"
    version, trace, span, flags = hit.headers["traceparent"].split("-")
    assert (version, len(trace), len(span), flags) == ("00", 32, 16, "01")


async def test_a_job_made_twice_has_other_keys(at: Bench, target: Receiver) -> None:
    for _ in range(2):
        await at.create(id="a", **http_job(target.url))
        await at.dispatch("a")
        assert (await at.call("delete", id="a")).status == 204
    first, second = target.hits
    assert first.scheduled == second.scheduled
    assert first.key != second.key


async def test_nothing_fires_early(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, start=NOON + timedelta(seconds=5)))
    at.clock.advance(seconds=4.999)
    await at.dispatch("a")
    assert not target.hits
    at.clock.advance(seconds=0.001)
    await at.dispatch("a")
    assert len(target.hits) == 1


async def test_jobs_of_one_second_are_fired_by_shared_transactions(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for number in range(60):
            await at.create(id=f"j{number}", **http_job(target.url, every=600, start=NOON))
        at.requests.clear()
        await at.dispatch()
        assert len(target.hits) == 60
        assert len({hit.key for hit in target.hits}) == 60
        assert len([line for line in at.requests if "/messages" in line]) == 1  # all are due next at one second
        assert len(at.requests) <= 60 * 0.3


async def test_a_backlog_larger_than_a_page_is_fired_in_one_pass(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for number in range(130):
            await at.create(id=f"j{number}", **http_job(target.url, every=3600, start=NOON))
        await at.dispatch()
        assert len(target.hits) == 130


async def test_two_dispatchers_fire_each_occurrence_once(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for number in range(40):
            await at.create(id=f"j{number}", **http_job(target.url, every=3600, start=NOON))
        await asyncio.gather(*(at.dispatch() for _ in range(4)))
        assert sorted(hit.job for hit in target.hits) == sorted(f"j{number}" for number in range(40))
        for row in await at.rows("past"):
            assert row["seq"] == 1


async def test_missed_occurrences_are_one_record_and_the_newest_fires_late(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=10, start=NOON))
    at.clock.advance(seconds=65)
    await at.dispatch("a")
    assert [hit.scheduled for hit in target.hits] == [NOON + timedelta(seconds=60)]
    run, stretch = await at.runs("a")
    assert (run["status"], run["lateness"]) == ("Succeeded", "PT5S")
    assert (stretch["status"], stretch["count"]) == ("Missed", 6)
    assert (stretch["from"], stretch["to"]) == ("2026-09-08T12:00:00Z", "2026-09-08T12:00:50Z")
    assert stretch["reason"]
    job = (await at.call("get", id="a")).body
    assert (job["fired"], job["missed"]) == (1, 6)


async def test_max_lateness_of_the_setting_is_read_at_dispatch(storage: str, target: Receiver) -> None:
    async with bench(storage, DEFAULT_MAX_LATENESS="PT30S") as at:
        await at.create(id="a", **http_job(target.url, every=3600, start=NOON))
        own = http_job(target.url, every=3600, start=NOON)
        own["trigger"]["maxLateness"] = "PT2M"
        await at.create(id="b", **own)
        at.clock.advance(seconds=31)
        await at.dispatch()
        assert [hit.job for hit in target.hits] == ["b"]
        (missed,) = await at.runs("a")
        assert "PT30S" in missed["reason"]


async def test_a_job_whose_count_is_reached_is_completed(at: Bench, target: Receiver) -> None:
    job = http_job(target.url, every=10)
    job["trigger"]["recurrence"]["count"] = 2
    await at.create(id="a", **job)
    for _ in range(3):
        await at.dispatch("a")
        at.clock.advance(seconds=10)
    assert len(target.hits) == 2
    answer = (await at.call("get", id="a")).body
    assert (answer["state"], answer["nextOccurrence"], answer["fired"]) == ("Completed", None, 2)
    assert not await at.rows("timer")


async def test_a_once_job_runs_once_however_late(at: Bench, target: Receiver) -> None:
    job = http_job(target.url) | {"trigger": {"type": "Once", "runAt": "2026-09-08T12:00:30Z"}}
    await at.create(id="a", **job)
    at.clock.advance(days=30)
    await at.dispatch("a")
    assert [hit.scheduled for hit in target.hits] == [NOON + timedelta(seconds=30)]
    assert (await at.call("get", id="a")).body["state"] == "Completed"


@pytest.mark.parametrize("status", [300, 302, 400, 404, 500, 503])
async def test_a_target_that_refuses_makes_the_run_failed(at: Bench, target: Receiver, status: int) -> None:
    from aiohttp import web

    async def refuse(hit: Any) -> web.Response:
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    target.answer = refuse
    await at.create(id="a", **http_job(target.url))
    await at.dispatch("a")
    assert len(target.hits) == 1
    (run,) = await at.runs("a")
    assert run["status"] == "Failed"
    assert str(status) in run["reason"]
    assert run["actions"]["Action"]["response"]["statusCode"] == status


async def test_a_target_that_is_not_there_makes_the_run_failed(at: Bench) -> None:
    await at.create(id="a", **http_job("http://127.0.0.1:9/"))
    await at.dispatch("a")
    (run,) = await at.runs("a")
    assert run["status"] == "Failed"
    assert "connect" in run["reason"].lower()


async def test_a_target_that_does_not_answer_in_time_makes_the_run_timed_out(at: Bench, target: Receiver) -> None:
    async def stall(hit: Any) -> Any:
        await asyncio.sleep(60)

    target.answer = stall
    job = http_job(target.url)
    job["action"]["limit"] = {"timeout": "PT1S"}
    await at.create(id="a", **job)
    await at.dispatch("a")
    (run,) = await at.runs("a")
    assert run["status"] == "TimedOut"


async def test_queries_and_escapes_reach_the_target_as_written(at: Bench, target: Receiver) -> None:
    job = http_job(target.url + "/a%2Fb?x=%20y")
    job["action"]["inputs"] |= {"queries": {"n": 5, "t": True, "s": "a b&c", "at": "@@x"}, "body": "@@plain"}
    await at.create(id="a", **job)
    await at.dispatch("a")
    (hit,) = target.hits
    assert hit.path == "/hook/a%2Fb?x=%20y&n=5&t=true&s=a+b%26c&at=%40x"
    assert hit.body == b"@plain"


async def test_a_ticket_that_is_early_by_much_is_sent_again(at: Bench) -> None:
    due = NOON + timedelta(seconds=30)
    at.requests.clear()
    await at.app.dispatcher.carry_out(Ticket("00", due))
    (line,) = at.requests
    assert "visibilitytimeout=30" in line


async def test_the_next_due_time_is_announced_by_whoever_fired(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=40))
    at.requests.clear()
    await at.dispatch("a")
    (ticket,) = [line for line in at.requests if "/messages" in line]
    assert "visibilitytimeout=40" in ticket
    assert "messagettl=-1" in ticket


async def test_a_timer_beyond_the_horizon_is_left_to_detection(at: Bench, target: Receiver) -> None:
    at.requests.clear()
    await at.create(id="a", **http_job(target.url, start=NOON + timedelta(minutes=26)))
    assert not [line for line in at.requests if "/messages" in line]
    await at.create(id="b", **http_job(target.url, start=NOON + timedelta(minutes=24)))
    assert len([line for line in at.requests if "/messages" in line]) == 1


async def test_a_baton_that_cannot_be_planned_is_set_aside_and_stops_nobody(
    storage: str, target: Receiver
) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for name in ("a", "b", "c"):
            await at.create(id=name, **http_job(target.url, every=3600, start=NOON))
        key = timer_key(NOON, "b")
        await at.app.store.table.commit("00", [Write(Verb.MERGE, {"RowKey": key, "definition": b"nonsense"})])
        await at.dispatch()
        assert sorted(hit.job for hit in target.hits) == ["a", "c"]
        job = (await at.call("get", id="b")).body
        assert [w["code"] for w in job["warnings"]] == ["SetAside"]
        (baton,) = [row for row in await at.rows("timer") if row["RowKey"].endswith(":b")]
        assert baton["RowKey"] == timer_key(NOON + timedelta(minutes=1), "b")
        at.clock.advance(seconds=60)
        await at.dispatch()
        (baton,) = [row for row in await at.rows("timer") if row["RowKey"].endswith(":b")]
        assert baton["RowKey"] == timer_key(NOON + timedelta(minutes=3), "b")  # doubled
        # A PUT mends it, and it fires.
        body = http_job(target.url, every=3600, start=NOON)
        assert (await at.call("put", id="b", body=body | {"description": "mended"})).status == 200
        await at.dispatch()
        assert sorted(hit.job for hit in target.hits) == ["a", "b", "c"]
        assert not (await at.call("get", id="b")).body["warnings"]


async def test_a_baton_that_cannot_be_written_is_found_by_halving(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for number in range(20):
            await at.create(id=f"j{number}", **http_job(target.url, every=3600, start=NOON))
        # A run row stands where job j7's first run is to be inserted.
        table = at.app.store.table
        await table.commit("00", [Write(Verb.INSERT, {"RowKey": "run:j7:0000000001", "lockedUntil": "9999"})])
        await at.dispatch()
        assert sorted(hit.job for hit in target.hits) == sorted(f"j{n}" for n in range(20) if n != 7)
        assert "cannot be written" in (await at.app.admin.get("j7")).fault
        await table.commit("00", [Write(Verb.DELETE, {"RowKey": "run:j7:0000000001"})])
        at.clock.advance(seconds=60)
        await at.dispatch()
        assert "j7" in {hit.job for hit in target.hits}


async def test_a_timer_row_that_cannot_be_read_stops_nobody(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        for name in ("a", "b"):
            await at.create(id=name, **http_job(target.url, every=3600, start=NOON))
        await at.app.store.table.commit("00", [Write(Verb.MERGE, {"RowKey": timer_key(NOON, "a"), "v": 0})])
        await at.dispatch()
        assert [hit.job for hit in target.hits] == ["b"]
        assert "version 0" in (await at.app.admin.get("a")).fault


async def test_a_timer_of_no_job_is_deleted(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        await at.create(id="a", **http_job(target.url, every=3600, start=NOON))
        await at.app.store.table.commit("00", [Write(Verb.DELETE, {"RowKey": "job:a"})])
        await at.dispatch()
        assert not target.hits
        assert not await at.rows("timer")


async def test_what_gets_no_slot_is_handed_over(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url))
    at.requests.clear()
    with at.full():
        await at.dispatch("a")
    assert not target.hits
    assert len([line for line in at.requests if "/messages" in line]) == 2  # what is due next, and runs
    (run,) = await at.runs("a")
    assert (run["status"], run["reason"]) == ("Waiting", "waits for an executor")
    await at.take_runs()
    assert len(target.hits) == 1
    assert target.hits[0].headers["x-timerjobs-attempt"] == "1"
    (run,) = await at.runs("a")
    assert run["status"] == "Succeeded"


async def test_a_process_with_few_slots_fires_as_they_become_free(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1", MAX_EXECUTING="3") as at:
        for number in range(8):
            await at.create(id=f"j{number}", **http_job(target.url, every=3600, start=NOON))
        await at.dispatch()
        assert len({hit.key for hit in target.hits}) == len(target.hits) == 8
        assert not await at.rows("run")


async def test_a_catching_up_job_goes_behind_the_others_each_turn(storage: str, target: Receiver) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        await at.create(id="a", **http_job(target.url, every=1, start=NOON))
        at.clock.advance(seconds=100.5)
        await at.dispatch()
        (timer,) = await at.rows("timer")
        assert timer["RowKey"] == timer_key(NOON + timedelta(seconds=101), "a")
        assert len(target.hits) == 1


async def test_a_round_may_be_given_any_now(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url, every=3600, start=NOON + timedelta(days=9)))
    partition = at.app.store.jobs.partition("a")
    async with Crew(partition, at.app.workshop, at.clock()) as crew:
        assert not await at.app.dispatcher.round(partition, NOON + timedelta(days=9), crew)
    assert key_text(target.hits[0].scheduled) == "20260917T120000Z"


async def test_a_lone_occurrence_costs_four_requests_beside_receiving_and_deleting_its_ticket(
    at: Bench, target: Receiver
) -> None:
    await at.create(id="a", **http_job(target.url, every=60))
    for _ in range(3):
        at.requests.clear()
        await at.app.dispatcher.carry_out(Ticket(at.app.store.jobs.partition("a"), at.clock()))
        read, fire, ticket, complete = at.requests
        assert "RowKey ge 'timer:'" in read
        assert "$batch" in fire
        assert "/messages" in ticket
        assert "$batch" in complete
        at.clock.advance(seconds=60)
    assert len(target.hits) == 3


async def test_a_lone_long_occurrence_costs_no_more(at: Bench, target: Receiver) -> None:
    job = http_job(target.url, every=60)
    job["action"]["limit"] = {"timeout": "PT5M"}
    await at.create(id="a", **job)
    at.requests.clear()
    await at.app.dispatcher.carry_out(Ticket(at.app.store.jobs.partition("a"), at.clock()))
    assert len(at.requests) == 4
    assert len(target.hits) == 1
