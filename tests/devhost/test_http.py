"""HTTP triggers: what reaches a function, and what comes back."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator

import azure.functions as func
import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request
from yarl import URL

from devhost import http_server
from devhost.functions import read_functions
from devhost.http_server import HttpServer
from tests.devhost.support import eventually

Client = TestClient[Request, Application]


def sample_app() -> func.FunctionApp:
    """Handlers that show what they were given, fail, or answer in each way they may."""
    app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)

    @app.route("show/{id}/{*rest}", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS)
    async def show(req: func.HttpRequest) -> func.HttpResponse:
        seen = {
            "method": req.method,
            "url": req.url,
            "header": req.headers.get("X-Several"),
            "params": dict(req.params),
            "route_params": dict(req.route_params),
            "body": req.get_body().hex(),
        }
        return func.HttpResponse(json.dumps(seen), mimetype="application/json")

    @app.route("jobs", methods=["GET"])
    async def list_jobs(req: func.HttpRequest) -> str:
        return "all"

    @app.route("jobs", methods=["POST"], auth_level=func.AuthLevel.ADMIN)
    def create_job(req: func.HttpRequest) -> func.HttpResponse:
        main = threading.current_thread() is threading.main_thread()
        return func.HttpResponse(
            f"main thread: {main}", status_code=201, headers={"Location": "/x", "ETag": '"1"'}
        )

    @app.route("latin")
    async def latin(req: func.HttpRequest) -> func.HttpResponse:
        return func.HttpResponse("é", charset="latin-1")

    @app.route("bytes")
    async def raw(req: func.HttpRequest) -> func.HttpResponse:
        return func.HttpResponse(b"\x00\xff", headers={"Content-Type": "image/x"})

    @app.route("fails")
    async def fails(req: func.HttpRequest) -> str:
        raise RuntimeError("a secret of the handler")

    @app.route("wrong")
    async def wrong(req: func.HttpRequest) -> int:
        return 5

    @app.route("nothing")
    async def nothing(req: func.HttpRequest) -> None:
        return None

    @app.route()
    async def by_name(req: func.HttpRequest) -> str:
        return f"{len(req.get_body())} bytes"

    return app


async def connect(server: HttpServer) -> Client:
    client: Client = TestClient(TestServer(server.app))
    await client.start_server()
    return client


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = await connect(HttpServer(read_functions(sample_app()).http, "api"))
    yield client
    await client.close()


async def test_the_function_gets_the_request_as_it_was_sent(client: Client) -> None:
    path = "/api/show/a%20b/c/d?x=1&x=2&empty=&y=%26"
    answer = await client.post(
        URL(path, encoded=True), data=b"\x00\xff", headers=[("X-Several", "one"), ("X-Several", "two")]
    )
    assert await answer.json() == {
        "method": "POST",
        "url": f"http://{client.host}:{client.port}{path}",
        "header": "one,two",
        "params": {"x": "1,2", "y": "&"},
        "route_params": {"id": "a b", "rest": "c/d"},
        "body": "00ff",
    }


async def test_answers_keep_their_status_headers_charset_and_bytes(client: Client) -> None:
    created = await client.post("/api/jobs")
    assert (created.status, created.headers["Location"], created.headers["ETag"]) == (201, "/x", '"1"')
    assert await created.text() == "main thread: False"
    text = await client.get("/api/jobs")
    assert (text.headers["Content-Type"], await text.text()) == ("text/plain; charset=utf-8", "all")
    latin = await client.get("/api/latin")
    assert (latin.headers["Content-Type"], await latin.read()) == ("text/plain; charset=latin-1", b"\xe9")
    image = await client.get("/api/bytes")
    assert (image.headers["Content-Type"], await image.read()) == ("image/x", b"\x00\xff")
    assert (await client.get("/api/nothing")).status == 204
    shown = await client.post("/api/show/a/b")
    assert shown.headers["Content-Type"] == "application/json"


async def test_the_route_of_a_function_without_one_is_its_name_and_takes_all_methods(client: Client) -> None:
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"):
        assert (await client.request(method, "/api/by_name")).status == 200


async def test_an_unknown_route_is_404_and_a_known_one_with_another_method_405(client: Client) -> None:
    for path in ("/api/none", "/jobs", "/", "/api/show/a%2Fb"):
        assert (await client.get(URL(path, encoded=True))).status == (405 if "show" in path else 404)
    answer = await client.delete("/api/jobs")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, POST")


@pytest.mark.parametrize("path", ["/api/fails", "/api/wrong"])
async def test_a_failure_is_a_bare_500_and_is_logged(
    client: Client, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    answer = await client.get(path)
    assert (answer.status, await answer.text()) == (500, "")
    assert "failed, GET " + path in caplog.text
    assert "Traceback" in caplog.text


async def test_too_large_a_body_is_413_and_the_host_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert http_server.LARGEST_BODY == 100 * 1024 * 1024
    monkeypatch.setattr(http_server, "LARGEST_BODY", 1000)
    client = await connect(HttpServer(read_functions(sample_app()).http, "api"))
    assert await (await client.post("/api/by_name", data=b"x" * 1000)).text() == "1000 bytes"
    assert (await client.post("/api/by_name", data=b"x" * 1001)).status == 413
    assert (await client.get("/api/by_name")).status == 200
    await client.close()


async def test_a_line_break_in_a_path_reaches_the_function(client: Client) -> None:
    answer = await client.post(URL("/api/show/a%0Ab/c%0D%0Ad", encoded=True))
    assert (await answer.json())["route_params"] == {"id": "a\nb", "rest": "c\r\nd"}


async def test_without_a_key_none_is_demanded(client: Client) -> None:
    assert (await client.get("/api/jobs")).status == 200
    assert (await client.post("/api/jobs")).status == 201


async def test_with_a_key_all_but_anonymous_functions_demand_it() -> None:
    client = await connect(HttpServer(read_functions(sample_app()).http, "api", key="s3cret"))
    assert (await client.post("/api/show/a/b")).status == 200
    for method in ("GET", "POST"):
        good = (200, 201)
        assert (await client.request(method, "/api/jobs")).status == 401
        assert (await client.request(method, "/api/jobs?code=wrong")).status == 401
        assert (await client.request(method, "/api/jobs", headers={"x-functions-key": "é"})).status == 401
        assert (await client.request(method, "/api/jobs", headers={"x-functions-key": "s3cret"})).status in good
        assert (await client.request(method, "/api/jobs?code=s3cret")).status in good
    await client.close()


async def test_stopping_waits_for_running_functions_refuses_new_ones_and_keeps_echo(stop: asyncio.Event) -> None:
    app, started, release = func.FunctionApp(), asyncio.Event(), asyncio.Event()

    @app.route("slow")
    async def slow(req: func.HttpRequest) -> str:
        started.set()
        await release.wait()
        return "finished"

    server = HttpServer(read_functions(app).http, "api")
    client = await connect(server)
    running = asyncio.create_task(server.run(stop))
    asked = asyncio.create_task(client.get("/api/slow"))
    await started.wait()
    stop.set()
    await eventually(lambda: server.stopping)
    async with asyncio.timeout(30):
        assert (await client.get("/api/slow")).status == 503
    assert (await client.get("/echo")).status == 200
    assert not running.done()
    release.set()
    assert await (await asked).text() == "finished"
    await running
    await client.close()


async def test_echo_answers_as_its_query_says(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    headers = {"x-timerjobs-job-id": "hello", "idempotency-key": "k-1"}
    answer = await client.put("/echo?status=503&delay=0.01&a=b", data="körper", headers=headers)
    assert answer.status == 503
    said = await answer.json()
    assert (said["method"], said["query"], said["body"]) == (
        "PUT",
        {"status": "503", "delay": "0.01", "a": "b"},
        "körper",
    )
    assert said["headers"]["x-timerjobs-job-id"] == "hello"
    hits = [each.getMessage() for each in caplog.records if each.name == "devhost.echo"]
    assert hits == ["PUT /echo?status=503&delay=0.01&a=b job=hello key=k-1"]
    assert (await client.get("/echo")).status == 200


@pytest.mark.parametrize("query", ["status=abc", "status=100", "status=600", "delay=-1", "delay=nan", "delay=x"])
async def test_echo_refuses_what_it_cannot_do(client: Client, query: str) -> None:
    assert (await client.get(f"/echo?{query}")).status == 400
