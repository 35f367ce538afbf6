"""What history keeps of a target's answer: bounded, and such that it can be written as JSON again."""

import base64
import codecs
import json
import math
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from shared.engine.actions.masking import Mask

MAX_BODY = 16 * 1024
MAX_HEADERS = 50
MAX_HEADER_VALUE = 1024
MAX_DEPTH = 50
_NOT_KEPT = re.compile(
    r"set-cookie2?|www-authenticate|authentication-info|authorization|proxy-.*"
    r"|connection|keep-alive|transfer-encoding|trailer|upgrade"
)
_END_OF_HEAD = b"\r\n\r\n"
_JSON = re.compile(r"(application|text)/([a-z0-9.+-]+\+)?json")
# Only these are looked up: a codec's name comes from the target, and Python remembers each it does not know.
_CHARSET = re.compile(
    r"utf-?8|utf-?(16|32)(-?[lb]e)?|us-ascii|ascii|iso-?8859-?\d{1,2}|latin-?1|windows-\d{3,4}|cp\d{3,4}"
    r"|shift[_-]jis|euc-(jp|kr)|iso-2022-jp|gb2312|gbk|gb18030|big5|koi8-[ru]|macintosh"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A target's answer: `kept` is for history; `location` and `retry_after` are headers as they came."""

    status: int
    kept: dict[str, Any]
    location: str | None
    retry_after: str | None


class WholeHeads(ResponseHandler):
    """Hands on the head of an answer as soon as it is whole, whatever bytes come behind it.

    The parser gives nothing of a piece in which it finds a fault. A target that sends bytes behind the end of its
    answer (as of a 204, which ends with its head: RFC 9112, 6.3) would be taken for one that gave none.
    """

    _heads = 3  # that an answer may come to, those of 1xx included
    _before = b""  # the last bytes that have come, which may begin the end of a head

    def data_received(self, data: bytes) -> None:
        """Takes what the connection has brought, in pieces that end where heads do."""
        while self._heads and (end := (self._before + data).find(_END_OF_HEAD)) >= 0:
            self._heads -= 1
            size = end + len(_END_OF_HEAD) - len(self._before)
            super().data_received(data[:size])
            self._before, data = b"", data[size:]
        if self._heads:
            self._before = (self._before + data)[-len(_END_OF_HEAD) + 1 :]
        if data:
            super().data_received(data)


async def read_answer(response: aiohttp.ClientResponse, mask: Mask) -> Answer:
    """The answer, of its body no more than history keeps."""
    body, whole = await _read(response)
    kept: dict[str, Any] = {"statusCode": response.status, "headers": _headers(response, mask)}
    if body:
        kept |= _body(response, body, whole, mask)
    return Answer(
        status=response.status,
        kept=kept,
        location=response.headers.get("Location"),
        retry_after=response.headers.get("Retry-After"),
    )


async def _read(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """The first 16 KiB of the body, and whether that is all of it."""
    body = bytearray()
    while len(body) <= MAX_BODY:
        piece = await response.content.read(MAX_BODY + 1 - len(body))
        if not piece:
            break
        body += piece
    return bytes(body[:MAX_BODY]), len(body) <= MAX_BODY


def _headers(response: aiohttp.ClientResponse, mask: Mask) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in response.headers.items():
        name = name.lower()
        if not _NOT_KEPT.fullmatch(name):
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return {_plain(name): _short(value, mask) for name, value in list(joined.items())[:MAX_HEADERS]}


def _short(value: str, mask: Mask) -> str:
    """A header's value as it is kept: masked before it is cut, so that no part of a secret is left over."""
    return mask.text(_plain(value)).encode()[:MAX_HEADER_VALUE].decode(errors="ignore")


def _plain(text: str) -> str:
    """The text with what was not UTF-8 in it replaced: it must be possible to encode it again."""
    return text.encode("utf-8", "surrogateescape").decode(errors="replace")


def _body(response: aiohttp.ClientResponse, body: bytes, whole: bool, mask: Mask) -> dict[str, Any]:
    cut = {} if whole else {"bodyTruncated": True}
    if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        # Compressed although we asked for plain; what a secret looks like in there nobody knows.
        return {"bodyTruncated": True} if mask else {"body": _content(response, body, mask), **cut}
    text = _text(response, body, whole)
    if text is None:
        return {"body": _content(response, mask.data(body) if whole else mask.cut_data(body), mask), **cut}
    if whole and _JSON.fullmatch(response.content_type):
        with suppress(ValueError):
            return {"body": mask.value(_json(text))}
    return {"body": mask.text(text) if whole else mask.cut_text(text), **cut}


def _content(response: aiohttp.ClientResponse, body: bytes, mask: Mask) -> dict[str, str]:
    """Bytes as Logic Apps writes them in JSON."""
    content_type = response.headers.get("Content-Type", "application/octet-stream")
    return {"$content-type": _short(content_type, mask), "$content": base64.b64encode(body).decode()}


def _text(response: aiohttp.ClientResponse, body: bytes, whole: bool) -> str | None:
    """The body as text, in UTF-8 or the charset it declares; None if it is none. A cut character is left out."""
    declared = (response.charset or "utf-8").lower()
    for charset in (declared, "utf-8") if _CHARSET.fullmatch(declared) else ("utf-8",):
        with suppress(LookupError, ValueError):
            text = codecs.getincrementaldecoder(charset)().decode(body, final=whole)
            text.encode()
            return text
    return None


def _json(text: str) -> Any:
    """The JSON value of a text. ValueError for what cannot be written as JSON again, or is nested without end."""
    try:
        value = json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    layer, depth = _containers([value]), 0
    while layer:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        layer = [child for each in layer for child in _containers(each)]
    json.dumps(value, ensure_ascii=False).encode()  # lone surrogates cannot be encoded
    return value


def _containers(value: Any) -> list[Any]:
    """The objects and arrays right within an object or array."""
    children = value.values() if isinstance(value, dict) else value
    return [child for child in children if isinstance(child, (dict, list))]


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError("is beyond what a number can say")
    return number
