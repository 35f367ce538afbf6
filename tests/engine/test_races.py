"""Operations that meet dispatch, on purpose, at each of its requests."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.harness import NOON, Bench, Receiver, http_job


async def meeting(at: Bench, number: int, intruder: Callable[[], Awaitable[Any]], work: Awaitable[Any]) -> Any:
    """Carries out `work`, with the intruder let in before its request of that number."""
    at.requests.clear()
    inside = False

    async def hold(line: str) -> None:
        nonlocal inside
        if len(at.requests) == number and not inside:
            inside = True
            await intruder()

    at.wire.hold = hold
    try:
        return await work
    finally:
        at.wire.hold = None


@pytest.mark.parametrize("number", range(1, 5))
@pytest.mark.parametrize("changed", [False, True], ids=["equal", "changed"])
async def test_an_update_that_meets_dispatch(at: Bench, target: Receiver, number: int, changed: bool) -> None:
    await at.create(id="a", **http_job(target.url, every=60))
    body = http_job(target.url, every=30 if changed else 60, description="new")

    async def put() -> None:
        assert (await at.call("put", id="a", body=body)).status == 200

    await meeting(at, number, put, at.dispatch("a"))
    assert len(at.requests) >= number
    job = (await at.call("get", id="a")).body
    assert job["description"] == "new"
    await at.dispatch("a")
    keys = [hit.key for hit in target.hits]
    assert len(keys) == len(set(keys))
    if not changed:
        assert [hit.scheduled for hit in target.hits] == [NOON]


@pytest.mark.parametrize("number", range(1, 5))
async def test_a_delete_that_meets_dispatch(at: Bench, target: Receiver, number: int) -> None:
    await at.create(id="a", **http_job(target.url, every=60))

    async def delete() -> None:
        assert (await at.call("delete", id="a")).status == 204

    await meeting(at, number, delete, at.dispatch("a"))
    assert len(at.requests) >= number
    for kind in ("job", "timer", "run", "past"):
        assert not await at.rows(kind)
    hits = len(target.hits)
    at.clock.advance(minutes=3)
    await at.dispatch("a")
    assert len(target.hits) == hits <= 1


@pytest.mark.parametrize("operation", ["put", "delete"])
@pytest.mark.parametrize("number", range(1, 6))
async def test_dispatch_that_meets_an_operation(at: Bench, target: Receiver, operation: str, number: int) -> None:
    await at.create(id="a", **http_job(target.url, every=60))
    body = http_job(target.url, every=60, description="new") if operation == "put" else None
    answer = await meeting(at, number, lambda: at.dispatch("a"), at.call(operation, id="a", body=body))
    assert answer.status == {"put": 200, "delete": 204}[operation]
    await at.dispatch("a")
    keys = [hit.key for hit in target.hits]
    assert len(keys) == len(set(keys)) <= 1
    if operation == "put":
        assert (await at.call("get", id="a")).body["description"] == "new"
        assert len(keys) == 1


async def test_two_creates_of_one_id_make_one_job(at: Bench, target: Receiver) -> None:
    answers = await asyncio.gather(
        *(at.call("create", body=http_job(target.url, id="a", every=60)) for _ in range(5))
    )
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409, 409]
    await at.dispatch("a")
    assert len(target.hits) == 1


async def test_two_puts_of_one_id_make_one_job(at: Bench, target: Receiver) -> None:
    answers = await asyncio.gather(
        *(at.call("put", id="a", body=http_job(target.url, every=60, description=str(n))) for n in range(5))
    )
    assert sorted(answer.status for answer in answers) == [200, 200, 200, 200, 201]
    assert (await at.call("get", id="a")).body["generation"] == 5


async def test_a_create_whose_answer_was_lost_is_a_create(at: Bench, target: Receiver) -> None:
    lost = iter([True])
    at.wire.lose_answer = lambda line: "$batch" in line and next(lost, False)
    assert (await at.call("create", body=http_job(target.url, id="a"))).status == 201


async def test_a_put_whose_answer_was_lost_is_done_once(at: Bench, target: Receiver) -> None:
    await at.create(id="a", **http_job(target.url))
    lost = iter([True])
    at.wire.lose_answer = lambda line: "$batch" in line and next(lost, False)
    answer = await at.call("put", id="a", body=http_job(target.url, description="new"))
    assert (answer.status, answer.body["generation"]) == (200, 2)


async def test_a_herd_and_updates_meet(at: Bench, target: Receiver) -> None:
    for number in range(30):
        await at.create(id=f"j{number}", **http_job(target.url, every=60, start=NOON))
    updates = [
        at.call("put", id=f"j{n}", body=http_job(target.url, every=60, start=NOON, description="new"))
        for n in range(0, 30, 2)
    ]
    _, *answers = await asyncio.gather(at.dispatch(), *updates)
    assert all(answer is not None and answer.status == 200 for answer in answers)
    await at.dispatch()
    assert sorted(hit.job for hit in target.hits) == sorted(f"j{n}" for n in range(30))
