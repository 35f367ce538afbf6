"""What the instance store does by its own description, sentence by sentence (docs/activation.md has the table)."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from shared.jobs.instance import ANY, Activation
from shared.storage.hosts import Wake
from tests.activation.support import NIGHTLY, fired, host, hosted, lapse
from tests.harness import NOON, Bench, Receiver, bench

PARAMETERS = {"site": "apps.example.org", "applicationPath": "/reports", "servicePath": "nightly.svc"}


def at_target(target: Receiver) -> dict[str, str]:
    return {"site": target.url.removesuffix("/hook"), "applicationPath": "app", "servicePath": "nightly"}


async def raised(at: Bench) -> set[str]:
    return (await at.app.store.hosts.census()).raised


async def test_detection_finds_runnable_and_activatable_instances(at: Bench) -> None:
    await fired(at)
    await at.app.store.hosts.clear(NIGHTLY)
    await at.app.detector.tick()
    assert await raised(at) == {NIGHTLY, ANY}


async def test_a_capable_host_is_told_of_a_runnable_instance(at: Bench) -> None:
    capable, other = await host(at, "acme/other", NIGHTLY), await host(at, "acme/other")
    assert await capable.events() == []
    await fired(at)
    assert (await capable.told("events", wait="0"))["value"] == [
        {"type": "HasRunnableWorkflow", "serviceType": NIGHTLY}
    ]
    assert await other.events() == []


async def test_a_host_activated_by_the_generic_host_runs_the_instance(at: Bench, target: Receiver) -> None:
    await fired(at, activation=at_target(target))
    await at.app.detector.tick()
    (hit,) = target.hits
    assert (hit.method, hit.path) == ("POST", "/app/nightly")
    assert json.loads(hit.body) == {"activationType": "WAS", "serviceType": NIGHTLY} | at_target(target)
    activated = await host(at)
    instance = await activated.try_load()
    await activated.save(instance, complete={})
    assert [run["status"] for run in await at.runs("a")] == ["Succeeded"]


async def test_an_unlocked_instance_whose_pending_timer_has_expired_is_runnable(at: Bench) -> None:
    await fired(at)
    one = await host(at)
    until = (at.clock() + timedelta(seconds=20)).isoformat().replace("+00:00", "Z")
    await one.save(await one.try_load(), state={"n": 1}, unlock=True, pendingTimer=until)
    assert [run["reason"] for run in await at.runs("a")] == [f"goes on at {until}"]
    at.clock.advance(seconds=19)
    await at.dispatch()
    await at.app.detector.tick()
    assert await one.events() == []
    assert await one.try_load() is None
    at.clock.advance(seconds=1)
    await at.dispatch()
    assert await one.events() == [NIGHTLY]
    assert (await one.try_load())["state"] == {"n": 1}


async def test_an_instance_whose_lock_has_expired_is_runnable(at: Bench) -> None:
    await fired(at)
    first = await host(at)
    lost = await first.try_load()
    await lapse(at, seconds=64)  # the lock lasts 60 s, and others count it as expired 5 s later
    second = await host(at)
    assert await second.try_load() is None
    await lapse(at, seconds=2)
    assert await second.events() == [NIGHTLY]
    found = await second.try_load()
    assert (found["run"], found["fencingToken"]) == (lost["run"], lost["fencingToken"] + 1)


async def test_an_unlocked_instance_that_is_executing_is_runnable(at: Bench) -> None:
    await fired(at)
    one = await host(at)
    instance = await one.try_load()
    await one.save(instance, state=[1], unlock=True)
    assert await one.events() == [NIGHTLY]
    again = await one.try_load()
    assert (again["state"], again["version"]) == ([1], 1)


async def test_a_suspended_job_has_no_runnable_instance(at: Bench) -> None:
    await at.create(id="a", **hosted(state="Suspended"))
    one = await host(at)
    await at.dispatch()
    await at.app.detector.tick()
    assert await one.events() == []
    assert await one.try_load() is None


async def test_a_completed_instance_is_not_runnable(at: Bench) -> None:
    await fired(at)
    one = await host(at)
    await one.save(await one.try_load(), complete={"status": "Failed", "reason": "no paper"})
    await lapse(at, minutes=10)
    two = await host(at)
    assert await two.events() == []
    assert await two.try_load() is None
    (run,) = await at.runs("a")
    assert (run["status"], run["reason"]) == ("Failed", "no paper")


async def test_has_runnable_is_silent_until_try_load_runnable_is_called_once(storage: str) -> None:
    async with bench(storage, PARTITIONS="1", DETECTION_PERIOD="PT1S") as at:
        for name in "abc":
            await fired(at, name, every=36000)
        one = await host(at)
        at.clock.advance(seconds=2)
        at.requests.clear()
        await at.app.detector.tick()
        assert not [line for line in at.requests if "$batch" in line and "hosts" in line]
        assert await raised(at) == {NIGHTLY}
        assert await one.try_load()
        assert await raised(at) == set()
        at.clock.advance(seconds=2)
        await at.app.detector.tick()  # two more wait
        assert await raised(at) == {NIGHTLY}


async def test_a_capable_host_loads_the_instance(at: Bench) -> None:
    await fired(at, parameters={"top": 10})
    one = await host(at)
    instance = await one.try_load()
    assert instance["parameters"] == {"top": 10}
    assert instance["scheduledTime"] == "2026-09-08T12:00:00Z"
    assert instance["fencingToken"] == 1000
    (run,) = await at.runs("a")
    assert run["status"] == "Running"
    (row,) = await at.rows("run")
    assert row["owner"] == one.id


@pytest.mark.parametrize(
    "other", ["acme/nightl", "acme/nightly2", "acme", "acme/nightly/x", "acme,nightly", "Acme/nightly"]
)
async def test_only_an_equal_service_type_makes_a_host_capable(at: Bench, other: str) -> None:
    await fired(at)
    if "," in other:
        refused = await at.call("register", "hosts", body={"serviceTypes": [other]})
        assert refused.status == 400
        return
    incapable = await host(at, other)
    assert await incapable.try_load() is None
    assert await incapable.refused("load", {"jobId": "a", "run": 1}) == "about:blank"
    assert await (await host(at)).try_load()


async def test_an_instance_is_activatable_while_no_capable_host_lives(at: Bench) -> None:
    one = await host(at)
    await fired(at)
    await at.app.detector.tick()
    assert await raised(at) == {NIGHTLY}
    await lapse(at, seconds=66)  # the host has not renewed its lease
    assert await raised(at) == {NIGHTLY, ANY}
    assert await one.refused("try_load") == "HostLockExpired"


async def test_has_activatable_is_silent_until_query_activatable_is_called_once(at: Bench) -> None:
    generic = await host(at, ANY, activationType="WAS")
    await fired(at, activation=PARAMETERS)
    for _ in range(2):
        await at.app.detector.tick()
        assert await raised(at) == {NIGHTLY, ANY}
        assert (await generic.told("events", wait="0"))["value"] == [
            {"type": "HasActivatableWorkflow", "serviceType": ANY}
        ]
        at.requests.clear()
        at.clock.advance(seconds=61)
        await generic_renewed(at, generic.id)
        await at.app.detector.tick()
        assert not [line for line in at.requests if "event:Any" in line]
        await generic.told("query_activatable")
        assert await generic.events() == []
        at.clock.advance(seconds=61)
        await generic_renewed(at, generic.id)


async def generic_renewed(at: Bench, host_id: str) -> None:
    """Lets a host's lease last on, as if it had been renewed in time."""
    hosts = at.app.store.hosts
    found = await hosts.get(host_id)
    assert found
    await hosts.renew(replace(found, locked_until=at.clock() + timedelta(seconds=60)))


async def test_the_generic_host_gets_the_activation_parameters(at: Bench) -> None:
    generic = await host(at, ANY, activationType="WAS")
    await host(at, "acme/served")
    await fired(at, "a", activation=PARAMETERS)
    await fired(at, "b", activation=PARAMETERS)
    await fired(at, "c", service_type="acme/served", activation=PARAMETERS)
    await fired(at, "d", service_type="acme/nowhere")
    assert (await generic.told("query_activatable"))["value"] == [{"serviceType": NIGHTLY} | PARAMETERS]
    assert await (await host(at)).refused("query_activatable") == "InstancePersistenceError"


async def test_an_activation_type_other_than_was_is_an_instance_persistence_error(at: Bench) -> None:
    for activation_type in ("IIS", "was", "", None):
        body = {"serviceTypes": [ANY], "activationType": activation_type}
        refused = await at.call("register", "hosts", body=body)
        assert (refused.status, refused.body["type"]) == (400, "InstancePersistenceError")
    assert not (await at.app.store.hosts.census()).hosts


async def test_a_generic_host_is_of_the_service_type_any_and_loads_nothing_itself(at: Bench) -> None:
    await fired(at)
    generic = await host(at, ANY, activationType="WAS")
    assert await generic.refused("try_load") == "InstancePersistenceError"
    for body in (
        {"serviceTypes": [ANY, NIGHTLY], "activationType": "WAS"},
        {"serviceTypes": [NIGHTLY], "activationType": "WAS"},
    ):
        assert (await at.call("register", "hosts", body=body)).status == 400
    assert (await at.call("create", body=hosted(service_type=ANY))).status == 400


@pytest.mark.parametrize(
    ("site", "application", "service", "endpoint"),
    [
        ("apps.example.org", "reports", "nightly.svc", "https://apps.example.org/reports/nightly.svc"),
        ("apps.example.org:8443", "/reports/", "/a/b.svc", "https://apps.example.org:8443/reports/a/b.svc"),
        ("http://127.0.0.1:8088/", "", "", "http://127.0.0.1:8088"),
        ("https://example.org/base", "app", "", "https://example.org/base/app"),
    ],
)
def test_site_application_and_service_name_the_endpoint(
    site: str, application: str, service: str, endpoint: str
) -> None:
    assert Activation(site=site, application_path=application, service_path=service).endpoint == endpoint


async def test_save_stores_the_activation_parameters(at: Bench, target: Receiver) -> None:
    await fired(at)
    one = await host(at)
    await one.save(await one.try_load(), activation=at_target(target))
    await lapse(at, seconds=61)
    assert not target.hits
    await lapse(at, seconds=61)  # its lock has run out: it waits again, and nobody alive can load it
    await lapse(at, seconds=61)
    assert [hit.path for hit in target.hits] == ["/app/nightly"]
    assert (await (await host(at)).try_load())["activation"] == at_target(target)


async def test_the_detection_period_counts_from_the_end_of_the_previous_cycle(storage: str) -> None:
    async with bench(storage, PARTITIONS="1", DETECTION_PERIOD="PT30S") as at:
        await at.app.detector.tick()
        await fired(at)
        await at.app.store.hosts.clear(NIGHTLY)
        at.clock.advance(seconds=29)
        assert not await at.app.detector.tick()
        assert await raised(at) == set()
        at.clock.advance(seconds=1)
        assert await at.app.detector.tick()
        assert await raised(at) == {NIGHTLY, ANY}


async def test_activation_is_tried_again_after_a_growing_while_until_a_host_registers(
    at: Bench, target: Receiver
) -> None:
    await fired(at, every=360000, activation=at_target(target))
    times = []
    for _ in range(60):  # a cycle of detection each minute
        before = len(target.hits)
        await at.app.detector.tick()
        times += [int((at.clock() - NOON).total_seconds() // 60)] * (len(target.hits) - before)
        at.clock.advance(seconds=60)
    assert times == [0, 1, 2, 4, 8, 16, 32]
    await host(at)
    assert (await at.app.store.hosts.census()).wakes == {}


async def test_an_activation_that_fails_stops_no_other(at: Bench, target: Receiver) -> None:
    nowhere = {"site": "http://127.0.0.1:9"}
    await fired(at, "a", service_type="acme/dead", activation=nowhere)
    await fired(at, "b", activation=at_target(target))
    await at.app.detector.tick()
    assert len(target.hits) == 1


async def test_two_cycles_side_by_side_activate_once(at: Bench, target: Receiver) -> None:
    await fired(at, activation=at_target(target))
    wake = Wake(service_type=NIGHTLY, tries=1, next_at=at.clock() + timedelta(seconds=30))
    assert await at.app.store.hosts.claim(wake)
    assert not await at.app.store.hosts.claim(wake)
    await at.app.detector.tick()
    assert not target.hits


async def test_activation_obeys_the_rules_for_calls_that_leave_the_app(at: Bench, target: Receiver) -> None:
    closed = {"site": "http://169.254.169.254"}
    refused = await at.call("create", body=hosted(activation=closed))
    assert (refused.status, [error["field"] for error in refused.body["errors"]]) == (400, ["activation.site"])
    await fired(at, "a")
    one = await host(at)
    await one.save(await one.try_load(), activation=closed, unlock=True)
    await fired(at, "b", service_type="acme/other", activation=at_target(target))
    await lapse(at, seconds=66)
    wakes = (await at.app.store.hosts.census()).wakes
    assert {name: wake.tries for name, wake in wakes.items()} == {NIGHTLY: 1, "acme/other": 1}
    assert [hit.path for hit in target.hits] == ["/app/nightly"]
