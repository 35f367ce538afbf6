"""What hosts do with instances: loaded, saved, unlocked, completed; and what their callers do meanwhile."""

import asyncio
import json
import secrets
from typing import Any

import pytest

from shared.engine import instances
from tests.activation.support import NIGHTLY, fired, host, hosted, lapse, named, saving
from tests.harness import Bench, Receiver, bench, http_job


async def statuses(at: Bench, job_id: str = "a") -> list[str]:
    return [run["status"] for run in await at.runs(job_id)]


async def test_a_lease_lasts_while_it_is_renewed_and_takes_the_locks_along(at: Bench) -> None:
    await fired(at, "a")
    await fired(at, "b")
    one = await host(at)
    first, second = await one.try_load(), await one.try_load()
    for _ in range(5):
        at.clock.advance(seconds=30)
        assert (await one.renew(first))["lost"] == []
        await at.app.detector.tick()
        await at.take_runs()
    assert await statuses(at, first["jobId"]) == ["Running"]
    assert await statuses(at, second["jobId"]) == ["Waiting"]  # it was not named
    assert (await one.renew(first, second))["lost"] == [named(second)]
    await one.save(first, complete={})
    assert await one.refused("save", saving(second, complete={})) == "InstanceLockLost"


async def test_what_has_run_out_cannot_be_renewed(at: Bench) -> None:
    await fired(at)
    one = await host(at)
    instance = await one.try_load()
    at.clock.advance(seconds=60)
    for route, body in (
        ("renew", None),
        ("try_load", None),
        ("load", {"jobId": "a", "run": 1}),
        ("save", saving(instance, state=1)),
        ("events", None),
    ):
        assert await one.refused(route, body) == "HostLockExpired"
    one.id = "0" * 32
    assert await one.refused("renew") == "HostLockExpired"
    one.id = "a'b"
    assert await one.refused("renew") == "HostLockExpired"


async def test_a_released_host_lives_no_more_and_old_ones_are_forgotten(at: Bench) -> None:
    one, two = await host(at), await host(at)
    for _ in range(2):
        await one.told("release")
    assert await one.refused("renew") == "HostLockExpired"
    assert [each.id for each in (await at.app.store.hosts.census()).hosts] == [two.id]
    at.clock.advance(minutes=62)
    await at.app.detector.tick()
    assert not (await at.app.store.hosts.census()).hosts


async def test_the_lock_lasts_thirty_seconds_longer_than_the_renewal_period(storage: str) -> None:
    async with bench(storage, HOST_LOCK_RENEWAL_PERIOD="PT10M") as at:
        registered = (await at.call("register", "hosts", body={"serviceTypes": [NIGHTLY]})).body
        assert registered["renewalPeriod"] == "PT10M"
        assert registered["lockedUntil"] == "2026-09-08T12:10:30Z"
        await fired(at)
        one = await host(at)
        await one.try_load()
        await lapse(at, minutes=9)  # far longer than a lock of the app's own
        assert await statuses(at) == ["Running"]


async def test_a_save_needs_the_version_it_is_for(at: Bench) -> None:
    await fired(at)
    one = await host(at)
    instance = await one.try_load()
    assert (await one.save(instance, state={"n": 1}))["version"] == 1
    assert await one.refused("save", saving(instance, state={"n": 2})) == "StaleInstanceVersion"
    assert (await one.save(instance | {"version": 1}, state={"n": 2}))["version"] == 2


async def test_the_same_save_again_is_answered_as_before(at: Bench) -> None:
    for job_id, more in (
        ("a", {"state": 5}),
        ("b", {"state": 5, "unlock": True}),
        ("c", {"unlock": True, "pendingTimer": "2026-09-08T13:00:00Z"}),
        ("d", {"complete": {"result": 7}}),
    ):
        await fired(at, job_id)
        one = await host(at)
        instance = await one.try_load()
        assert instance["jobId"] == job_id
        assert (await one.save(instance, **more))["version"] == 1
        assert (await one.save(instance, **more))["version"] == 1
        if "complete" not in more and "unlock" in more:
            await at.call("delete", id=job_id)


async def test_what_is_not_saved_anew_stays(at: Bench) -> None:
    activation = {"site": "example.org", "applicationPath": "", "servicePath": ""}
    await fired(at)
    one = await host(at)
    instance = await one.try_load()
    await one.save(instance, state={"n": 1}, activation=activation)
    await one.save(instance | {"version": 1}, unlock=True)
    again = await one.try_load()
    assert (again["state"], again["activation"], again["version"]) == ({"n": 1}, activation, 2)


async def test_a_host_that_lost_its_instance_saves_nothing(at: Bench) -> None:
    await fired(at)
    first = await host(at)
    lost = await first.try_load()
    await first.save(lost, state={"half": True})
    for _ in range(3):
        at.clock.advance(seconds=25)
        await first.renew()
    await at.app.detector.tick()
    await at.take_runs()
    second = await host(at)
    found = await second.try_load()
    assert found["state"] == {"half": True}
    assert found["fencingToken"] > lost["fencingToken"]
    lates: list[dict[str, Any]] = [{"state": {"late": True}}, {"complete": {}}, {"unlock": True}]
    for late in lates:
        assert await first.refused("save", saving(lost | {"version": 1}, **late)) == "InstanceLockLost"
    await second.save(found, complete={"result": {"by": "second"}})
    (run,) = await at.runs("a")
    assert run["result"] == {"by": "second"}
    assert run["attempts"] == 2


async def test_an_instance_whose_hosts_are_lost_again_and_again_fails(at: Bench) -> None:
    await fired(at, every=360000)
    for _ in range(6):
        assert await (await host(at)).try_load()
        await lapse(at, seconds=66)
    (run,) = await at.runs("a")
    assert (run["status"], run["reason"]) == ("Failed", "its hosts were lost 6 times without a save between")


async def test_a_save_counts_losses_anew(at: Bench) -> None:
    await fired(at, every=360000)
    for number in range(8):
        one = await host(at)
        await one.save(await one.try_load(), state=number + 1)
        await lapse(at, seconds=66)
    one = await host(at)
    found = await one.try_load()
    assert (found["state"], found["fencingToken"]) == (8, 1008)


async def test_load_by_number_takes_waiting_idle_and_expired_instances(at: Bench) -> None:
    await fired(at, every=360000)
    one, two = await host(at), await host(at)
    asked = {"jobId": "a", "run": 1}
    first = await one.told("load", asked)
    assert first == await one.told("load", asked)  # again, since the answer was lost
    assert await two.refused("load", asked) == "InstanceLocked"
    await one.save(first, unlock=True, pendingTimer="2026-09-09T12:00:00Z")
    second = await two.told("load", asked)
    assert second["version"] == 1
    at.clock.advance(seconds=66)
    three = await host(at)
    third = await three.told("load", asked)
    assert third["fencingToken"] == second["fencingToken"] + 1
    await three.save(third, complete={})
    missing = await three.ask("load", asked)
    assert missing.status == 404
    assert (await three.ask("load", {"jobId": "nobody", "run": 1})).status == 404


@pytest.mark.parametrize("action", ["BasicRetry", "AggressiveRetry"])
async def test_a_locked_instance_is_tried_again_for_a_while(
    storage: str, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    real = asyncio.sleep

    async def counted(seconds: float) -> None:
        if seconds >= 0.1:
            pauses.append(seconds)
        await real(0)

    monkeypatch.setattr("shared.engine.instances.asyncio.sleep", counted)
    async with bench(storage, INSTANCE_LOCKED_EXCEPTION_ACTION=action) as at:
        await fired(at)
        one, two = await host(at), await host(at)
        instance = await one.try_load()
        assert await two.refused("load", {"jobId": "a", "run": 1}) == "InstanceLocked"
        if action == "BasicRetry":
            assert pauses == [5.0] * 6
        else:
            assert all(0.1 <= pause <= 10 for pause in pauses)
            assert sum(pauses) <= 30
        pauses.clear()

        async def give_back(line: str) -> None:
            if pauses:
                at.wire.hold = None
                await one.save(instance, unlock=True)

        at.wire.hold = give_back
        assert (await two.told("load", {"jobId": "a", "run": 1}))["version"] == 1
        assert len(pauses) == 1


def test_aggressive_retry_waits_at_most_ten_seconds() -> None:
    pauses = instances.aggressive_retry()
    seen = [next(pauses) for _ in range(500)]
    assert min(seen) >= 0.1
    assert 5 < max(seen) <= 10
    assert len(set(seen)) > 400


async def test_a_waiting_run_is_listed_cancelled_and_repeated(at: Bench) -> None:
    await fired(at, every=360000)
    (run,) = await at.runs("a")
    assert (run["status"], run["reason"]) == ("Waiting", f"waits for a host of {NIGHTLY}")
    assert (await at.call("get", "runs", id="a", seq="1")).body == run
    assert (await at.call("resubmit", "runs", id="a", seq="1")).status == 409
    assert (await at.call("cancel", "runs", id="a", seq="1")).status == 202
    one = await host(at)
    assert await one.try_load() is None
    assert (await at.call("resubmit", "runs", id="a", seq="1")).body["status"] == "Waiting"
    assert (await at.call("run_now", "runs", id="a")).status == 202
    assert await one.events() == [NIGHTLY]
    assert {(await one.try_load())["run"] for _ in range(2)} == {2, 3}
    assert await statuses(at) == ["Running", "Running", "Cancelled"]


async def test_a_loaded_run_that_is_cancelled_is_lost_to_its_host(at: Bench) -> None:
    await fired(at, every=360000)
    one = await host(at)
    instance = await one.try_load()
    assert (await at.call("cancel", "runs", id="a", seq="1")).status == 202
    assert (await one.renew(instance))["lost"] == [named(instance)]
    assert await one.refused("save", saving(instance, complete={})) == "InstanceLockLost"
    assert await statuses(at) == ["Cancelled"]


async def test_a_deleted_job_leaves_nothing_to_load_or_save(at: Bench) -> None:
    for name in "abc":
        await fired(at, name)
    one = await host(at)
    loaded = await one.try_load()
    for name in "abc":
        assert (await at.call("delete", id=name)).status == 204
    for kind in ("job", "timer", "run", "idle", "load", "past"):
        assert not await at.rows(kind)
    assert await one.try_load() is None
    saves: list[dict[str, Any]] = [{"state": 1}, {"unlock": True}, {"complete": {}}]
    for more in saves:
        assert await one.refused("save", saving(loaded, **more)) == "InstanceLockLost"


async def test_a_bound_counts_runs_that_wait_for_hosts_and_are_with_them(at: Bench) -> None:
    body = hosted(every=60)
    body["trigger"]["runtimeConfiguration"] = {"concurrency": {"runs": 2, "maximumWaitingRuns": 1}}
    await at.create(id="a", **body)
    for _ in range(4):
        await at.dispatch()
        at.clock.advance(seconds=60)
    assert await statuses(at) == ["Skipped", "Waiting", "Waiting", "Waiting"]
    one = await host(at)
    first, second = await one.try_load(), await one.try_load()
    assert await one.try_load() is None  # the third waits for room
    assert {first["run"], second["run"]} == {1, 2}
    await one.save(first, complete={})
    assert await one.events() == [NIGHTLY]
    assert (await one.try_load())["run"] == 3


async def test_a_bound_that_comes_later_counts_the_runs_that_wait(at: Bench) -> None:
    await fired(at, every=360000)
    body = hosted(every=360000)
    body["trigger"]["runtimeConfiguration"] = {"concurrency": {"runs": 1, "maximumWaitingRuns": 0}}
    assert (await at.call("put", id="a", body=body)).status == 200
    assert (await at.call("run_now", "runs", id="a")).status == 409
    one = await host(at)
    await one.save(await one.try_load(), complete={})
    assert (await at.call("run_now", "runs", id="a")).status == 202


async def test_windows_reach_the_host_in_order(at: Bench) -> None:
    trigger = {
        "type": "SlidingWindow",
        "recurrence": {"frequency": "Minute", "interval": 5, "startTime": "2026-09-08T11:45:00Z"},
        "runtimeConfiguration": {"concurrency": {"runs": 1}},
    }
    await at.create(id="a", serviceType=NIGHTLY, trigger=trigger)
    one = await host(at)
    starts = []
    for _ in range(3):
        await at.dispatch()
        window = await one.try_load()
        starts.append(window["windowStartTime"])
        await one.save(window, complete={})
    assert starts == [f"2026-09-08T11:{minute}:00Z" for minute in (45, 50, 55)]


async def test_two_hosts_load_each_of_200_instances_once(storage: str) -> None:
    async with bench(storage, PARTITIONS="4") as at:
        names = [f"j{number:03d}" for number in range(200)]
        lines = [{"op": "put", "id": name, "job": hosted(every=360000)} for name in names]
        lines += [{"op": "put", "id": f"s{n}", "job": hosted(state="Suspended")} for n in range(10)]
        stored = await at.call("carry_out", "bulk", raw="\n".join(map(json.dumps, lines)).encode())
        assert stored.status == 200
        await at.dispatch()
        done = [await host(at), await host(at)]
        for number in range(5):  # completed before anybody else looks
            instance = await done[0].try_load()
            await done[0].save(instance, complete={"result": number})
            names.remove(instance["jobId"])

        async def load_all(one: Any) -> list[str]:
            found = []
            while instance := await one.try_load():
                found.append(instance["jobId"])
            return found

        first, second = await asyncio.gather(*map(load_all, done))
        assert sorted(first + second) == names
        assert first
        assert second


@pytest.mark.parametrize("action", ["DeleteNothing", "DeleteAll"])
async def test_delete_all_keeps_no_record_of_runs_that_end(storage: str, target: Receiver, action: str) -> None:
    async with bench(storage, INSTANCE_COMPLETION_ACTION=action) as at:
        await fired(at, "a", every=360000)
        await fired(at, "b", every=360000)
        await at.create(id="c", **http_job(target.url, every=360000))
        one = await host(at)
        while instance := await one.try_load():
            if instance["jobId"] == "a":
                save = saving(instance, complete={"result": 1})
                assert await one.told("save", save) == await one.told("save", save)
        await at.call("cancel", "runs", id="b", seq="1")
        await at.dispatch()
        kept = [status for name in "abc" for status in await statuses(at, name)]
        assert kept == (["Succeeded", "Cancelled", "Succeeded"] if action == "DeleteNothing" else [])
        assert (await at.call("get", id="a")).body["lastRun"]["status"] == "Succeeded"
        again = await at.call("resubmit", "runs", id="a", seq="1")
        assert again.status == (202 if action == "DeleteNothing" else 404)


async def test_an_app_without_hosts_pays_one_request_for_them(at: Bench) -> None:
    await at.app.detector.tick()
    assert len([line for line in at.requests if "hosts" in line]) == 1
    assert not [line for line in at.requests if "load:" in line]


async def test_a_waiting_event_is_told_as_soon_as_it_is_raised(at: Bench) -> None:
    one = await host(at)
    waiting = asyncio.create_task(one.told("events", wait="30"))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await fired(at)
    assert [event["serviceType"] for event in (await waiting)["value"]] == [NIGHTLY]


JOB = {"jobId": "a", "run": 1, "fencingToken": 1000, "version": 0}


MALFORMED: list[tuple[str, Any, str]] = [
    ("register", {}, "serviceTypes"),
    ("register", {"serviceTypes": []}, "serviceTypes"),
    ("register", {"serviceTypes": ["TimerJob"]}, "serviceTypes.0"),
    ("register", {"serviceTypes": ["a:b"]}, "serviceTypes.0"),
    ("register", {"serviceTypes": [7]}, "serviceTypes.0"),
    ("register", {"serviceTypes": [f"t{n}" for n in range(21)]}, "serviceTypes"),
    ("register", {"serviceTypes": [NIGHTLY], "lease": "PT1H"}, "lease"),
    ("register", [], "body"),
    ("renew", {"instances": [{"jobId": "a", "fencingToken": 1}]}, "instances.0.run"),
    ("renew", {"instances": [JOB]}, "instances.0.version"),
    ("load", {"jobId": "a:b", "run": 1}, "jobId"),
    ("load", {"jobId": "a", "run": 0}, "run"),
    ("save", JOB | {"version": "0"}, "version"),
    ("save", JOB | {"fencingToken": None}, "fencingToken"),
    ("save", JOB | {"unlock": 1}, "unlock"),
    ("save", JOB | {"unlock": True, "pendingTimer": "2026-09-08T13:00:00"}, "pendingTimer"),
    ("save", JOB | {"unlock": True, "pendingTimer": "soon"}, "pendingTimer"),
    ("save", JOB | {"pendingTimer": "2026-09-08T13:00:00Z"}, "body"),
    ("save", JOB | {"unlock": True, "complete": {}}, "body"),
    ("save", JOB | {"complete": {"status": "Skipped"}}, "complete.status"),
    ("save", JOB | {"activation": {"site": "a b"}}, "activation"),
    ("save", JOB | {"activation": {"site": "a", "servicePath": "x?y"}}, "activation"),
]


async def test_what_is_wrong_with_a_request_is_told_by_its_field(at: Bench) -> None:
    for route, body, field in MALFORMED:
        answer = await at.call(route, "hosts", body=body, host="0" * 32)
        told = [error["field"] for error in answer.body["errors"]]
        assert (answer.status, told) == (400, [field]), (route, body)


async def test_a_result_or_state_that_is_too_large_is_refused_and_nothing_is_lost(at: Bench) -> None:
    await fired(at)
    one = await host(at)
    instance = await one.try_load()
    for more in ({"state": secrets.token_hex(400_000)}, {"complete": {"result": secrets.token_hex(40_000)}}):
        assert (await one.ask("save", saving(instance, **more))).status == 413
    await one.save(instance, state=secrets.token_hex(200_000))


async def test_a_wait_is_bounded(at: Bench) -> None:
    one = await host(at)
    for wait in ("31", "-1", "x"):
        assert (await one.ask("events", wait=wait)).status == 400
