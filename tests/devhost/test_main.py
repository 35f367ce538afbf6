"""The host as a whole: a process of its own that runs the sample app."""

from __future__ import annotations

import base64
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from azure.storage.queue import QueueClient

from devhost.azurite import Azurite, Ports, free_ports
from tests.devhost.support import SAMPLE, eventually_sync
from tests.devhost.test_azurite import answers

ROOT = Path(__file__).parents[2]


class HostProcess:
    """`python -m devhost` on a free port."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.log = folder / "log.txt"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "devhost", "--port", "0", "--app-dir", str(folder), *arguments],
                cwd=ROOT,
                env={**BARE_ENVIRONMENT, **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> str:
        return self.log.read_text()

    @property
    def url(self) -> str:
        match = re.search(r"answers at (http://[^/]+)/api;", self.output)
        assert match is not None
        return match[1]

    def ready(self) -> Self:
        eventually_sync(lambda: "answers at" in self.output or self.process.poll() is not None)
        assert self.process.poll() is None, self.output
        return self

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        try:
            with urlopen(Request(self.url + path, headers=headers)) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def end(self, number: signal.Signals) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(60)


BARE_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A copy of the sample app, in a folder for the host's data too."""
    return Path(shutil.copytree(SAMPLE, tmp_path / "app"))


@pytest.fixture
def hosts() -> Iterator[list[HostProcess]]:
    """Hosts that are killed at the end of a test, if they have not ended."""
    hosts: list[HostProcess] = []
    yield hosts
    for host in hosts:
        host.process.kill()
        host.process.wait()


def listed(ports: Ports) -> str:
    return ",".join(map(str, ports))
