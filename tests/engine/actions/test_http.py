"""The Http action's first request: what is sent, which answers end it, and what inputs it refuses."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from shared.engine.actions.outcome import Outcome
from shared.jobs.fields import MAX_SENT
from shared.jobs.model import Status
from tests.engine.actions.support import (
    HEADERS,
    NO_RETRY,
    a_call,
    an_attempt,
    answers,
    ended,
    http_action,
    once,
    raw_server,
)
from tests.harness import Receiver


async def test_the_request_is_sent_as_the_job_says(target: Receiver) -> None:
    inputs = a_call(
        target.url + "/a%2Fb?x=%20y#part",
        queries={"n": 5, "t": True, "s": "a b&c", "f": 1.5},
        headers={"X-Mine": "yes", "X-Number": 7, "idempotency-key": "mine"},
    )
    ended(await once(inputs), Status.SUCCEEDED)
    (hit,) = target.hits
    assert (hit.method, hit.path) == ("POST", "/hook/a%2Fb?x=%20y&n=5&t=true&s=a+b%26c&f=1.5")
    assert hit.body == b'{"hello": "world"}'
    assert hit.headers["Content-Type"] == "application/json"
    assert hit.headers["X-Mine"] == "yes"
    assert hit.headers["X-Number"] == "7"
    assert {name: hit.headers[name] for name in HEADERS} == HEADERS
    assert [name.lower() for name in hit.headers].count("idempotency-key") == 1
    assert hit.headers["Accept-Encoding"] == "identity"


async def test_text_goes_as_it_is_and_the_job_may_say_its_type(target: Receiver) -> None:
    await once(a_call(target.url, body="@plain"))
    await once(a_call(target.url, body="<a/>", headers={"content-type": "text/xml"}))
    await once({"method": "GET", "uri": target.url})
    plain, xml, empty = target.hits
    assert (plain.body, plain.headers["Content-Type"]) == (b"@plain", "text/plain; charset=utf-8")
    assert (xml.body, xml.headers["Content-Type"]) == (b"<a/>", "text/xml")
    assert (empty.method, empty.body) == ("GET", b"")
    assert "Content-Type" not in empty.headers


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_an_answer_of_the_200s_is_a_success(target: Receiver, status: int) -> None:
    answers(target, {"status": status})
    outcome = ended(await once(a_call(target.url)), Status.SUCCEEDED)
    assert outcome.response is not None
    assert outcome.response["statusCode"] == status
    assert not outcome.reason


@pytest.mark.parametrize("status", [300, 302, 307, 400, 401, 403, 404, 409, 410, 422])
async def test_a_refusal_fails_at_once_and_no_redirect_is_followed(target: Receiver, status: int) -> None:
    answers(target, {"status": status, "headers": {"Location": "/elsewhere"}})
    outcome = ended(await once(a_call(target.url)), Status.FAILED)
    assert outcome.reason == f"the target answered {status}"
    assert outcome.response is not None
    assert outcome.response["statusCode"] == status
    assert len(target.hits) == 1


async def test_a_switch_of_protocols_is_no_success() -> None:
    async with raw_server(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n") as url:
        outcome = await once(a_call(url, **NO_RETRY))
    ended(outcome, Status.FAILED)


async def test_no_answer_in_time_is_timed_out(target: Receiver) -> None:
    async def stall(hit: Any) -> Any:
        await asyncio.sleep(60)

    target.answer = stall
    outcome = ended(await once(a_call(target.url, **NO_RETRY), timeout=timedelta(seconds=0.2)), Status.TIMED_OUT)
    assert outcome.reason == "no answer within 0.2 s"


async def test_a_body_that_does_not_come_in_time_is_timed_out(target: Receiver) -> None:
    class Stalling(web.StreamResponse):
        async def write_eof(self, data: bytes = b"") -> None:
            await asyncio.sleep(60)

    async def stall(hit: Any) -> Any:
        return Stalling()

    target.answer = stall
    ended(await once(a_call(target.url, **NO_RETRY), timeout=timedelta(seconds=0.2)), Status.TIMED_OUT)


async def test_a_fault_of_the_connection_is_a_failure_that_says_so() -> None:
    outcome = ended(await once(a_call("http://127.0.0.1:9/", **NO_RETRY)), Status.FAILED)
    assert "connect" in outcome.reason.lower()


async def test_an_answer_that_is_no_http_is_a_failure() -> None:
    async with raw_server(b"\xff\xfe nonsense\r\n\r\n") as url:
        outcome = ended(await once(a_call(url, **NO_RETRY)), Status.FAILED)
    assert outcome.reason
    outcome.reason.encode()


BEHIND_THE_END = {
    "a 204 that has a length": b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nnull",
    "a 204 in chunks": b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a 204 after a 100": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nnull",
    "a 200 longer than its length": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay",
    "a 200 in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n\x00",
    "a 205": b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n\x00",
    "a 200 without a body": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n<html>",
}


@pytest.mark.parametrize("answer", BEHIND_THE_END.values(), ids=list(BEHIND_THE_END))
@pytest.mark.parametrize("pieces", ["at once", "byte by byte"])
async def test_bytes_behind_the_end_of_an_answer_are_none_of_it(answer: bytes, pieces: str) -> None:
    status = int(answer.split(b"HTTP/1.1 ")[-1][:3])
    async with raw_server(answer, 1 if pieces == "byte by byte" else len(answer)) as url:
        outcome = ended(await once(a_call(url, method="POST")), Status.SUCCEEDED)
    assert outcome.response
    assert outcome.response["statusCode"] == status
    assert outcome.response.get("body") in (None, "ok")


async def test_an_answer_to_head_has_no_body_whatever_comes() -> None:
    async with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull") as url:
        outcome = ended(await once(a_call(url, method="HEAD")), Status.SUCCEEDED)
    assert outcome.response
    assert "body" not in outcome.response


async def test_an_answer_cut_short_is_a_failure() -> None:
    async with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf") as url:
        ended(await once(a_call(url, **NO_RETRY)), Status.FAILED)


async def test_whoever_stops_the_attempt_is_not_held_up(target: Receiver) -> None:
    stalled = asyncio.Event()

    async def stall(hit: Any) -> Any:
        stalled.set()
        await asyncio.sleep(60)

    target.answer = stall
    async with http_action() as action:
        task = asyncio.create_task(action.attempt(an_attempt(a_call(target.url))))
        await stalled.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


BAD = [
    ({"method": "FETCH"}, "method"),
    ({"method": 5}, "method"),
    ({"method": ["GET"]}, "method"),
    ({"method": None}, "method"),
    ({"uri": None}, "uri"),
    ({"uri": 5}, "uri"),
    ({"uri": "example.org/x"}, "uri"),
    ({"uri": "/x"}, "uri"),
    ({"uri": "ftp://example.org/"}, "uri"),
    ({"uri": "http:///x"}, "uri"),
    ({"uri": "http://user:secret@example.org/"}, "uri"),
    ({"uri": "http://@example.org/"}, "uri"),
    ({"uri": "http://example.org:0/"}, "uri"),
    ({"uri": "http://example.org:99999/"}, "uri"),
    ({"uri": "http://exa mple.org/"}, "uri"),
    ({"uri": "http://example.org/ä"}, "uri"),
    ({"uri": "http://example.org\\@evil.org/"}, "uri"),
    ({"uri": "http://[::1/"}, "uri"),
    ({"uri": "http://a%2eb/"}, "uri"),
    ({"uri": "http://example.org/" + "x" * 8192}, "uri"),
    ({"headers": []}, "headers"),
    ({"headers": {"X": None}}, "headers.X"),
    ({"headers": {"X": ["a"]}}, "headers.X"),
    ({"headers": {"X": "a\r\nY: b"}}, "headers.X"),
    ({"headers": {"X": "ä"}}, "headers.X"),
    ({"headers": {"X Y": "a"}}, "headers.X Y"),
    ({"headers": {"X": "a" * 8193}}, "headers.X"),
    ({"headers": {f"X{n}": "a" * 8000 for n in range(5)}}, "headers"),
    ({"queries": "a=b"}, "queries"),
    ({"queries": {"q": {"a": 1}}}, "queries.q"),
    ({"queries": {"q": float("nan")}}, "queries.q"),
    ({"body": "\ud800"}, "body"),
    ({"body": "x" * (MAX_SENT + 1)}, "body"),
    ({"body": ["ü" * (MAX_SENT // 6 + 1)]}, "body"),
    ({"body": float("inf")}, "body"),
    ({"retryPolicy": "none"}, "retryPolicy"),
    ({"retryPolicy": {"type": "fixed", "count": "x", "interval": "PT5S"}}, "retryPolicy.count"),
]


@pytest.mark.parametrize(("changed", "field"), BAD)
async def test_an_input_of_a_wrong_kind_fails_and_is_named(
    target: Receiver, changed: dict[str, Any], field: str
) -> None:
    outcome = ended(await once(a_call(target.url) | changed), Status.FAILED)
    assert isinstance(outcome, Outcome)
    assert outcome.reason.startswith(f"{field} ")
    assert "secret" not in outcome.reason
    assert not target.hits
