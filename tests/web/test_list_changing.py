"""Many jobs, listed while others come and go; and what a listing costs."""

import asyncio
import base64
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from devhost.azurite import Azurite
from tests.harness import Bench, bench
from tests.web.support import ask, valid
from tests.web.test_bulk import sent

pytestmark = pytest.mark.asyncio(loop_scope="module")

MANY = 5000
STANDING = {f"standing-{n:04}" for n in range(0, MANY, 2)}
PASSING = [f"passing-{n:04}" for n in range(1, MANY, 2)]
JOB = {"trigger": {"type": "Once", "runAt": "2030-01-01T00:00:00Z"}, "action": valid()["action"]}


def puts(names: Any) -> list[Any]:
    return [{"op": "put", "id": name, "job": JOB} for name in names]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crowded(azurite: Azurite) -> AsyncIterator[Bench]:
    async with bench(azurite.connection_string, PARTITIONS="8") as at:
        answers = await sent(at, puts(sorted(STANDING) + PASSING))
        assert Counter(answer["status"] for answer in answers) == {201: MANY}
        yield at


async def pages(at: Bench, **query: str) -> AsyncIterator[list[str]]:
    """The ids on each page."""
    more = query
    while True:
        response = await ask(at, "list", query=more)
        assert response.status == 200, response.body
        yield [job["id"] for job in response.body["value"]]
        if response.body["continuation"] is None:
            return
        more = query | {"continuation": response.body["continuation"]}


async def test_a_prefix_costs_one_range_read_in_each_partition_and_page(crowded: Bench) -> None:
    crowded.requests.clear()
    found = [page async for page in pages(crowded, prefix="standing-01")]
    assert sorted(found[0]) == sorted(name for name in STANDING if name.startswith("standing-01"))
    assert len(found) == 1
    assert len(crowded.requests) == len(crowded.partitions)

    crowded.requests.clear()
    found = [page async for page in pages(crowded, prefix="standing-0", pageSize="100")]
    assert len(found) == 5
    # Where a page ends within a partition, the next one goes on there.
    assert len(crowded.requests) <= len(crowded.partitions) + len(found) - 1
    assert all("PartitionKey eq" in line and "RowKey ge" in line for line in crowded.requests)


def next_of(continuation: str | None) -> str:
    """The id of the job that the next page starts with."""
    key = json.loads(base64.urlsafe_b64decode(continuation))[1] if continuation else ""
    return str(key).removeprefix("job:")


async def test_every_job_that_stands_throughout_is_seen_once_while_others_come_and_go(crowded: Bench) -> None:
    seen: Counter[str] = Counter()
    coming = 0
    query = {"pageSize": "400"}
    while True:
        response = await ask(crowded, "list", query=query)
        seen.update(job["id"] for job in response.body["value"])
        continuation = response.body["continuation"]
        if continuation is None:
            break
        query["continuation"] = continuation
        gone = [PASSING.pop(number) for number in range(0, 70, 10)]
        if next_of(continuation) in PASSING:  # the next page is to begin where no job is any more
            gone.append(next_of(continuation))
            PASSING.remove(gone[-1])
        new = [f"{name}-{coming}" for name in ("a", "standing-2500", "zz")]
        coming += 1
        answers = await sent(crowded, [{"op": "delete", "id": name} for name in gone] + puts(new))
        assert sorted({answer["status"] for answer in answers}) == [201, 204]
    assert {name: seen[name] for name in STANDING} == dict.fromkeys(STANDING, 1)
    assert max(seen.values()) == 1
    assert coming >= 10


async def test_listings_side_by_side_do_not_meet(crowded: Bench) -> None:
    async def whole(size: str) -> list[str]:
        return [name async for page in pages(crowded, pageSize=size, prefix="standing-1") for name in page]

    one, other = await asyncio.gather(whole("77"), whole("200"))
    assert one == other
    assert len(one) == len(set(one)) == 500
