"""What is kept of a target's answer."""

import base64
import gzip
import json
from typing import Any

import pytest

from shared.engine.actions.outcome import Later, Outcome
from tests.engine.actions.support import a_call, answers, once, raw_server
from tests.harness import Receiver

JSON = "application/json"


async def kept(target: Receiver, body: bytes, content_type: str | None = JSON, **headers: str) -> dict[str, Any]:
    """What is kept of an answer with this body; it must be possible to store it."""
    typed = {} if content_type is None else {"Content-Type": content_type}
    answers(target, {"body": body, "headers": typed | headers})
    return response_of(await once(a_call(target.url)))


def response_of(result: Outcome | Later) -> dict[str, Any]:
    assert isinstance(result, Outcome), result
    assert result.response is not None, result
    response = dict(result.response)
    json.dumps(response, allow_nan=False, ensure_ascii=False).encode()
    return response


async def test_status_headers_and_body_are_kept(target: Receiver) -> None:
    response = await kept(target, b'{"a": [1, 2.5, null, true]}', **{"X-Mine": "yes"})
    assert set(response) == {"statusCode", "headers", "body"}
    assert response["statusCode"] == 200
    assert response["body"] == {"a": [1, 2.5, None, True]}
    assert response["headers"]["x-mine"] == "yes"
    assert response["headers"]["content-type"] == JSON


async def test_no_body_is_no_body(target: Receiver) -> None:
    assert "body" not in await kept(target, b"")


async def test_headers_that_hold_secrets_are_not_kept(target: Receiver) -> None:
    names = ("Set-Cookie", "WWW-Authenticate", "Authentication-Info", "Proxy-Authenticate", "Proxy-Anything")
    response = await kept(target, b"{}", **dict.fromkeys(names, "x"))
    assert not [name for name in response["headers"] if name in {each.lower() for each in names}]


async def test_a_header_sent_twice_is_one() -> None:
    async with raw_server(b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 0\r\n\r\n") as url:
        response = response_of(await once(a_call(url)))
    assert response["headers"]["x-a"] == "1, 2"


async def test_at_most_50_headers_of_1_kib_are_kept(target: Receiver) -> None:
    response = await kept(target, b"{}", **{f"X-{n:02}": "é" * 600 for n in range(60)})
    assert len(response["headers"]) == 50
    assert response["headers"]["x-00"] == "é" * 512


async def test_headers_that_are_no_text_can_be_stored() -> None:
    async with raw_server(b"HTTP/1.1 200 OK\r\nX-A: \xff\xfe\r\nContent-Length: 0\r\n\r\n") as url:
        response = response_of(await once(a_call(url)))
    assert response["headers"]["x-a"] == "\ufffd\ufffd"


@pytest.mark.parametrize(
    "content_type", [JSON, "application/json; charset=utf-8", "application/problem+json", "text/json"]
)
async def test_json_is_parsed(target: Receiver, content_type: str) -> None:
    assert (await kept(target, '{"ä": 1}'.encode(), content_type))["body"] == {"ä": 1}


async def test_json_with_a_byte_order_mark_is_parsed(target: Receiver) -> None:
    assert (await kept(target, b"\xef\xbb\xbf[1]"))["body"] == [1]


@pytest.mark.parametrize(
    "body",
    ['{"a"', "[NaN]", "[Infinity]", "[1e999]", r'["\ud800"]', "9" * 5000, "[1] [2]"],
)
async def test_json_that_could_not_be_written_again_is_kept_as_text(target: Receiver, body: str) -> None:
    assert (await kept(target, body.encode()))["body"] == body


async def test_json_is_parsed_up_to_50_levels(target: Receiver) -> None:
    deep = "[" * 50 + "1" + "]" * 50
    assert isinstance((await kept(target, deep.encode()))["body"], list)
    deeper = f"[{deep}]"
    assert (await kept(target, deeper.encode()))["body"] == deeper
    endless = '{"a":' * 3000
    assert (await kept(target, endless.encode()))["body"] == endless
    endless = "[" * 8000 + "]" * 8000
    assert (await kept(target, endless.encode()))["body"] == endless


async def test_json_of_another_type_is_text(target: Receiver) -> None:
    assert (await kept(target, b'{"a": 1}', "text/plain"))["body"] == '{"a": 1}'


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("grüß".encode(), "text/plain", "grüß"),
        ("grüß".encode(), None, "grüß"),
        ("grüß".encode("latin-1"), "text/plain; charset=ISO-8859-1", "grüß"),
        ("grüß".encode("utf-16"), "text/plain; charset=utf-16", "grüß"),
        ("день".encode("cp1251"), "text/plain; charset=windows-1251", "день"),
        ("日本".encode("shift_jis"), "text/plain; charset=Shift_JIS", "日本"),
        ("grüß".encode(), "text/plain; charset=utf-16-nonsense", "grüß"),
        (b"a\\x41", "text/plain; charset=unicode_escape", "a\\x41"),
        (b"a\xc3\xa9", "text/plain; charset=ascii", "aé"),
    ],
)
async def test_text_is_decoded(target: Receiver, body: bytes, content_type: str | None, text: str) -> None:
    assert (await kept(target, body, content_type))["body"] == text


@pytest.mark.parametrize(
    ("content_type", "told"),
    [("image/png", "image/png"), (None, "application/octet-stream"), ("text/plain", "text/plain")],
)
async def test_what_is_no_text_is_kept_in_base64(target: Receiver, content_type: str | None, told: str) -> None:
    body = b"\x89PNG\xff\x00"
    answer = b"HTTP/1.1 200 OK\r\n" + (f"Content-Type: {content_type}\r\n".encode() if content_type else b"")
    async with raw_server(answer + b"Content-Length: 6\r\n\r\n" + body) as url:
        response = response_of(await once(a_call(url)))
    assert response["body"] == {"$content-type": told, "$content": base64.b64encode(body).decode()}
    assert "bodyTruncated" not in response


async def test_16_kib_are_kept_whole(target: Receiver) -> None:
    body = b'"' + b"x" * (16 * 1024 - 2) + b'"'
    response = await kept(target, body)
    assert response["body"] == "x" * (16 * 1024 - 2)
    assert "bodyTruncated" not in response


@pytest.mark.parametrize("size", [16 * 1024 + 1, 3_000_000])
async def test_a_longer_body_is_cut_and_marked(target: Receiver, size: int) -> None:
    response = await kept(target, b"[" * size)
    assert response["body"] == "[" * 16 * 1024
    assert response["bodyTruncated"] is True


async def test_json_that_is_cut_is_not_taken_for_the_whole(target: Receiver) -> None:
    response = await kept(target, b"[1]" + b" " * 20_000)
    assert response["body"] == "[1]" + " " * (16 * 1024 - 3)
    assert response["bodyTruncated"] is True


async def test_no_character_is_cut_in_two(target: Receiver) -> None:
    response = await kept(target, ("x" + "é" * 20_000).encode(), "text/plain")
    assert response["body"] == "x" + "é" * 8191


async def test_bytes_are_cut_too(target: Receiver) -> None:
    response = await kept(target, b"\xff" * 20_000, "image/png")
    assert base64.b64decode(response["body"]["$content"]) == b"\xff" * 16 * 1024
    assert response["bodyTruncated"] is True


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "br"])
async def test_an_encoded_body_is_kept_as_it_is(target: Receiver, encoding: str) -> None:
    body = gzip.compress(b"x" * 10_000_000)
    response = await kept(target, body, JSON, **{"Content-Encoding": encoding})
    assert base64.b64decode(response["body"]["$content"]) == body[: 16 * 1024]
    assert response["headers"]["content-encoding"] == encoding
