"""The local host as a process of its own, to be talked to over HTTP and killed."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp

from shared.settings import Settings, read_settings

ROOT = Path(__file__).parent.parent.parent


class HostProcess:
    """`python -m devhost` on the test's Azurite, on a port of its own choice."""

    module = "devhost"
    grace = 60  # seconds; enough on a busy machine for what is running at the end to finish

    def __init__(self, storage: str, **env: str) -> None:
        name = uuid4().hex[:16]
        self.env = {
            "AzureWebJobsStorage": storage,
            "TABLE_NAME": f"t{name}",
            "QUEUE_NAME": f"q{name}",
            "PARTITIONS": "2",
            "HORIZON": "PT15M",
            "DETECTION_SCHEDULE": "* * * * * *",
            "DETECTION_PERIOD": "PT1S",
            "LOCK_DURATION": "PT15S",
            "OUTBOUND_ALLOW": '["127.0.0.0/8"]',
        } | env
        self.url = ""
        self._inherited = dict(os.environ)
        self._arguments = ["--no-azurite"]
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self.log: list[str] = []

    @property
    def settings(self) -> Settings:
        """The settings it runs with."""
        return read_settings(self.env)

    async def start(self) -> None:
        """Starts it and waits until it listens."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", self.module, "--port", "0", "--grace", str(self.grace), *self._arguments),
            cwd=ROOT,
            env=self._inherited | self.env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        self.url = ""
        self._reading = asyncio.create_task(self._read())
        async with asyncio.timeout(60):
            while not self.url:
                assert self._process.returncode is None, self.log
                await asyncio.sleep(0.02)

    async def _read(self) -> None:
        assert self._process
        assert self._process.stdout
        async for line in self._process.stdout:
            self.log.append(line.decode())
            if found := re.search(r"answers at (\S+)/api;", self.log[-1]):
                self.url = found[1]

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process
        return self._process.pid

    async def kill(self) -> None:
        """Kills it as a power cut would, if it was started."""
        if self._process:
            self.send(signal.SIGKILL)
            await self.ended()

    async def stop(self) -> int:
        """Ends it as Ctrl-C does; its exit status."""
        self.send(signal.SIGINT)
        return await self.ended()

    def send(self, number: signal.Signals) -> None:
        """Sends it a signal, if it has not ended."""
        assert self._process
        if self._process.returncode is None:
            self._process.send_signal(number)

    async def ended(self) -> int:
        """Waits for its end; its exit status."""
        assert self._process
        assert self._reading
        status = await self._process.wait()
        await self._reading
        return status

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the JSON of an answer of its API."""
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"{self.url}/api{path}", json=body) as answer,
        ):
            return answer.status, await answer.json(content_type=None)

    async def put_all(self, jobs: Mapping[str, Any]) -> None:
        """Creates these jobs, by id, with one request."""
        lines = "\n".join(json.dumps({"op": "put", "id": job_id, "job": job}) for job_id, job in jobs.items())
        headers = {"Content-Type": "application/x-ndjson"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.url}/api/bulk/jobs", data=lines.encode(), headers=headers) as answer,
        ):
            answers = [json.loads(line) for line in (await answer.text()).splitlines()]
        assert [line["status"] for line in answers] == [201] * len(jobs), answers

    async def jobs(self, prefix: str) -> list[Any]:
        """Up to 1,000 jobs whose ids begin so."""
        status, page = await self.call("GET", f"/jobs?prefix={prefix}&pageSize=1000")
        assert status == 200, page
        jobs: list[Any] = page["value"]
        return jobs


class FreshHost(HostProcess):
    """What `make run` starts where nothing was run before: the sample's settings, an Azurite and data of its own.

    Of names it looks up this machine's alone, so what the examples call is not really called.
    """

    def __init__(self, app: Path) -> None:
        super().__init__("")
        app.mkdir()
        for name in ("function_app.py", "host.json", "local.settings.sample.json", "shared", "workflows"):
            (app / name).symlink_to(ROOT / name)
        self._inherited = {"PATH": os.environ["PATH"]}
        self.env = {"PYTHONPATH": str(Path(__file__).parent / "offline")}
        self._arguments = ["--app-dir", str(app), "--azurite-ports", "0,0,0"]
