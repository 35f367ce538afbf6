"""PUT creates and replaces under conditions, and what GET answers can be put back."""

import asyncio
from typing import Any

import pytest

from tests.harness import Bench, Receiver, http_job
from tests.web.support import (
    FACTS,
    NOON_TEXT,
    ask,
    daily,
    every_row,
    got,
    left_out,
    put,
    put_in,
    swept,
    tag_of,
    valid,
)


async def test_put_creates_and_then_replaces(at: Bench) -> None:
    made = await put(at, "a", valid())
    assert (made.status, made.headers["Location"]) == (201, "/api/jobs/a")
    at.clock.advance(minutes=1)
    replaced = await put(at, "a", valid(id="a", description="other"))
    assert replaced.status == 200
    assert "Location" not in replaced.headers
    assert replaced.body["description"] == "other"
    assert replaced.body["createdAt"] == NOON_TEXT
    assert replaced.body["updatedAt"] == "2026-09-08T12:01:00Z"
    assert replaced.body["generation"] == made.body["generation"] + 1
    assert tag_of(replaced) != tag_of(made)
    assert await got(at, "a") == replaced.body


async def test_put_replaces_the_whole_job(at: Bench) -> None:
    await put(at, "a", valid())
    replaced = await put(at, "a", left_out("tags"))
    assert "tags" not in replaced.body


async def test_if_match_lets_only_the_version_it_names_be_replaced(at: Bench) -> None:
    first = tag_of(await put(at, "a", valid()))
    second = tag_of(await put(at, "a", valid(description="second"), If_Match=first))
    before = await every_row(at)
    late = await put(at, "a", valid(description="late"), If_Match=first)
    assert late.status == 412
    assert late.headers["Content-Type"] == "application/problem+json"
    assert await every_row(at) == before
    assert (await put(at, "a", valid(description="third"), If_Match=f'"x", {second}')).status == 200
    assert (await put(at, "a", valid(description="fourth"), If_Match="*")).status == 200
    assert (await got(at, "a"))["description"] == "fourth"


@pytest.mark.parametrize("wanted", ["*", '"x"'])
async def test_if_match_makes_no_job(at: Bench, wanted: str) -> None:
    assert (await put(at, "a", valid(), If_Match=wanted)).status == 412
    assert await swept(at) == []


async def test_if_none_match_makes_a_job_only_where_there_is_none(at: Bench) -> None:
    assert (await put(at, "a", valid(), If_None_Match="*")).status == 201
    before = await every_row(at)
    assert (await put(at, "a", valid(description="other"), If_None_Match="*")).status == 412
    assert await every_row(at) == before


async def test_of_two_that_replace_the_same_version_at_once_one_is_refused(at: Bench) -> None:
    tag = tag_of(await put(at, "a", valid()))
    both = await asyncio.gather(*(put(at, "a", valid(description=text), If_Match=tag) for text in ("b", "c")))
    assert sorted(response.status for response in both) == [200, 412]
    won = next(response for response in both if response.status == 200)
    assert (await got(at, "a"))["description"] == won.body["description"]


async def test_of_two_that_create_the_same_id_at_once_one_is_refused(at: Bench) -> None:
    both = await asyncio.gather(*(ask(at, "create", valid(id="a", description=text)) for text in ("b", "c")))
    assert sorted(response.status for response in both) == [201, 409]


async def test_a_wrong_put_leaves_the_job_as_it_is(at: Bench) -> None:
    await put(at, "a", valid())
    before = await every_row(at)
    for body in (put_in("unknown", 1), daily(interval=0), {}, put_in("action.inputs.uri", "x"), valid(id="b")):
        assert (await put(at, "a", body)).status == 400
    assert await every_row(at) == before


@pytest.fixture(params=["fresh", "has-run", "completed", "once", "expression", "long-form"])
async def standing(request: pytest.FixtureRequest, at: Bench, target: Receiver) -> str:
    """A job in one of the states it may be in; its id."""
    recurrence: dict[str, Any] = {"frequency": "second", "interval": "10", "count": 5}
    body = http_job(target.url) | {"trigger": {"type": "Recurrence", "recurrence": recurrence}}
    if request.param == "completed":
        recurrence["count"] = 1
    if request.param == "once":
        body["trigger"] = {"type": "Once", "runAt": "2026-09-09T00:00:00Z"}
    if request.param == "expression":
        recurrence["interval"] = "@parameters('n')"
        body["parameters"] = {"n": 10}
    if request.param == "long-form":
        body["triggers"] = {"Often": body.pop("trigger")}
        body["actions"] = {"Call": body.pop("action")}
    await at.create(id="a", **body)
    if request.param != "fresh":
        at.clock.advance(seconds=1)
        await at.dispatch("a")
        at.clock.advance(seconds=5)
    return "a"


async def test_what_get_answers_can_be_put_back_and_changes_nothing(at: Bench, standing: str) -> None:
    read = await ask(at, "get", job=standing)
    before = await every_row(at)
    again = await put(at, standing, read.body, If_Match=tag_of(read))
    assert (again.status, again.body) == (200, read.body)
    assert tag_of(again) == tag_of(read)
    assert await every_row(at) == before


async def test_what_get_answers_can_be_edited_and_put_back(at: Bench, standing: str) -> None:
    read = await ask(at, "get", job=standing)
    changed = await put(at, standing, read.body | {"description": "edited"})
    assert changed.status == 200
    assert changed.body["description"] == "edited"
    assert {name: changed.body[name] for name in FACTS} == {name: read.body[name] for name in FACTS}


async def test_what_get_answers_makes_a_job_elsewhere(at: Bench) -> None:
    made = await at.create(**valid(id="a"))
    copy = await put(at, "b", made | {"id": "b"})
    assert copy.status == 201
    assert copy.body | {"id": "a"} == made


async def test_read_only_properties_are_not_looked_at(at: Bench) -> None:
    names = [*FACTS, "updatedAt", "generation", "evaluatedRecurrence", "describe", "warnings"]
    made = await at.create(**valid(id="a"), **{name: ["whatever"] for name in names})
    assert made["fired"] == 0
    assert made["createdAt"] == NOON_TEXT


async def test_the_order_of_properties_makes_no_difference(at: Bench) -> None:
    made = await put(at, "a", valid())
    turned = await put(at, "a", dict(reversed(valid().items())))
    assert tag_of(turned) == tag_of(made)
