"""Log lines and metrics are as docs/observability.md has them, and an exporter that is set up exports them."""

import ast
import gzip
import importlib.util
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from aiohttp import web

from tests.harness import NOON, Bench, Hit, Receiver, http_job

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "observability.md").read_text("utf-8")
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


def table(heading: str) -> list[list[str]]:
    """The cells of the table whose first column has this heading, without those headings."""
    rows = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[ \-|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    assert rows
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows[1].splitlines()]


def named(heading: str) -> list[str]:
    """What stands in backquotes in a table's first column."""
    return [name for row in table(heading) for name in re.findall(r"`([^`]+)`", row[0])]


def log_calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call of a logger's method in the app, and where it is."""
    for path in [ROOT / "function_app.py", *sorted((ROOT / "shared").rglob("*.py"))]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
                of = node.func.value
                if isinstance(of, ast.Name) and of.id in ("log", "logger", "logging"):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def extra(call: ast.Call) -> dict[str, ast.expr]:
    """The fields that a call writes out, those it takes from `about` left out."""
    for keyword in call.keywords:
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
            pairs = zip(keyword.value.keys, keyword.value.values, strict=True)
            return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
    return {}


def test_every_log_line_says_what_the_app_was_at() -> None:
    calls = list(log_calls())
    assert len(calls) > 20
    assert [where for where, call in calls if "action" not in extra(call)] == []


def test_the_actions_and_fields_of_log_lines_are_those_of_the_table() -> None:
    actions = {"missed", "skipped"}  # written by the status of a stretch
    fields = {"trace"}  # written by `about`, with others
    for _, call in log_calls():
        written = extra(call)
        fields |= written.keys()
        action = written["action"]
        actions |= {str(action.value)} if isinstance(action, ast.Constant) else set()
    assert set(named("`action`")) == actions
    assert fields <= set(named("field"))


def test_the_metrics_are_those_of_the_table() -> None:
    made = {}
    for node in ast.walk(ast.parse((ROOT / "shared" / "metrics.py").read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and "create_" in node.func.attr:
            name, unit = (ast.literal_eval(argument) for argument in node.args[:2])
            made[name] = (node.func.attr.removeprefix("create_"), unit)
    assert {row[0].strip("`"): (row[1], row[2]) for row in table("metric")} == made


async def test_lines_about_runs_tell_which_and_carry_nothing_but_texts_and_numbers(
    at: Bench, target: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    async def refused(hit: Hit) -> web.Response:
        return web.Response(status=400)

    caplog.set_level(logging.INFO, "timerjobs")
    target.answer = refused
    await at.create(id="a", **http_job(target.url, every=60, start=NOON))
    at.clock.advance(minutes=5)
    await at.app.detector.tick()
    await at.dispatch()
    fields = set(named("field"))
    lines = [vars(record) for record in caplog.records if record.name.startswith("timerjobs")]
    lines = [{name: value for name, value in line.items() if name in fields} for line in lines]
    assert all(isinstance(value, str | int) for line in lines for value in line.values())
    by_action = {line["action"]: line for line in lines}
    assert by_action["missed"] == {
        "action": "missed",
        "job": "a",
        "run": 1,
        "scheduled": "2026-09-08T12:00:00Z",
        "count": 5,
    }
    assert by_action["execute"] == {
        "action": "execute",
        "job": "a",
        "run": 2,
        "scheduled": "2026-09-08T12:05:00Z",
        "trace": target.hits[0].headers["traceparent"].split("-")[1],
    }
    assert "partition" in by_action["detect"]


def test_the_platform_neither_samples_lines_away_nor_loses_them_by_their_level() -> None:
    host = json.loads((ROOT / "host.json").read_text())
    assert host["telemetryMode"] == "OpenTelemetry"
    assert host["logging"]["logLevel"]["Function"] == "Information"
    sampling = host["logging"]["applicationInsights"]["samplingSettings"]
    assert {"Trace", "Exception", "Request"} <= set(sampling["excludedTypes"].split(";"))


def test_the_clients_of_storage_do_not_tell_every_request() -> None:
    __import__("shared.wiring")
    assert not logging.getLogger("azure.core.pipeline.policies.http_logging_policy").isEnabledFor(logging.INFO)


# What the Functions worker does before it loads the app, and then what the app does.
EXPORTING = """
import logging
from azure.monitor.opentelemetry import configure_azure_monitor
configure_azure_monitor(logger_name="")
from opentelemetry import metrics as api, _logs
from shared import metrics
from shared.jobs.model import Counters, Status
metrics.count_occurrences(Counters(fired=3))
metrics.count_ended(Status.TIMED_OUT)
metrics.lateness.record(1.5)
metrics.overdue_age.set(90)
logging.getLogger("timerjobs.test").warning("it is late", extra={"action": "missed", "job": "a", "run": 7})
api.get_meter_provider().force_flush()
_logs.get_logger_provider().force_flush()
"""


@pytest.fixture
def ingestion() -> Iterator[tuple[str, list[Any]]]:
    """An endpoint that takes what is exported: its address, and the items it was sent."""
    items: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            sent = json.loads(body) if self.path.endswith("/track") else []
            items.extend(sent)
            answer = json.dumps({"itemsReceived": len(sent), "itemsAccepted": len(sent), "errors": []}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", items
    server.shutdown()
    server.server_close()


def test_metrics_and_the_fields_of_lines_reach_application_insights(
    ingestion: tuple[str, list[Any]],
) -> None:
    if importlib.util.find_spec("azure.monitor") is None:
        pytest.skip("azure-monitor-opentelemetry is not installed")
    address, items = ingestion
    env = os.environ | {
        "APPLICATIONINSIGHTS_CONNECTION_STRING": f"InstrumentationKey={'0' * 8}-0000-0000-0000-{'0' * 12};"
        f"IngestionEndpoint={address};LiveEndpoint={address}",
        "APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL": "true",
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "azure_sdk,django,fastapi,flask,psycopg2,requests,urllib,urllib3",
    }
    subprocess.run([sys.executable, "-c", EXPORTING], check=True, cwd=ROOT, env=env, timeout=120)
    data = [item["data"]["baseData"] for item in items]
    found = {m["name"]: (m["value"], d.get("properties")) for d in data for m in d.get("metrics", ())}
    assert found["timerjobs.fired"] == (3, {})
    assert found["timerjobs.failed"] == (1, {"outcome": "TimedOut"})
    assert found["timerjobs.lateness"] == (1.5, {})
    assert found["timerjobs.overdue_age"] == (90, {})
    (line,) = [d["properties"] for d in data if d.get("message") == "it is late"]
    assert {name: line[name] for name in ("action", "job", "run")} == {"action": "missed", "job": "a", "run": "7"}


def test_the_app_imports_no_exporter() -> None:
    code = (
        "import function_app, sys; print([m for m in sys.modules if m in ('azure.monitor', 'opentelemetry.sdk')])"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, timeout=120)
    assert told.stdout.decode().strip() == "[]"
