"""GET /openapi.json: it is valid, it names what the app binds, and its examples are what happens."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from openapi_spec_validator import validate

from devhost.functions import HttpFunction, load_app, read_functions
from devhost.http_server import HttpServer
from shared import entry
from shared.web.openapi.document import BASE, PROBLEM, VERSION, document
from shared.web.openapi.examples import Example
from shared.web.openapi.parts import JSON, PARAMETERS, Route
from shared.web.openapi.routes import ROUTES
from tests.documented import documented, holds
from tests.harness import Bench

ROOT = Path(__file__).parents[2]
KEY = "s3cret"
Client = TestClient[Any, Any]


@pytest.fixture(scope="module")
def bound() -> Iterator[list[HttpFunction]]:
    """The functions that answer HTTP, as the app binds them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        for name in ("QUEUE_NAME", "DETECTION_SCHEDULE"):
            patch.setenv(name, "x")
        yield read_functions(load_app(ROOT)).http


@pytest.fixture
async def client(at: Bench, bound: list[HttpFunction], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    """A client of the app's own functions, on the bench."""

    async def the_app() -> Any:
        return at.app

    monkeypatch.setattr(entry, "the_app", the_app)
    ids = iter(digit * 32 for digit in "0123456789abcdef")
    monkeypatch.setattr("shared.engine.hosting.new_host_id", lambda: next(ids))
    monkeypatch.setattr("shared.jobs.identity.secrets.token_hex", lambda count: "00" * count)
    async with TestClient(TestServer(HttpServer(bound, BASE.strip("/")).app)) as made:
        yield made


def as_text(value: Any) -> str:
    """What an example's body or answer is on the wire."""
    return value if isinstance(value, str) else json.dumps(value)


async def answered(client: Client, route: Route, example: Example, empty: bool = False) -> Any:
    """The answer to an example's request; with `empty` also with all query parameters that are absent."""
    absent = [name for name in route.parameters if empty and PARAMETERS[name].place == "query"]
    media_type = route.body.media_type if route.body else JSON
    sent = None if example.body is None else as_text(example.body)
    return await client.request(
        route.method,
        f"{BASE}/{route.path.format_map(example.path)}",
        params=dict.fromkeys(absent, "") | dict(example.query),
        headers={"Content-Type": media_type} | dict(example.headers),
        data=sent,
    )


def test_it_is_openapi() -> None:
    validate(document())


async def test_it_is_served_where_the_app_cannot_be_built(bound: list[HttpFunction]) -> None:
    async with TestClient(TestServer(HttpServer(bound, BASE.strip("/")).app)) as client:
        answer = await client.get(f"{BASE}/openapi.json")
        assert answer.status == 200
        assert answer.content_type == "application/json"
        assert await answer.json() == document()
        assert (await client.get(f"{BASE}/openapi.json?page=1")).status == 400


def test_every_route_is_documented_and_bound(bound: list[HttpFunction]) -> None:
    there = {
        (method, each.route, each.name, each.auth_level == "anonymous")
        for each in bound
        for method in each.methods
    }
    assert {(route.method, route.path, route.name, route.anonymous) for route in ROUTES} == there


def test_it_is_of_this_version_at_this_address() -> None:
    assert f'version = "{VERSION}"' in (ROOT / "pyproject.toml").read_text()
    prefix = json.loads((ROOT / "host.json").read_text())["extensions"]["http"]["routePrefix"]
    assert f"/{prefix}" == BASE


@pytest.mark.parametrize("empty", [False, True], ids=["as they are", "with empty query parameters"])
async def test_the_examples_are_what_happens(client: Client, empty: bool) -> None:
    for route in ROUTES:
        for example in route.examples:
            answer = await answered(client, route, example, empty)
            told = f"{route.name}, {example.title}: {await answer.text()}"
            assert answer.status == example.status, told
            text = await answer.text()
            is_json = answer.content_type in (JSON, PROBLEM) and text
            assert (json.loads(text) if is_json else text or None) == example.answer, told
            operation = document()["paths"][f"/{route.path}"][route.method.lower()]
            documented = operation["responses"][str(answer.status)]
            assert answer.content_type in documented.get("content", ()) or answer.status == 204, told
            assert documented.get("headers", {}).keys() <= answer.headers.keys(), told


def test_the_document_allows_empty_query_parameters_and_no_other() -> None:
    parameters = document()["components"]["parameters"].values()
    assert {each["in"] for each in parameters if each.get("allowEmptyValue")} == {"query"}
    assert all(each.get("allowEmptyValue") for each in parameters if each["in"] == "query")


def test_every_route_has_an_example_that_succeeds() -> None:
    good = [route.name for route in ROUTES if any(example.status < 300 for example in route.examples)]
    assert good == [route.name for route in ROUTES if route.name != "openapi"]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_the_examples_are_as_the_schemas_have_them(route: Route) -> None:
    operation = documented()[route.name]
    for example in route.examples:
        if route.body and example.status < 300 and (route.body.required or example.body is not None):
            ((media_type, media),) = operation["requestBody"]["content"].items()
            assert holds(as_text(example.body), media_type, media)
        if example.answer is not None:
            ((media_type, media),) = operation["responses"][str(example.status)]["content"].items()
            assert holds(as_text(example.answer), media_type, media)


async def test_all_but_health_demand_the_key(bound: list[HttpFunction]) -> None:
    async with TestClient(TestServer(HttpServer(bound, BASE.strip("/"), KEY).app)) as client:
        for route in ROUTES:
            if route.anonymous:
                continue
            given = dict.fromkeys(("id", "seq", "host"), "1")
            for query, headers in (("", {}), ("?code=wrong", {}), ("", {"x-functions-key": "wrong"})):
                address = f"{BASE}/{route.path.format_map(given)}{query}"
                answer = await client.request(route.method, address, headers=headers)
                assert (answer.status, await answer.read()) == (401, b""), route.name
        for query, headers in ((f"?code={KEY}", {}), ("", {"x-functions-key": KEY})):
            assert (await client.get(f"{BASE}/openapi.json{query}", headers=headers)).status == 200
        assert [route.name for route in ROUTES if route.anonymous] == ["health"]


@pytest.mark.parametrize("route", [route for route in ROUTES if route.body], ids=lambda route: route.name)
async def test_a_body_may_be_left_out_just_where_the_document_says_so(client: Client, route: Route) -> None:
    path = {"id": "a", "seq": "1", "host": "0" * 32}
    if "{host}" in route.path:
        assert (await client.post(f"{BASE}/hosts", json={"serviceTypes": ["acme/nightly"]})).status == 201
    headers = {"Content-Type": route.body.media_type if route.body else ""}
    answer = await client.request(route.method, f"{BASE}/{route.path.format_map(path)}", headers=headers)
    assert answer.status == (400 if documented()[route.name]["requestBody"]["required"] else 200)
