"""Jobs are listed in pages, with filters."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from devhost.azurite import Azurite
from tests.audit import audit
from tests.harness import Bench, bench
from tests.web.support import ask, daily, got, valid

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVERY_ID = [f"{'odd' if n % 2 else 'even'}-{n:02}" for n in range(40)]


async def pages(at: Bench, **query: str) -> list[list[str]]:
    """The ids on each page, up to the last."""
    found, more = [], query
    while True:
        response = await ask(at, "list", query=more)
        assert response.status == 200, response.body
        found.append([job["id"] for job in response.body["value"]])
        assert len(found) < 100
        if response.body["continuation"] is None:
            return found
        more = query | {"continuation": response.body["continuation"]}


async def listed(at: Bench, **query: str) -> list[str]:
    return [name for page in await pages(at, **query) for name in page]


def job(n: int, name: str) -> dict[str, Any]:
    body = valid(id=name, tags={"third": str(n % 3), "a:b": "c:d"})
    if n % 10 == 5:
        body["state"] = "Suspended"
    if n % 10 == 0:
        body["trigger"] = daily(endTime="2026-09-08T13:00:00Z")["trigger"] | {"skipInitialRun": True}
    return body


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def many(azurite: Azurite) -> AsyncIterator[Bench]:
    """Forty jobs in four partitions, ids from `even-00` and `odd-01` on; every tenth Completed, or Suspended."""
    async with bench(azurite.connection_string, PARTITIONS="4") as at:
        for n, name in enumerate(EVERY_ID):
            await at.create(**job(n, name))
        assert {len(await at.app.store.table.scan(p, "job:", "job;")) > 2 for p in at.partitions} == {True}
        yield at
        assert await audit(at.app.store) == []


@pytest.mark.parametrize("size", ["1", "3", "39", "40", "1000"])
async def test_pages_hold_every_job_exactly_once_in_an_order_that_stays(many: Bench, size: str) -> None:
    found = await pages(many, pageSize=size)
    assert max(map(len, found)) <= int(size)
    assert sorted(name for page in found for name in page) == sorted(EVERY_ID)
    assert [name for page in found for name in page] == await listed(many)


async def test_a_listed_job_is_as_get_answers_it(many: Bench) -> None:
    for one in (await ask(many, "list", query={"pageSize": "5"})).body["value"]:
        assert one == await got(many, one["id"])


@pytest.mark.parametrize("size", ["1", "4", "100"])
@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"prefix": "odd"}, [job for job in EVERY_ID if job.startswith("odd")]),
        ({"prefix": "odd-0"}, ["odd-01", "odd-03", "odd-05", "odd-07", "odd-09"]),
        ({"prefix": "odd-01"}, ["odd-01"]),
        ({"prefix": "Odd"}, []),
        ({"prefix": "."}, []),
        ({"prefix": "a" * 128}, []),
        ({"state": "Completed"}, ["even-00", "even-10", "even-20", "even-30"]),
        ({"state": "Suspended"}, ["odd-05", "odd-15", "odd-25", "odd-35"]),
        ({"state": "Enabled", "prefix": "even-1"}, ["even-12", "even-14", "even-16", "even-18"]),
        ({"tag": "third:2"}, EVERY_ID[2::3]),
        ({"tag": "third:"}, []),
        ({"tag": "Third:2"}, []),
        ({"tag": "a:b:c:d", "prefix": "even-00"}, ["even-00"]),
        ({"tag": "third:1", "state": "Completed"}, ["even-10"]),
    ],
    ids=str,
)
async def test_filters_find_what_they_name_on_pages_of_any_size(
    many: Bench, query: dict[str, str], wanted: list[str], size: str
) -> None:
    found = await pages(many, pageSize=size, **query)
    assert sorted(name for page in found for name in page) == sorted(wanted)
    assert max(map(len, found)) <= int(size)


async def test_a_filter_does_not_cost_a_request_for_each_job_looked_at(many: Bench) -> None:
    many.requests.clear()
    assert await pages(many, tag="third:x", pageSize="1") == [[]]
    assert len(many.requests) == len(many.partitions)


async def test_a_page_costs_no_more_than_it_holds(many: Bench) -> None:
    many.requests.clear()
    assert len((await ask(many, "list", query={"pageSize": "2"})).body["value"]) == 2
    assert len(many.requests) == 1
    assert "$top=3" in many.requests[0]


async def test_a_job_deleted_between_two_pages_ends_no_listing(many: Bench) -> None:
    first = await ask(many, "list", query={"pageSize": "1"})
    rest = await listed(many, pageSize="1", continuation=first.body["continuation"])
    await ask(many, "delete", job=rest[0])
    try:
        assert await listed(many, continuation=first.body["continuation"]) == rest[1:]
    finally:
        await many.create(**job(EVERY_ID.index(rest[0]), rest[0]))
