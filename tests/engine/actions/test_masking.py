"""A secret that was sent is not kept, however the target repeats it."""

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest

from shared.engine.actions.auth import Authorizer
from shared.jobs.model import Status
from tests.engine.actions.support import NO_RETRY, RAW, SECRET, a_call, answers, ended, once, raw_server, told
from tests.harness import Receiver

BARE = SECRET.removeprefix("Bearer ")
ECHOES = [
    (SECRET, "text/plain", "***"),
    (f"you sent {BARE}, did you", "text/plain", "you sent ***, did you"),
    (json.dumps({"auth": SECRET, SECRET: [BARE, 1]}), "application/json", {"auth": "***", "***": ["***", 1]}),
    (json.dumps({"auth": SECRET}), "text/plain", '{"auth": "***"}'),
    (json.dumps([SECRET]).replace("/", "\\/"), "text/plain", '["***"]'),
    (quote(BARE, safe=""), "text/plain", "***"),
    (quote(BARE), "text/plain", "***"),
    ("Bearer s3cr3t/w0rd+&quot;q&quot;&amp;&lt;x&gt;", "text/html", "***"),
]


@pytest.mark.parametrize(("body", "content_type", "kept"), ECHOES)
async def test_a_body_that_repeats_the_secret_is_masked(
    target: Receiver, authorizer: Authorizer, body: str, content_type: str, kept: Any
) -> None:
    answers(target, {"text": body, "content_type": content_type})
    outcome = ended(await once(a_call(target.url, authentication=RAW), authorizer), Status.SUCCEEDED)
    assert outcome.response is not None
    assert outcome.response["body"] == kept


async def test_a_header_that_repeats_the_secret_is_masked_before_it_is_cut(
    target: Receiver, authorizer: Authorizer
) -> None:
    answers(target, {"headers": {"X-Echo": f"a {SECRET} b", "X-Long": "x" * 1010 + SECRET}})
    outcome = ended(await once(a_call(target.url, authentication=RAW), authorizer), Status.SUCCEEDED)
    assert outcome.response is not None
    assert outcome.response["headers"]["x-echo"] == "a *** b"
    assert outcome.response["headers"]["x-long"] == "x" * 1010 + "***"


@pytest.mark.parametrize("content_type", ["text/plain", "application/json", "image/png"])
@pytest.mark.parametrize("back", range(1, len(SECRET) + 1, 3))
async def test_no_part_of_the_secret_is_left_where_a_body_is_cut(
    target: Receiver, authorizer: Authorizer, content_type: str, back: int
) -> None:
    filler = b"\xff" if content_type == "image/png" else b"_"
    body = filler * (16 * 1024 - back) + SECRET.encode() + filler * 100
    answers(target, {"body": body, "headers": {"Content-Type": content_type}})
    outcome = ended(await once(a_call(target.url, authentication=RAW), authorizer), Status.SUCCEEDED)
    assert outcome.response is not None
    kept = outcome.response["body"]
    data = base64.b64decode(kept["$content"]) if isinstance(kept, dict) else kept.encode()
    assert data.rstrip(filler) in (b"", b"***")
    assert outcome.response["bodyTruncated"] is True


async def test_a_compressed_body_is_not_kept_when_a_secret_was_sent(
    target: Receiver, authorizer: Authorizer
) -> None:
    answers(target, {"body": SECRET.encode(), "headers": {"Content-Encoding": "gzip"}})
    outcome = ended(await once(a_call(target.url, authentication=RAW), authorizer), Status.SUCCEEDED)
    assert outcome.response is not None
    assert "body" not in outcome.response
    assert outcome.response["bodyTruncated"] is True


async def test_an_authorization_that_the_job_itself_holds_is_masked_too(target: Receiver) -> None:
    answers(target, {"text": "Basic dXNlcjpwdw=="})
    outcome = ended(
        await once(a_call(target.url, headers={"authorization": "Basic dXNlcjpwdw=="})), Status.SUCCEEDED
    )
    assert outcome.response is not None
    assert outcome.response["body"] == "***"


async def test_a_location_that_repeats_the_secret_is_not_polled(target: Receiver, authorizer: Authorizer) -> None:
    answers(target, {"status": 202, "headers": {"Location": f"/status?t={quote(BARE, safe='')}"}})
    outcome = ended(await once(a_call(target.url, authentication=RAW), authorizer), Status.FAILED)
    assert outcome.reason == "the target answered 202, but its Location repeats the request's authorization"
    assert quote(BARE, safe="") not in told(outcome)


async def test_a_reason_that_quotes_the_target_is_masked(authorizer: Authorizer) -> None:
    async with raw_server(f"HTTP/1.1 {BARE}\r\n\r\n".encode()) as url:
        outcome = ended(await once(a_call(url, authentication=RAW, **NO_RETRY), authorizer), Status.FAILED)
    assert outcome.reason
    assert "s3cr3t" not in outcome.reason
