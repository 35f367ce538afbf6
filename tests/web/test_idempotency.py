"""POST /jobs with an Idempotency-Key: asked twice, made once."""

import asyncio
from typing import Any

import pytest

from shared.web.exchange import Response
from tests.harness import Bench
from tests.web.support import ask, every_row, fields, swept, tag_of, valid


async def post(at: Bench, key: str, body: Any) -> Response:
    return await ask(at, "create", body, headers={"Idempotency-Key": key})


async def test_a_repeat_answers_the_job_that_the_first_request_made(at: Bench) -> None:
    first = await post(at, "order-42", valid())
    before = await every_row(at)
    again = await post(at, "order-42", valid())
    assert (first.status, again.status) == (201, 200)
    assert again.body == first.body
    assert again.headers == first.headers
    assert again.headers["Location"] == f"/api/jobs/{first.body['id']}"
    assert await every_row(at) == before


async def test_the_key_gives_the_id_and_is_not_told_by_it(at: Bench) -> None:
    made = (await post(at, "order-42", valid())).body["id"]
    assert made.startswith("key-")
    assert "order" not in made
    assert (await post(at, "order-43", valid())).body["id"] != made
    assert (await post(at, "Order-42", valid())).body["id"] != made


@pytest.mark.parametrize(
    "body",
    [
        valid(description="other"),
        valid(state="Suspended"),
        valid(historyLimit=99),
        valid(tags=None),
        valid(id="a"),
    ],
    ids=["description", "state", "limit", "left-out", "id"],
)
async def test_another_body_is_refused(at: Bench, body: Any) -> None:
    await post(at, "k", valid())
    before = await every_row(at)
    other = await post(at, "k", body)
    if body.get("id"):  # it names another job, which the key has not made
        assert other.status == 201
        return
    assert (other.status, other.body["title"]) == (422, "Idempotency key reused")
    assert await every_row(at) == before


@pytest.mark.parametrize(
    "body",
    [
        dict(reversed(valid().items())),
        valid(historyLimit=None),
        valid(deleteAfter=None) | {"description": valid()["description"], "deleteAfter": None},
        valid(action=None, actions={"Action": valid()["action"]}),
        valid(trigger=None, triggers={"T": valid()["trigger"]}),
        valid(fired=7, createdAt="whenever"),
    ],
    ids=["order", "default", "null", "actions", "triggers", "read-only"],
)
async def test_the_same_written_otherwise_is_the_same(at: Bench, body: Any) -> None:
    first = await post(at, "k", valid())
    again = await post(at, "k", body)
    assert (again.status, again.body) == (200, first.body)


async def test_what_becomes_of_the_job_later_makes_no_other_body(at: Bench) -> None:
    body = valid(
        trigger={
            "type": "Recurrence",
            "recurrence": {"frequency": "Hour", "interval": 1, "endTime": "2026-09-08T14:30:00Z"},
        }
    )
    made = (await post(at, "k", body)).body["id"]
    await ask(at, "put", body | {"description": "changed"}, job=made)
    await ask(at, "suspend", job=made)
    at.clock.advance(hours=1)
    await ask(at, "resume", job=made)
    await at.fire_only(made)
    at.clock.advance(days=2)  # beyond its end, so that it could not be made any more
    again = await post(at, "k", body)
    assert (again.status, again.body["id"], again.body["description"]) == (200, made, "changed")
    assert (await post(at, "k", body | {"description": "changed"})).status == 422


async def test_a_deleted_job_takes_its_key_along(at: Bench) -> None:
    first = await post(at, "k", valid())
    await ask(at, "delete", job=first.body["id"])
    again = await post(at, "k", valid(description="other"))
    assert (again.status, again.body["id"]) == (201, first.body["id"])
    assert tag_of(again) != tag_of(first)


async def test_with_an_id_the_key_tells_a_repeat_from_a_conflict(at: Bench) -> None:
    first = await post(at, "k", valid(id="a"))
    assert (first.status, first.body["id"]) == (201, "a")
    again = await post(at, "k", valid(id="a"))
    assert (again.status, again.body) == (200, first.body)
    assert (await post(at, "k", valid(id="a", description="other"))).status == 422
    assert (await post(at, "other", valid(id="a"))).status == 409
    assert (await ask(at, "create", valid(id="a"))).status == 409


async def test_a_job_made_without_the_key_is_not_its_own(at: Bench) -> None:
    made = (await post(at, "k", valid())).body["id"]
    await ask(at, "delete", job=made)
    await ask(at, "put", valid(), job=made)
    assert (await post(at, "k", valid())).status == 409


async def test_of_two_that_come_at_once_one_makes_it(at: Bench) -> None:
    both = await asyncio.gather(*(post(at, "k", valid()) for _ in range(5)))
    assert sorted(response.status for response in both) == [200, 200, 200, 200, 201]
    assert len({response.body["id"] for response in both}) == 1
    assert len(await at.rows("job")) == 1


async def test_a_commit_whose_answer_was_lost_is_one_that_was_made(at: Bench) -> None:
    lost = iter([True])
    at.wire.lose_answer = lambda line: "$batch" in line and next(lost, False)
    assert (await post(at, "k", valid())).status == 201
    at.wire.lose_answer = lambda line: False
    assert (await post(at, "k", valid())).status == 200


@pytest.mark.parametrize("key", ["", " ", "a b", "a\n", "ä", "\x7f", "x" * 256])
async def test_a_key_out_of_bounds_is_refused(at: Bench, key: str) -> None:
    refused = await post(at, key, valid())
    assert (refused.status, fields(refused)) == (400, ["Idempotency-Key"])
    assert await swept(at) == []


@pytest.mark.parametrize("key", ["!", "~" * 255, '"8e03978e-40d5-43dd-bc93-6894a57f9324"'])
async def test_a_key_within_bounds_is_taken(at: Bench, key: str) -> None:
    assert (await post(at, key, valid())).status == 201


async def test_a_wrong_body_is_told_of_as_without_a_key(at: Bench) -> None:
    bodies: list[Any] = [{}, [], valid(id="a b", historyLimit=0), valid(unknown=1)]
    for body in bodies:
        plain, keyed = await ask(at, "create", body), await post(at, "k", body)
        assert (keyed.status, keyed.body) == (plain.status, plain.body)
        assert keyed.status == 400
    assert await swept(at) == []
