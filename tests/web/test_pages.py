"""Answers have a bound in bytes; what is beyond is on the next page, and nothing is read for it."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from devhost.azurite import Azurite
from shared.jobs.model import Ended, Status
from shared.storage.history import past_row
from shared.storage.table import Verb, Write
from shared.web import exchange, jobs
from tests.harness import NOON, Bench, Receiver, bench, http_job
from tests.web.support import ask, fields, valid

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_bench(azurite: Azurite) -> AsyncIterator[Bench]:
    """One app for all."""
    async with bench(azurite.connection_string, PARTITIONS="2") as at:
        yield at


async def pages(at: Bench, route: str, job: str | None = None, **query: str) -> list[list[Any]]:
    """What is on each page, up to the last."""
    found: list[list[Any]] = []
    more = query
    while len(found) < 100:
        response = await ask(at, route, job=job, query=more)
        assert response.status == 200, response.body
        found.append(response.body["value"])
        if response.body["continuation"] is None:
            return found
        more = query | {"continuation": response.body["continuation"]}
    raise AssertionError("the pages have no end")


def size(items: list[Any]) -> int:
    return len(json.dumps(items, ensure_ascii=False).encode())


def bounded_by(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Has answers end at so many bytes."""
    for module in (exchange, jobs):
        monkeypatch.setattr(module, "MAX_ANSWER", size)


def flat(of: list[list[Any]]) -> list[Any]:
    return [item for page in of for item in page]


async def recorded(at: Bench, job_id: str, numbers: range, limit: int = 100, letters: int = 0) -> None:
    """Stores the records of runs that a job has had."""
    await at.create(
        **http_job("https://example.org/", id=job_id, historyLimit=limit, start=NOON + timedelta(days=1))
    )
    for seq in numbers:
        record = Ended(
            seq=seq,
            status=Status.SUCCEEDED,
            scheduled=NOON,
            started=NOON,
            ended=NOON,
            attempts=1,
            reason=f"{seq}" * letters,
            actions={},
        )
        write = Write(Verb.PUT, past_row(job_id, record, limit))
        await at.app.store.table.commit(at.app.store.jobs.partition(job_id), [write])


async def test_a_page_of_jobs_ends_at_its_bound(shared_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    at = shared_bench
    names = [f"large-{n:02}" for n in range(12)]
    for name in names:
        body = valid(id=name)
        body["parameters"]["large"] = name * 1000
        await at.create(**body)
    bounded_by(monkeypatch, 30_000)
    found = await pages(at, "list", prefix="large-")
    assert sorted(job["id"] for job in flat(found)) == names
    assert max(map(size, found)) <= 30_000 + 100
    assert max(map(len, found)) == 3  # of about 9,000 bytes each
    filtered = await pages(at, "list", prefix="large-", state="Enabled", pageSize="2")
    assert sorted(job["id"] for job in flat(filtered)) == names
    bounded_by(monkeypatch, 10)
    assert [len(page) for page in await pages(at, "list", prefix="large-")] == [1] * 12


async def test_runs_come_in_pages_newest_first(shared_bench: Bench) -> None:
    at = shared_bench
    await recorded(at, "ring", range(7, 17), limit=10)
    for page_size, lengths in (("4", [4, 4, 2]), ("5", [5, 5]), ("10", [10]), ("1000", [10])):
        found = await pages(at, "runs", job="ring", pageSize=page_size)
        assert [len(page) for page in found] == lengths
        assert [run["seq"] for run in flat(found)] == list(range(16, 6, -1))


async def test_a_page_of_runs_ends_at_its_bound(shared_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    at = shared_bench
    await recorded(at, "bounded", range(1, 51), letters=1000)
    bounded_by(monkeypatch, 20_000)
    found = await pages(at, "runs", job="bounded")
    assert [run["seq"] for run in flat(found)] == list(range(50, 0, -1))
    assert max(map(size, found)) <= 20_000 + 200
    at.requests.clear()
    await ask(at, "runs", job="bounded")
    read = [line for line in at.requests if "select" not in line]
    assert len(read) == 2, read  # the job, and the records of the first part; no more are read than are shown


async def test_pages_that_were_not_given_are_refused(shared_bench: Bench) -> None:
    await recorded(shared_bench, "asked", range(1, 3))
    for wrong in ("x", "-1", "1.5", "99999999999", "\u0661"):
        response = await ask(shared_bench, "runs", job="asked", query={"continuation": wrong})
        assert (response.status, fields(response)) == (400, ["continuation"])
    for wrong in ("0", "1001", "x"):
        response = await ask(shared_bench, "runs", job="asked", query={"pageSize": wrong})
        assert (response.status, fields(response)) == (400, ["pageSize"])
    assert await pages(shared_bench, "runs", job="asked", continuation="0") == [[]]
    assert [run["seq"] for run in flat(await pages(shared_bench, "runs", job="asked", continuation="1"))] == [1]


async def test_a_run_is_read_alone(shared_bench: Bench) -> None:
    at = shared_bench
    await recorded(at, "alone", range(1, 60))
    at.requests.clear()
    response = await ask(at, "run", job="alone", seq="44")
    assert response.body["seq"] == 44
    assert len(at.requests) == 2, at.requests


async def test_a_record_in_a_slot_of_another_limit_is_found(shared_bench: Bench) -> None:
    at = shared_bench
    await recorded(at, "moved", range(1, 10), limit=20)
    job = await at.app.store.jobs.get("moved")
    assert job
    row = await at.app.store.table.get(at.app.store.jobs.partition("moved"), "past:moved:00009")
    assert row
    partition = at.app.store.jobs.partition("moved")
    elsewhere = {**row, "RowKey": "past:moved:00015"}
    await at.app.store.table.commit(partition, [Write(Verb.DELETE, row), Write(Verb.INSERT, elsewhere)])
    assert (await ask(at, "run", job="moved", seq="9")).body["seq"] == 9
    assert (await ask(at, "run", job="moved", seq="10")).status == 404
    assert [run["seq"] for run in flat(await pages(at, "runs", job="moved", pageSize="3"))] == list(
        range(9, 0, -1)
    )


async def test_runs_in_every_state_are_on_the_pages(shared_bench: Bench, target: Receiver) -> None:
    at = shared_bench
    await at.create(**http_job(target.url, id="states"))
    await at.dispatch("states")
    await at.fire_only("states")
    for _ in range(3):
        assert (await ask(at, "run_now", job="states")).status == 202
    found = flat(await pages(at, "runs", job="states", pageSize="2"))
    assert [run["seq"] for run in found] == sorted((run["seq"] for run in found), reverse=True)
    for run in found:
        assert (await ask(at, "run", job="states", seq=str(run["seq"]))).body == run
