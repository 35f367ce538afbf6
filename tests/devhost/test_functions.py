"""Reading the functions of an app."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import azure.functions as func
import pytest

from devhost.errors import DevhostError
from devhost.functions import (
    APP_MODULE,
    Functions,
    HttpFunction,
    QueueFunction,
    TimerFunction,
    load_app,
    read_functions,
)

SETTINGS = {"SCHEDULE": "0 * * * * *", "QUEUE": "Work"}


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", dict(SETTINGS))
    monkeypatch.setattr("sys.path", list(sys.path))
    monkeypatch.setitem(sys.modules, APP_MODULE, sys)  # so that the app's own is removed afterwards


def test_each_trigger_is_read_with_its_settings_and_defaults() -> None:
    app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)

    @app.route("jobs/{id}", methods=["GET", "put"], auth_level=func.AuthLevel.ADMIN)
    async def job(req: func.HttpRequest) -> str:
        return ""

    @app.function_name("by_name")
    @app.route(trigger_arg_name="request")
    async def other(request: func.HttpRequest) -> str:
        return ""

    @app.timer_trigger("timer", "%SCHEDULE%", run_on_startup=True)
    async def tick(timer: func.TimerRequest) -> None: ...

    @app.queue_trigger("message", "%QUEUE%", "Storage")
    async def take(message: func.QueueMessage) -> None: ...

    functions = read_functions(app)
    handlers = [each.handler for each in (*functions.http, *functions.timers, *functions.queues)]
    assert functions.http == [
        HttpFunction("job", handlers[0], "req", "jobs/{id}", frozenset({"GET", "PUT"}), "admin"),
        HttpFunction("by_name", handlers[1], "request", "by_name", frozenset(), "anonymous"),
    ]
    assert functions.timers == [TimerFunction("tick", handlers[2], "timer", "0 * * * * *", True)]
    assert functions.queues == [QueueFunction("take", handlers[3], "message", "work", "Storage")]


def test_a_missing_setting_names_the_function_that_wants_it() -> None:
    app = func.FunctionApp()

    @app.timer_trigger("timer", "%NOWHERE%")
    async def tick(timer: func.TimerRequest) -> None: ...

    with pytest.raises(DevhostError, match="setting NOWHERE, named by schedule of function tick, is missing"):
        read_functions(app)


@pytest.mark.parametrize(("value", "names"), [("true", ["tock"]), ("1", ["tock"]), ("false", ["tick", "tock"])])
def test_a_function_that_a_setting_disables_is_left_out(
    value: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = func.FunctionApp()

    @app.timer_trigger("timer", "%SCHEDULE%")
    async def tick(timer: func.TimerRequest) -> None: ...

    @app.timer_trigger("timer", "%SCHEDULE%")
    async def tock(timer: func.TimerRequest) -> None: ...

    monkeypatch.setenv("AzureWebJobs.tick.Disabled", value)
    assert [each.name for each in read_functions(app).timers] == names


def test_a_trigger_of_another_kind_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    app = func.FunctionApp()

    @app.blob_trigger("blob", "container/{name}", "Storage")
    async def on_blob(blob: func.InputStream) -> None: ...

    functions = read_functions(app)
    assert (functions.http, functions.timers, functions.queues) == ([], [], [])
    assert "on_blob is left out" in caplog.text


def test_a_binding_of_another_kind_is_an_error() -> None:
    app = func.FunctionApp()

    @app.route("out")
    @app.queue_output("message", "queue", "Storage")
    async def out(req: func.HttpRequest, message: func.Out[str]) -> str:
        return ""

    with pytest.raises(DevhostError, match="function out has a binding that this host does not know: queue"):
        read_functions(app)


async def test_a_handler_that_is_not_async_runs_in_a_thread() -> None:
    def where(req: object) -> str:
        return f"{threading.current_thread() is threading.main_thread()} {req}"

    async def where_async(req: object) -> str:
        return where(req)

    assert await HttpFunction("f", where, "req", "f").invoke("x") == "False x"
    assert await HttpFunction("f", where_async, "req", "f").invoke("x") == "True x"


def test_the_app_is_found_in_its_file_which_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_app.py").write_text("import azure.functions\nmine = azure.functions.FunctionApp()\n")
    (tmp_path / "function_app.py").write_text("from neighbour_of_app import mine\nalias = mine\n")
    assert load_app(tmp_path) is sys.modules["neighbour_of_app"].mine


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "there is no function_app.py"),
        ("x = 1\n", "it has 0"),
        ("from azure.functions import FunctionApp as F\na, b = F(), F()\n", "it has 2"),
    ],
)
def test_without_exactly_one_app_there_is_one_clear_line(tmp_path: Path, source: str | None, message: str) -> None:
    if source is not None:
        (tmp_path / "function_app.py").write_text(source)
    with pytest.raises(DevhostError, match=message):
        load_app(tmp_path)


async def nothing() -> None: ...


ALL = Functions(
    [HttpFunction("get", nothing, "request", "get"), HttpFunction("put", nothing, "request", "put")],
    [TimerFunction("tick", nothing, "timer", "0 * * * * *")],
    [QueueFunction("take", nothing, "message", "work")],
)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["take"], Functions(queues=ALL.queues)),
        (["tick", "put"], Functions(http=ALL.http[1:], timers=ALL.timers)),
        (["http"], Functions(http=ALL.http)),
        (["take", "http"], Functions(http=ALL.http, queues=ALL.queues)),
    ],
)
def test_functions_are_chosen_by_name_or_all_of_http(names: list[str], expected: Functions) -> None:
    assert ALL.only(names) == expected


@pytest.mark.parametrize(("names", "unknown"), [(["take", "talk"], "talk"), (["a", "b"], "a, b"), ([""], "")])
def test_an_unknown_function_is_named_with_those_there_are(names: list[str], unknown: str) -> None:
    expected = f"there is no function {unknown}; there are http, take, tick, get, put"
    with pytest.raises(DevhostError, match=f"^{expected}$"):
        ALL.only(names)
