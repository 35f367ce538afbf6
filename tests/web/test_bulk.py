"""POST /bulk/jobs: each line as its own request would be, new jobs many to a transaction, in bounded time."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from shared.engine.bulk import Bulk
from shared.jobs.model import Job
from shared.web import bulk as route
from shared.web.api import respond
from shared.web.exchange import Request, Response
from tests.audit import audit
from tests.harness import Bench, Receiver, bench, http_job
from tests.web.support import ask, daily, fields, got, put, swept, tag_of, valid


async def post(
    at: Bench, body: bytes, headers: Mapping[str, str] | None = None, query: Mapping[str, str] | None = None
) -> Response:
    request = Request(
        url="http://localhost/api/bulk/jobs",
        headers={"content-type": "application/x-ndjson"} | dict(headers or {}),
        route={},
        query=query or {},
        body=body,
    )
    return await respond(at.app.api.bulk.carry_out, request)


def text(lines: list[Any]) -> bytes:
    return b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)


async def sent(at: Bench, lines: list[Any]) -> list[Any]:
    """The answers to lines, which the route must take."""
    response = await post(at, text(lines))
    assert response.status == 200, response.body
    assert response.headers["Content-Type"] == "application/x-ndjson"
    return read(response)


def read(response: Response) -> list[Any]:
    return [json.loads(line) for line in response.content().splitlines()]


def new(n: int, **more: Any) -> dict[str, Any]:
    return {"op": "put", "id": f"job-{n:04}", "job": valid(**more)}


def statuses(answers: list[Any]) -> list[int]:
    return [answer["status"] for answer in answers]


def transactions(at: Bench) -> int:
    return sum("$batch" in line for line in at.requests)


async def test_lines_of_every_kind_are_answered_in_order(at: Bench) -> None:
    kept = tag_of(await put(at, "a", valid()))
    over = daily(endTime="2026-09-08T13:00:00Z")["trigger"] | {"skipInitialRun": True}
    await at.create(**valid(id="done", trigger=over))
    answers = await sent(
        at,
        [
            {"op": "put", "id": "a", "job": valid()},
            {"op": "suspend", "id": "a"},
            b"\n",
            {"op": "resume", "id": "a"},
            {"op": "run", "id": "a"},
            {"op": "put", "id": "b", "job": valid(id="b", description="new")},
            {"op": "put", "job": valid(id="c")},
            {"op": "put", "job": valid()},
            b"{oops\n",
            {"op": "delete", "id": "a"},
            {"op": "delete", "id": "nowhere"},
            {"op": "run", "id": "done"},
            {"op": "put", "id": "d", "job": valid(historyLimit=0)},
        ],
    )
    assert [answer["line"] for answer in answers] == [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    assert statuses(answers) == [200, 200, 200, 202, 201, 201, 201, 400, 204, 404, 409, 400]
    assert answers[0] == {"line": 1, "op": "put", "id": "a", "status": 200, "etag": kept}
    assert answers[3] == {"line": 5, "op": "run", "id": "a", "status": 202, "run": 1}
    assert answers[8] == {"line": 10, "op": "delete", "id": "a", "status": 204}
    assert answers[7]["problem"]["errors"][0]["field"] == "body"
    assert answers[9]["problem"]["title"] == "Not found"
    assert answers[11]["problem"]["errors"] == [
        {"field": "job.historyLimit", "reason": "must be an integer from 1 to 1000"}
    ]
    made = [answers[n]["id"] for n in (4, 5, 6)]
    assert made[:2] == ["b", "c"]
    for answer in answers[4:7]:
        assert tag_of(await ask(at, "get", job=answer["id"])) == answer["etag"]
    listed = (await ask(at, "list")).body["value"]
    assert sorted(job["id"] for job in listed) == sorted([*made, "done"])


WRONG = [
    (b"[]\n", "body", 400),
    (b"5\n", "body", 400),
    (b'"\xff"\n', "body", 400),
    ({"op": "Put", "id": "a", "job": {}}, "op", 400),
    ({"id": "a"}, "op", 400),
    ({"op": "delete"}, "id", 400),
    ({"op": "delete", "id": "a b"}, "id", 400),
    ({"op": "delete", "id": 5}, "id", 400),
    ({"op": "delete", "id": "a", "job": {}}, "job", 400),
    ({"op": "put", "id": "a"}, "job", 400),
    ({"op": "put", "id": "a", "job": []}, "job", 400),
    ({"op": "put", "job": {"id": "a b"}}, "job.id", 400),
    ({"op": "put", "id": "a", "job": valid(id="b")}, "job.id", 400),
    ({"op": "put", "id": "a", "job": valid(trigger=None)}, "job.trigger", 400),
    ({"op": "put", "job": valid(trigger=None)}, "job.trigger", 400),
    ({"op": "put", "id": "a", "job": valid(x=1)}, "job.x", 400),
    ({"op": "run", "id": "a", "count": 5}, "count", 400),
    ({"op": "put", "id": "a", "job": valid(), "etag": "x"}, "etag", 400),
    ({"op": "put", "id": "a", "job": valid(description="x" * 256 * 1024)}, "body", 413),
]


async def test_a_wrong_line_names_what_is_wrong_and_stops_no_other(at: Bench) -> None:
    lines: list[Any] = []
    for n, (line, _, _) in enumerate(WRONG):
        lines += [line, new(n)]
    answers = await sent(at, lines)
    assert [answer["line"] for answer in answers] == list(range(1, len(lines) + 1))
    assert statuses(answers[1::2]) == [201] * len(WRONG)
    for answer, (line, field, status) in zip(answers[::2], WRONG, strict=True):
        assert answer["status"] == status, line
        assert [error["field"] for error in answer["problem"]["errors"]] == [field], line
    assert len(await at.rows("job")) == len(WRONG)


@pytest.mark.parametrize(
    ("body", "headers", "query", "status", "field"),
    [
        (b" " * (16 * 1024 * 1024 + 1), {}, {}, 413, "body"),
        (text([new(0)]) + b"\n" * 10_000, {}, {}, 413, "body"),
        (text([new(0)]), {"content-type": "text/plain"}, {}, 415, "Content-Type"),
        (text([new(0)]), {}, {"x": "1"}, 400, "x"),
    ],
    ids=["bytes", "lines", "type", "query"],
)
async def test_a_wrong_request_is_refused_as_a_whole(
    at: Bench, body: bytes, headers: dict[str, str], query: dict[str, str], status: int, field: str
) -> None:
    refused = await post(at, body, headers, query)
    assert (refused.status, fields(refused)) == (status, [field])
    assert at.requests == []


async def test_a_line_may_be_as_long_as_a_body(at: Bench) -> None:
    line = json.dumps(new(0)).encode()
    answers = await sent(at, [line.ljust(size) + b"\r\n" for size in (256 * 1024, 256 * 1024 + 1)])
    assert statuses(answers) == [201, 413]


@pytest.mark.parametrize("body", [b"", b"\n", b" \r\n\n"])
async def test_no_lines_are_no_answers(at: Bench, body: bytes) -> None:
    answer = await post(at, body)
    assert (answer.status, answer.content()) == (200, b"")


async def test_lines_for_one_job_keep_their_order(at: Bench) -> None:
    hourly = daily(interval=1)
    answers = await sent(
        at,
        [
            {"op": "delete", "id": "a"},
            {"op": "put", "id": "a", "job": hourly},
            {"op": "suspend", "id": "b"},
            {"op": "put", "job": hourly | {"id": "b"}},
            {"op": "suspend", "id": "b"},
            {"op": "put", "id": "a", "job": hourly | {"description": "second"}},
            {"op": "delete", "id": "a"},
            {"op": "run", "id": "a"},
            {"op": "put", "id": "a", "job": hourly | {"description": "third"}},
            {"op": "run", "id": "a"},
        ],
    )
    assert statuses(answers) == [404, 201, 404, 201, 200, 200, 204, 404, 201, 202]
    assert (await got(at, "a"))["description"] == "third"
    assert (await got(at, "b"))["state"] == "Suspended"


async def test_an_end_that_has_passed_is_no_fault_of_a_job_that_stands(at: Bench) -> None:
    body = daily(endTime="2026-09-10T00:00:00Z")
    await sent(at, [{"op": "put", "id": "a", "job": body}])
    at.clock.advance(days=3)
    answers = await sent(at, [{"op": "put", "id": name, "job": body} for name in ("a", "b")])
    assert statuses(answers) == [200, 400]
    assert answers[1]["problem"]["errors"][0]["field"] == "job.trigger.recurrence.endTime"


async def test_a_thousand_new_jobs_take_as_few_transactions_as_hold_their_rows(storage: str) -> None:
    async with bench(storage, PARTITIONS="16") as at:
        answers = await sent(at, [new(n) for n in range(1000)])
        assert statuses(answers) == [201] * 1000
        in_each = [len(await at.app.store.table.scan(p, "job:", "job;")) for p in at.partitions]
        assert sum(in_each) == 1000
        # Two rows each, so fifty to a transaction.
        assert transactions(at) == sum(-(-count // 50) for count in in_each) == 32
        # They fall due together, beyond the horizon of tickets.
        assert len([line for line in at.requests if "/messages" in line]) == 0
        assert len(at.requests) == 32 + 16  # the counting above


async def test_new_jobs_of_a_transaction_that_are_due_together_share_a_ticket(at: Bench, target: Receiver) -> None:
    answers = await sent(at, [{"op": "put", "job": http_job(target.url, every=60)} for _ in range(120)])
    assert statuses(answers) == [201] * 120
    assert len([line for line in at.requests if "/messages" in line]) == transactions(at) <= 4
    await at.dispatch()
    assert sorted(hit.job for hit in target.hits) == sorted(answer["id"] for answer in answers)


async def test_jobs_that_exist_among_new_ones_are_replaced_and_the_rest_is_still_packed(at: Bench) -> None:
    await sent(at, [new(n) for n in range(0, 100, 10)])
    at.clock.advance(minutes=1)
    at.requests.clear()
    answers = await sent(at, [new(n, description="second") for n in range(100)])
    assert statuses(answers) == [200 if n % 10 == 0 else 201 for n in range(100)]
    assert all([(await got(at, f"job-{n:04}"))["description"] == "second" for n in (0, 5, 50, 99)])
    # For each batch one that is refused and one for what is new; one for each job that is replaced.
    assert transactions(at) <= 2 * 4 + 10


async def test_a_job_that_is_completed_from_the_start_is_told_of_once(storage: str) -> None:
    over = daily(endTime="2026-09-08T13:00:00Z")
    over["trigger"]["skipInitialRun"] = True
    lines = [{"op": "put", "id": "a", "job": over}, {"op": "put", "job": over}, new(0)]
    async with bench(storage, EVENTS_QUEUE="bulk-events", HORIZON="PT1M") as at:
        for first in (201, 200):
            answers = await sent(at, lines)
            assert statuses(answers) == [first, 201, first]
        assert (await got(at, "a"))["state"] == "Completed"
        assert sum("/bulk-events/messages" in line for line in at.requests) == 3


async def test_a_bulk_sent_again_changes_nothing(at: Bench) -> None:
    first = await sent(at, [new(n) for n in range(60)])
    again = await sent(at, [new(n) for n in range(60)])
    assert statuses(again) == [200] * 60
    assert [answer["etag"] for answer in again] == [answer["etag"] for answer in first]


async def test_a_commit_whose_answer_was_lost_is_not_taken_for_somebody_elses(at: Bench) -> None:
    lost = iter([True])
    at.wire.lose_answer = lambda line: "$batch" in line and next(lost, False)
    answers = await sent(at, [new(n) for n in range(40)])
    assert statuses(answers) == [201] * 40
    assert len(await at.rows("job")) == 40


async def test_a_job_that_cannot_be_stored_stops_none_of_its_batch(
    at: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = at.app.admin.draft

    async def spoilt(body: Any, now: Any, job_id: str | None = None) -> Any:
        job, asked = await draft(body, now, job_id)
        if job.id == "job-0007":
            object.__setattr__(job, "request", "x" * 40_000)  # more than a property holds
        return job, asked

    monkeypatch.setattr(at.app.admin, "draft", spoilt)
    answers = await sent(at, [new(n) for n in range(20)])
    assert statuses(answers) == [503 if n == 7 else 201 for n in range(20)]
    assert len(await at.rows("job")) == 19


class Died(BaseException):
    """The process did."""


async def test_what_dies_between_two_transactions_leaves_whole_jobs(at: Bench) -> None:
    begun = done = 0
    both_done = asyncio.Event()

    async def die_after_two(line: str) -> None:
        nonlocal begun
        if "$batch" in line:
            begun += 1
            if begun > 2:
                await both_done.wait()
                raise Died

    def count(line: str) -> bool:
        nonlocal done
        done += "$batch" in line
        if done == 2:
            both_done.set()
        return False

    at.wire.hold, at.wire.lose_answer = die_after_two, count
    with pytest.raises(BaseExceptionGroup):
        await sent(at, [new(n) for n in range(220)])
    at.wire.hold = None
    assert len(await at.rows("job")) == len(await at.rows("timer")) == 100
    assert await audit(at.app.store) == []
    again = await sent(at, [new(n) for n in range(220)])
    assert sorted(statuses(again)) == [200] * 100 + [201] * 120


async def test_storage_that_fails_is_told_of_each_line(at: Bench) -> None:
    at.wire.lose_answer = lambda line: "$batch" in line and "POST" in line
    answers = await sent(at, [new(0), b"{\n"])
    assert statuses(answers) == [503, 400]
    at.wire.lose_answer = lambda line: False
    assert (await sent(at, [new(0)]))[0]["status"] == 200  # it was done all the same


async def test_a_bulk_that_meets_dispatch_loses_nothing(at: Bench, target: Receiver) -> None:
    often = http_job(target.url, every=10)
    ids = [f"job-{n:02}" for n in range(18)]
    first = [{"op": "put", "id": name, "job": often} for name in ids]
    await sent(at, first)
    await at.dispatch()
    changes: list[Any] = [{"op": "put", "id": name, "job": often | {"description": "other"}} for name in ids[:6]]
    changes += [{"op": "delete", "id": name} for name in ids[6:9]]
    changes += [{"op": "suspend", "id": name} for name in ids[9:12]]
    changes += [{"op": "run", "id": name} for name in ids[12:]]
    for _ in range(4):
        at.clock.advance(seconds=10)
        answers, *_ = await asyncio.gather(sent(at, changes), at.dispatch(), at.take_runs())
        await at.dispatch()  # what a pass has lost to the bulk, its ticket tells another
        assert set(statuses(answers)) <= {200, 202, 204, 404}
        assert await audit(at.app.store) == []
    await at.take_runs()
    for name in ids[:6]:
        job = await got(at, name)
        assert (job["fired"], job["missed"], job["description"]) == (5, 0, "other")
    for name in ids[12:]:
        assert [run["status"] for run in await at.runs(name)] == ["Succeeded"] * 9


class Seconds:
    """A clock of seconds that moves on by a step at each look."""

    def __init__(self, step: float) -> None:
        self.now, self._step = 0.0, step

    def __call__(self) -> float:
        self.now += self._step
        return self.now


async def test_it_ends_in_time_and_says_where(at: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "PART_LINES", 10)
    monkeypatch.setattr(at.app.api.bulk, "_seconds", Seconds(step=60))
    answers = await sent(at, [new(n) for n in range(100)])
    assert statuses(answers[:-1]) == [201] * 20
    assert answers[-1] == {"stoppedAt": 21, "detail": "time is up; nothing is done from this line on"}
    assert len(await at.rows("job")) == 20


async def test_what_is_under_way_too_long_is_given_up(at: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    carry_out = Bulk.carry_out

    async def hang(self: Bulk, orders: Any, now: Any) -> None:
        await carry_out(self, orders[:3], now)
        await asyncio.sleep(3600)

    monkeypatch.setattr(route, "PART_LINES", 10)
    monkeypatch.setattr(route, "GIVE_UP", 0.5)
    monkeypatch.setattr(Bulk, "carry_out", hang)
    answers = await sent(at, [new(n) for n in range(20)])
    assert statuses(answers[:3]) == [201] * 3
    assert statuses(answers[3:10]) == [503] * 7
    assert "may have been carried out" in answers[3]["problem"]["detail"]
    assert answers[-1]["stoppedAt"] == 11
    assert len(answers) == 11


async def test_an_answer_does_not_grow_without_bound(at: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "PART_LINES", 10)
    monkeypatch.setattr(route, "MAX_ANSWER", 1000)
    answers = await sent(at, [{"op": "put", "job": {f"x{n}": 1 for n in range(200)}} for _ in range(100)])
    assert answers[-1] == {"stoppedAt": 11, "detail": "the answer is full; nothing is done from this line on"}
    assert [len(answer["problem"]["errors"]) for answer in answers[:-1]] == [10] * 10


async def test_an_error_of_ours_is_told_by_its_number_on_its_line(
    at: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: Any) -> Job:
        raise RuntimeError("something secret")

    monkeypatch.setattr(at.app.admin, "suspend", fail)
    answers = await sent(at, [{"op": "suspend", "id": "a"}, new(0)])
    assert statuses(answers) == [500, 201]
    assert "secret" not in json.dumps(answers)
    assert "secret" in caplog.text
    await ask(at, "delete", job="job-0000")
    assert await swept(at) == []
