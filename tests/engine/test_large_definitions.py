"""Jobs whose definition takes several properties of a row: everything goes on as with small ones."""

import json
import random
from base64 import b64encode
from datetime import timedelta
from typing import Any

import pytest
from azure.data.tables.aio import TableClient

from shared.jobs.model import CHUNKED_VERSION, FORMAT_VERSION
from shared.storage.table import MAX_BYTES
from tests.engine.test_gate import Slow, bounded, started
from tests.engine.test_steps import call, wait
from tests.harness import NOON, Bench, Receiver, bench, http_job
from tests.web.test_bulk import sent

LARGEST = 256 * 1024


def letters(kib: int, seed: int = 1) -> str:
    """Base64 of random bytes, which cannot be compressed well."""
    return b64encode(random.Random(seed).randbytes(kib * 768)).decode()


def large(job: dict[str, Any], kib: int = 100) -> dict[str, Any]:
    """The job with a body that large."""
    job["action"]["inputs"]["body"] = {"data": letters(kib)}
    return job


async def versions(at: Bench, *kinds: str) -> set[int]:
    return {row["v"] for kind in kinds for row in await at.rows(kind)}


async def test_a_large_job_is_kept_and_sent_whole(at: Bench, target: Receiver) -> None:
    body = large(http_job(target.url, every=3600))
    made = await at.create(id="a", **body)
    assert made["actions"]["Action"]["inputs"]["body"] == {"data": letters(100)}
    assert await versions(at, "job", "timer") == {CHUNKED_VERSION}
    at.requests.clear()
    await at.dispatch("a")
    (hit,) = target.hits
    assert json.loads(hit.body) == {"data": letters(100)}
    assert (await at.call("get", id="a")).body["actions"] == made["actions"]
    assert [run["status"] for run in await at.runs("a")] == ["Succeeded"]


async def test_as_large_as_a_body_may_be(at: Bench, target: Receiver) -> None:
    body = http_job(target.url) | {"id": "a"}
    body["action"]["inputs"]["body"] = ""
    body["action"]["inputs"]["body"] = letters(300)[: LARGEST - len(json.dumps(body))]
    assert len(json.dumps(body)) == LARGEST
    assert (await at.call("create", raw=json.dumps(body).encode())).status == 201
    beyond = json.dumps(body).encode()
    beyond += b" " * (LARGEST + 1 - len(beyond))
    response = await at.call("put", id="b", raw=beyond)
    assert response.status == 413
    assert response.body["errors"] == [
        {"field": "body", "reason": "the body is 262145 bytes long; the limit is 262144"}
    ]


async def test_more_than_256_kib_counts_as_256(storage: str) -> None:
    async with bench(storage, MAX_BODY="1048576") as at:
        response = await at.call("create", raw=b" " * (LARGEST + 1))
        assert response.status == 413


async def test_a_job_gets_small_and_large_again(at: Bench, target: Receiver) -> None:
    async def put(kib: int, version: int) -> None:
        assert (await at.call("put", id="a", body=large(http_job(target.url, every=3600), kib))).status in (
            200,
            201,
        )
        found = (await at.call("get", id="a")).body["actions"]["Action"]["inputs"]["body"]["data"]
        assert found == letters(kib)
        assert await versions(at, "job", "timer") == {version}

    for kib, version in ((200, 2), (90, 2), (1, 1), (150, 2), (1, 1), (1, 1)):
        await put(kib, version)
    for row in await at.rows("timer"):
        assert "definition1" not in row
    assert (FORMAT_VERSION, CHUNKED_VERSION) == (1, 2)
    copied = (await at.call("get", id="a")).body
    assert (await at.call("put", id="b", body={**copied, "id": "b"})).status == 201


async def test_large_jobs_in_bulk(at: Bench, target: Receiver) -> None:
    jobs = [large(http_job(target.url, every=3600), 230) | {"id": f"a-{n}"} for n in range(20)]
    answers = await sent(at, [{"op": "put", "job": job} for job in jobs])
    assert [answer["status"] for answer in answers] == [201] * 20
    page = (await at.call("list", query={"pageSize": "1000"})).body
    assert 15 < len(page["value"]) < 20  # of about 230 KiB each, in an answer of 4 MiB
    await at.dispatch()
    assert len(target.hits) == 20
    answers = await sent(
        at, [{"op": op, "id": f"a-{n}"} for n in range(20) for op in ("suspend", "resume", "delete")]
    )
    assert {answer["status"] for answer in answers} == {200, 204}


async def test_what_a_bound_lets_through_fits_in_a_transaction(at: Bench, target: Receiver) -> None:
    slow = Slow(target)
    job = large(bounded(target.url, 1, 40), 180)
    await at.create(id="a", **job)
    under_way = await started(at, target, 1)
    for _ in range(12):
        assert (await at.call("run_now", "runs", id="a")).status == 202
    job["trigger"]["runtimeConfiguration"]["concurrency"]["runs"] = 50
    sizes: list[int] = []
    commit = at.app.store.table.commit

    async def weighed(partition: str, writes: Any) -> list[str]:
        sizes.append(sum(write.size for write in writes))
        return await commit(partition, writes)

    at.app.store.table.commit = weighed  # type: ignore[method-assign]
    assert (await at.call("put", id="a", body=job)).status == 200
    slow.go.set()
    await under_way
    for _ in range(10):
        await at.dispatch()
        await at.take_runs()
    assert len(target.hits) == 13
    assert max(sizes) < MAX_BYTES


async def test_runs_that_pause_wait_and_are_repeated(at: Bench, target: Receiver) -> None:
    actions = {
        "A": call(target.url),
        "P": wait(60, {"A": ["Succeeded"]}),
        "B": call(target.url, {"P": ["Succeeded"]}),
    }
    actions["B"]["inputs"]["body"] = letters(150)
    await at.create(id="a", trigger={"type": "Once"}, actions=actions)
    await at.dispatch()
    assert await versions(at, "timer") == {CHUNKED_VERSION}
    at.clock.advance(seconds=61)
    await at.dispatch()
    assert [run["status"] for run in await at.runs("a")] == ["Succeeded"]
    assert (await at.call("resubmit", "runs", id="a", seq="1")).status == 202
    await at.take_runs()
    with at.full():
        assert (await at.call("resubmit", "runs", id="a", seq="1")).status == 202
        await at.take_runs()
        waiting = (await at.runs("a"))[0]
        assert waiting["status"] == "Waiting"
    await at.take_runs()
    at.clock.advance(seconds=61)
    await at.dispatch()
    assert [run["status"] for run in await at.runs("a")] == ["Succeeded"] * 3
    assert [hit.body.decode() for hit in target.hits if ":B" in hit.key] == [letters(150)] * 3


async def test_a_page_that_the_service_splits_is_read_on(
    at: Bench, target: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = TableClient.query_entities

    def split(self: TableClient, *given: Any, results_per_page: int | None = None, **more: Any) -> Any:
        return query(self, *given, results_per_page=min(2, results_per_page or 2), **more)

    monkeypatch.setattr(TableClient, "query_entities", split)
    for n in range(7):
        await at.create(**large(http_job(target.url, every=3600), 60), id=f"a-{n}")
    await at.dispatch()
    assert len(target.hits) == 7
    with at.full():
        for n in range(7):
            assert (await at.call("run_now", "runs", id=f"a-{n}")).status == 202
    await at.take_runs()
    assert len(target.hits) == 14
    listed = (await at.call("list", query={"pageSize": "5"})).body
    assert len(listed["value"]) == 5
    rest = (await at.call("list", query={"pageSize": "5", "continuation": listed["continuation"]})).body
    assert len({job["id"] for job in listed["value"] + rest["value"]}) == 7
    assert len(await at.runs("a-3")) == 2


async def test_a_lone_occurrence_of_a_large_job_costs_as_many_requests(storage: str, target: Receiver) -> None:
    counts = []
    for kib in (1, 180):
        async with bench(storage, PARTITIONS="1") as at:
            await at.create(**large(http_job(target.url, every=3600, start=NOON + timedelta(minutes=1)), kib))
            at.clock.advance(minutes=1)
            at.requests.clear()
            await at.app.dispatcher.fire_due("00")
            counts.append(len(at.requests))
    assert len(target.hits) == 2
    assert counts[0] == counts[1]
