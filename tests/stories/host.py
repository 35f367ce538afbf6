"""The local host as a process of its own, to be talked to over HTTP and killed."""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp

from shared.settings import Settings, read_settings

ROOT = Path(__file__).parent.parent.parent


class HostProcess:
    """`python -m devhost` on the test's Azurite, on a port of its own choice."""

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
            # Grace enough for a machine that is busy: what is running at the end is to finish.
            *("-m", "devhost", "--port", "0", "--no-azurite", "--grace", "60"),
            cwd=ROOT,
            env=dict(os.environ) | self.env,
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

    async def kill(self) -> None:
        """Kills it as a power cut would."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """Ends it as Ctrl-C does; its exit status."""
        return await self._end(signal.SIGINT)

    async def _end(self, number: signal.Signals) -> int:
        assert self._process
        assert self._reading
        if self._process.returncode is None:
            self._process.send_signal(number)
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
