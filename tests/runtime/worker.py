"""Talks to a process with the genuine worker in it (worker_harness.py)."""

import asyncio
import base64
import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

HARNESS = Path(__file__).with_name("worker_harness.py")
ANSWER_SECONDS = 60.0

FAILURE, SUCCESS = 0, 1  # StatusResult of the worker's protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the worker tells of an invocation; `code` and what follows if it gave an HTTP response."""

    status: int
    error: str | None = None
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""

    @property
    def json(self) -> Any:
        """The body's value."""
        return json.loads(self.body)


class Worker:
    """A worker that has indexed an app, or has failed to (`error`)."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        report = self._answer()
        self.error: str | None = report["error"]
        self.functions: dict[str, list[dict[str, Any]]] = report.get("functions", {})

    async def invoke(
        self, function: str, data: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
    ) -> Outcome:
        """Calls a function with what its trigger brings."""
        assert function in self.functions, f"{function} is not indexed"
        asked = {"function": function, "data": data, "metadata": metadata or {}}
        return Outcome(**await asyncio.to_thread(self._answer, asked))

    async def request(self, function: str, method: str, path: str, body: Any = b"", **route: str) -> Outcome:
        """Calls an HTTP function: bytes as they are, any other body as JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        url = f"http://localhost:7071/api/{path}"
        http = {
            "method": method,
            "url": url,
            "headers": {"Host": "localhost:7071", "Content-Type": "application/json"},
            "params": route,
            "query": dict(parse_qsl(urlsplit(url).query)),
            "body": base64.b64encode(content).decode(),
        }
        return await self.invoke(function, {"http": http})

    def _answer(self, asked: Mapping[str, Any] | None = None) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        alarm = threading.Timer(ANSWER_SECONDS, self._process.kill)
        alarm.start()
        try:
            if asked is not None:
                print(json.dumps(asked), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        finally:
            alarm.cancel()
        assert line, "the worker's process ended, or was stopped, before it answered"
        return json.loads(line)


@contextmanager
def working(python: Path, app: Path, settings: Mapping[str, str], *library: Path) -> Iterator[Worker]:
    """A worker of its own process for the app in a directory, with these settings and no others.

    `library` is where the worker's own library is, if `python` does not have it.
    """
    with subprocess.Popen(
        [python, "-I", HARNESS, app, *library],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=app,
        env={"PATH": os.environ["PATH"], **settings},
    ) as process:
        try:
            yield Worker(process)
        finally:
            process.kill()
