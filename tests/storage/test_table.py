"""The table: transactions all or nothing, ranges, packing."""

from dataclasses import dataclass
from typing import Any

import pytest

from shared.errors import Misconfigured
from shared.storage.rows import job_range, prefix_range
from shared.storage.table import MAX_ROWS, Refused, StoreFailed, Table, Verb, Write, pack_units
from shared.wiring import build
from tests.harness import Bench, Clock, settings_for


@pytest.fixture
def table(at: Bench) -> Table:
    return at.app.store.table


def put(key: str, **properties: Any) -> Write:
    return Write(Verb.PUT, {"RowKey": key, **properties})


async def test_a_refused_transaction_writes_nothing(table: Table) -> None:
    await table.commit("x", [put("b")])
    with pytest.raises(Refused):
        await table.commit("x", [Write(Verb.INSERT, {"RowKey": "a"}), Write(Verb.INSERT, {"RowKey": "b"})])
    assert await table.get("x", "a") is None


@pytest.mark.parametrize(
    "write",
    [
        Write(Verb.INSERT, {"RowKey": "there"}),
        Write(Verb.MERGE, {"RowKey": "missing"}),
        Write(Verb.REPLACE, {"RowKey": "missing"}),
        Write(Verb.DELETE, {"RowKey": "missing"}),
        Write(Verb.DELETE, {"RowKey": "there"}, "W/\"datetime'2026-01-01T00%3A00%3A00.0000000Z'\""),
        Write(Verb.MERGE, {"RowKey": "there"}, "W/\"datetime'2026-01-01T00%3A00%3A00.0000000Z'\""),
    ],
)
async def test_a_condition_that_does_not_hold_is_refused(table: Table, write: Write) -> None:
    await table.commit("x", [put("there")])
    with pytest.raises(Refused):
        await table.commit("x", [write])


async def test_a_commit_gives_the_etags_of_its_rows_in_order(table: Table) -> None:
    first, second = await table.commit("x", [put("a"), put("b")])
    assert (await table.get("x", "a") or {})["etag"] == first
    assert (await table.get("x", "b") or {})["etag"] == second
    (third,) = await table.commit("x", [Write(Verb.MERGE, {"RowKey": "a", "n": 1}, first)])
    assert third != first


async def test_a_merge_leaves_other_properties(table: Table) -> None:
    await table.commit("x", [put("a", n=1, s="s", b=b"\x00\xff")])
    await table.commit("x", [Write(Verb.MERGE, {"RowKey": "a", "n": 2})])
    row = dict(await table.get("x", "a") or {})
    assert (row["n"], row["s"], row["b"]) == (2, "s", b"\x00\xff")


async def test_a_scan_reads_a_range_in_order_over_pages(table: Table) -> None:
    keys = [f"k:{n:04d}" for n in range(1205)]
    for start in range(0, len(keys), MAX_ROWS):
        await table.commit("x", [put(key) for key in keys[start : start + MAX_ROWS]])
    assert [row["RowKey"] for row in await table.scan("x", "k:", "k;")] == keys
    assert [row["RowKey"] for row in await table.scan("x", "k:0003", "k:0007")] == keys[3:7]
    assert [row["RowKey"] for row in await table.scan("x", "k:", "k;", limit=5)] == keys[:5]


async def test_one_jobs_range_holds_no_other_jobs_rows(table: Table) -> None:
    ids = ["a", "a.", "a-", "a~", "aa", "A", "a.b", "b"]
    await table.commit("x", [put(f"run:{job_id}:0000000001") for job_id in ids])
    for job_id in ids:
        (row,) = await table.scan("x", *job_range("run", job_id))
        assert row["RowKey"] == f"run:{job_id}:0000000001"


async def test_a_prefix_range_holds_every_id_that_starts_so(table: Table) -> None:
    ids = ["a", "a-", "a.b", "aZ", "a_", "a~", "a~~", "b", "A"]
    await table.commit("x", [put(f"job:{job_id}") for job_id in ids])
    found = {row["RowKey"].removeprefix("job:") for row in await table.scan("x", *prefix_range("a"))}
    assert found == {job_id for job_id in ids if job_id.startswith("a")}


@dataclass
class Unit:
    writes: list[Write]


def test_units_are_packed_by_rows() -> None:
    units = [Unit([put(f"{n}:{m}") for m in range(4)]) for n in range(60)]
    assert [len(batch) for batch in pack_units(units)] == [25, 25, 10]


def test_units_are_packed_by_bytes() -> None:
    units = [Unit([put(f"{n}", b=b"x" * 800_000)]) for n in range(5)]
    assert [len(batch) for batch in pack_units(units)] == [2, 2, 1]


def test_a_row_is_named_once_in_a_transaction() -> None:
    units = [Unit([put("a"), put("1")]), Unit([put("a"), put("2")]), Unit([put("b")])]
    assert [len(batch) for batch in pack_units(units)] == [1, 2]


async def test_storage_that_does_not_answer_is_told_as_such(at: Bench) -> None:
    unreachable = settings_for(
        "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=a2V5;"
        "QueueEndpoint=http://127.0.0.1:9/devstoreaccount1;TableEndpoint=http://127.0.0.1:9/devstoreaccount1"
    )
    with pytest.raises(StoreFailed) as raised:
        await build(unreachable, clock=Clock())
    assert "127.0.0.1" not in raised.value.told()


@pytest.mark.parametrize("connection", ["nonsense", "AccountName=a;AccountKey", ""])
async def test_a_connection_string_that_is_none_is_told_without_its_text(connection: str) -> None:
    with pytest.raises(Misconfigured, match="AzureWebJobsStorage") as raised:
        await build(settings_for(connection), clock=Clock())
    assert connection == "" or connection not in str(raised.value)


async def test_another_number_of_partitions_than_recorded_is_refused(at: Bench, storage: str) -> None:
    names = {"TABLE_NAME": at.app.settings.table_name, "QUEUE_NAME": at.app.settings.queue_name}
    again = await build(settings_for(storage, **names), clock=Clock())
    await again.close()
    with pytest.raises(Misconfigured, match="PARTITIONS"):
        await build(settings_for(storage, PARTITIONS="3", **names), clock=Clock())
