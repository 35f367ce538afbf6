"""GET /health: healthy or not, from memory for ten seconds, and figures for those who have the key."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from shared.web.exchange import Response
from tests.harness import Bench, bench
from tests.web.support import ask, hourly

KEY = "the key"
HEALTHY = {"status": "Healthy"}
UNHEALTHY = {"status": "Unhealthy"}
ALL_IS_WELL = HEALTHY | {"problems": [], "detectionAgeSeconds": 0.0, "oldestOverdueSeconds": 0.0, "newerRows": 0}


@pytest.fixture
async def keyed(storage: str) -> AsyncIterator[Bench]:
    """An app that shows its figures to those who have the key."""
    async with bench(storage, HEALTH_KEY=KEY, HEALTH_MAX_DETECTION_AGE="PT5M", HEALTH_MAX_OVERDUE="PT10M") as made:
        yield made


async def health(at: Bench, key: str = "") -> Response:
    return await ask(at, "health", headers={"x-functions-key": key} if key else {})


async def figures(at: Bench) -> Any:
    return (await health(at, KEY)).body


async def test_an_app_that_has_just_been_started_is_healthy(keyed: Bench) -> None:
    response = await health(keyed)
    assert (response.status, response.body) == (200, HEALTHY)
    assert "Content-Type" not in response.headers  # which makes it application/json


async def test_the_key_shows_the_figures_in_a_header_or_the_query(keyed: Bench) -> None:
    await keyed.app.detector.tick()
    assert (await health(keyed, KEY)).body == ALL_IS_WELL
    assert (await ask(keyed, "health", query={"code": KEY})).body == ALL_IS_WELL


@pytest.mark.parametrize("key", ["", "another", KEY.upper(), KEY + " ", "ключ", "\udc80", KEY * 1000])
async def test_another_key_shows_no_figures(keyed: Bench, key: str) -> None:
    assert (await health(keyed, key)).body == HEALTHY
    response = await ask(keyed, "health", query={"code": key})
    assert (response.status, response.body) == (200, HEALTHY)


@pytest.mark.parametrize("key", ["", "x"])
async def test_without_a_key_in_the_settings_nobody_sees_figures(at: Bench, key: str) -> None:
    for query in ({}, {"code": key}):
        assert (await ask(at, "health", headers={"x-functions-key": key}, query=query)).body == HEALTHY


async def test_detection_that_ended_too_long_ago_is_unhealthy_until_it_ends_again(keyed: Bench) -> None:
    await keyed.app.detector.tick()
    keyed.clock.advance(minutes=5)
    assert (await health(keyed)).status == 200
    keyed.clock.advance(seconds=11)
    response = await health(keyed)
    assert (response.status, response.body) == (503, UNHEALTHY)
    told = await figures(keyed)
    assert (told["problems"], told["detectionAgeSeconds"]) == (
        ["detection has not ended a cycle for too long"],
        311,
    )
    await keyed.app.detector.tick()
    keyed.clock.advance(seconds=10)
    assert (await health(keyed)).body == HEALTHY


async def test_detection_that_never_ended_counts_from_the_start_of_the_app(keyed: Bench) -> None:
    keyed.clock.advance(minutes=5)
    assert (await health(keyed)).status == 200
    keyed.clock.advance(seconds=11)
    assert (await health(keyed)).status == 503


async def test_a_timer_overdue_for_too_long_is_unhealthy_until_it_is_fired(keyed: Bench) -> None:
    partition = keyed.app.store.jobs.partition
    elsewhere = next(name for name in "bcdefgh" if partition(name) != partition("a"))
    for name in ("a", elsewhere):
        await keyed.create(id=name, **hourly())
    keyed.clock.advance(minutes=10)
    await keyed.app.detector.tick()
    assert (await figures(keyed))["oldestOverdueSeconds"] == 600
    assert (await health(keyed)).status == 200
    keyed.clock.advance(seconds=11)
    response = await health(keyed)
    assert (response.status, response.body) == (503, UNHEALTHY)
    assert (await figures(keyed))["problems"] == ["a timer is overdue for too long"]
    await keyed.fire_only("a")
    keyed.clock.advance(seconds=10)
    assert (await health(keyed)).status == 503
    await keyed.fire_only(elsewhere)
    keyed.clock.advance(seconds=10)
    assert (await health(keyed)).body == HEALTHY


async def test_a_timer_that_is_to_come_is_not_overdue(keyed: Bench) -> None:
    await keyed.app.detector.tick()
    body = hourly()
    body["trigger"]["skipInitialRun"] = True
    await keyed.create(**body)
    assert await figures(keyed) == ALL_IS_WELL


async def test_all_that_is_wrong_is_told_at_once(keyed: Bench) -> None:
    await keyed.create(**hourly())
    keyed.clock.advance(hours=1)
    assert len((await figures(keyed))["problems"]) == 2


async def test_it_is_answered_from_memory_for_ten_seconds(keyed: Bench) -> None:
    keyed.requests.clear()
    await health(keyed)
    measured = len(keyed.requests)
    assert 0 < measured <= len(keyed.partitions) + 1
    keyed.clock.advance(seconds=9.999)
    await health(keyed, KEY)
    assert len(keyed.requests) == measured
    keyed.clock.advance(seconds=0.001)
    await health(keyed)
    assert len(keyed.requests) == 2 * measured


async def test_many_who_ask_at_once_cost_one_measurement(keyed: Bench) -> None:
    keyed.requests.clear()
    answers = await asyncio.gather(*(health(keyed) for _ in range(50)))
    assert {response.status for response in answers} == {200}
    assert len(keyed.requests) <= len(keyed.partitions) + 1


async def test_a_clock_set_back_does_not_keep_an_old_answer(keyed: Bench) -> None:
    await health(keyed)
    keyed.requests.clear()
    keyed.clock.now -= timedelta(hours=1)
    await health(keyed)
    assert keyed.requests


async def test_storage_that_does_not_answer_is_unhealthy_until_it_does(
    keyed: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def at_once(*_: Any) -> None: ...

    monkeypatch.setattr("azure.core.pipeline.transport.AioHttpTransport.sleep", at_once)
    keyed.wire.lose_answer = lambda line: True
    response = await health(keyed)
    assert (response.status, response.body) == (503, UNHEALTHY)
    assert await figures(keyed) == UNHEALTHY | {"problems": ["storage does not answer"]}
    keyed.wire.lose_answer = lambda line: False
    assert (await health(keyed)).status == 503
    keyed.clock.advance(seconds=10)
    assert (await health(keyed)).body == HEALTHY
