"""Azurite, the storage emulator: find it, start it, wait until it answers, stop it.

For Linux and macOS. `Azurite.start` is for tests (free ports, nothing kept), `Azurite.use_or_start` for
the local run (known ports, data kept in a folder).

A free port is chosen by Azurite itself, which binds it, and read from what Azurite prints. To choose one here
and hand it over would leave a moment in which another process can take it; and what then answers on a port may
be another's Azurite.
"""

from __future__ import annotations

import fcntl
import http.client
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

from devhost.errors import DevhostError
from devhost.listeners import holder

log = logging.getLogger("devhost.azurite")

HOST = "127.0.0.1"
SERVERS = ("Azurite-Blob", "Azurite-Queue", "Azurite-Table")
SCRIPT = Path(__file__).parent / "node_modules" / "azurite" / "dist" / "src" / "azurite.js"
GUARD = Path(__file__).with_name("guard.py")
START_SECONDS = 60.0
STOP_SECONDS = 20.0
MOST_OUTPUT = 65536
OTHER_PORTS = "choose other ports with --azurite-ports (make run STORAGE_PORTS=10010,10011,10012)"
LISTENING = re.compile(
    r"^Azurite (Blob|Queue|Table) service is successfully listening at \S+:(\d+)$", re.MULTILINE
)

# Azurite's account is public knowledge: every installation has this name and key.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class Ports(NamedTuple):
    """The three ports of an Azurite."""

    blob: int
    queue: int
    table: int


STANDARD_PORTS = Ports(10000, 10001, 10002)
FREE_PORTS = Ports(0, 0, 0)


def connection_string(ports: Ports) -> str:
    """What `UseDevelopmentStorage=true` stands for, with Azurite on these ports."""
    endpoints = "".join(
        f"{service.capitalize()}Endpoint=http://{HOST}:{port}/{ACCOUNT};"
        for service, port in ports._asdict().items()
    )
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};{endpoints}"


class Azurite:
    """An Azurite that listens. A context manager: leaving it stops the process, if it is ours."""

    def __init__(self, ports: Ports, process: subprocess.Popen[bytes] | None) -> None:
        self.ports = ports
        self._process = process

    @property
    def connection_string(self) -> str:
        """The connection string of its only account."""
        return connection_string(self.ports)

    @property
    def is_ours(self) -> bool:
        """Whether this process started it, and so stops it."""
        return self._process is not None

    @classmethod
    def start(
        cls,
        *,
        location: Path | None = None,
        ports: Ports = FREE_PORTS,
        in_memory: bool = False,
        options: Sequence[str] = (),
    ) -> Self:
        """Start one and wait until its three services listen.

        Args:
            location: the folder for its data; needed unless `in_memory`.
            ports: where to listen; 0 is any free one, and `ports` of what is returned says which.
            in_memory: keep nothing on disk.
            options: more of its command line.

        It ends with this process, at the latest, however that ends.
        Raises DevhostError if Node or Azurite is missing, a port is taken, or Azurite ends before it listens.
        """
        if location is None and not in_memory:
            raise ValueError("an Azurite that keeps its data needs a location")
        folder = None if in_memory else location
        with ExitStack() as stack:
            output = stack.enter_context(tempfile.TemporaryFile())
            lock = None if folder is None else stack.enter_context(_lock(folder))
            process = subprocess.Popen(
                [*_command(ports, folder), *options],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[] if lock is None else [lock.fileno()],
                start_new_session=True,  # Ctrl-C in the terminal is for the host, which still needs storage
            )
            azurite = cls(ports, process)
            try:
                azurite.ports = _wait_until_it_listens(process, output)
            except BaseException:
                azurite.stop()
                raise
            return azurite

    @classmethod
    def use_or_start(cls, *, location: Path, ports: Ports = STANDARD_PORTS) -> Self:
        """Use the Azurite that answers on these ports, or start one there.

        Raises DevhostError, besides `start`'s reasons, if other programs have some of the ports, or Azurite
        only a part of them.
        """
        found = {port: _server_at(port) for port in ports if port}
        silent = [port for port, name in zip(ports, SERVERS, strict=True) if not _is(found.get(port), name)]
        if not silent:
            return cls(ports, None)
        for port in silent:
            if (server := found.get(port)) is not None:
                raise _taken(port, server)
        if len(silent) < len(ports):
            raise DevhostError(
                f"of the ports {_listed(ports)} an Azurite answers on some, but not on {_listed(silent)}: "
                f"stop it, or {OTHER_PORTS}"
            )
        return cls.start(location=location, ports=ports)

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """End the process, if it is ours, and wait until it has saved its data and is gone.

        It is killed after so many seconds. It also saves every 5 seconds, so a kill loses no more than that.
        """
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            log.warning("Azurite has not ended within %.1f s and is killed", seconds)
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _command(ports: Ports, location: Path | None) -> list[str]:
    node = shutil.which("node")
    if node is None:
        raise DevhostError("Node 18 or newer is needed to run Azurite, but there is no `node` on the PATH")
    if not SCRIPT.exists():
        raise DevhostError("Azurite is not installed: run `npm ci --prefix devhost`")
    command = [sys.executable, "-IS", str(GUARD), node, str(SCRIPT)]
    command += ["--disableTelemetry", "--skipApiVersionCheck", "--silent"]
    for service, port in ports._asdict().items():
        command += [f"--{service}Host", HOST, f"--{service}Port", str(port)]
    return command + (["--inMemoryPersistence"] if location is None else ["--location", str(location)])


def _lock(location: Path) -> IO[bytes]:
    """Take the folder for one Azurite. The lock is held by whichever process has the file open.

    An Azurite stops listening before it has saved; one that began to read by then would miss the end.
    """
    location.mkdir(parents=True, exist_ok=True)
    file = (location / "lock").open("wb")
    deadline = time.monotonic() + STOP_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > deadline:
                file.close()
                raise DevhostError(f"another Azurite, on other ports, has the data in {location}") from None
            time.sleep(0.1)


def _wait_until_it_listens(process: subprocess.Popen[bytes], output: IO[bytes]) -> Ports:
    """The ports it listens on, by its own word: what answers on a port need not be this process."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        has_ended = process.poll() is not None or time.monotonic() > deadline
        # Not by the file's position, which is the process's too.
        text = os.pread(output.fileno(), MOST_OUTPUT, 0).decode(errors="replace")
        listening = {name.lower(): int(port) for name, port in LISTENING.findall(text)}
        if has_ended:
            raise _failed(text)
        if len(listening) == len(SERVERS):
            return Ports(**listening)
        time.sleep(0.05)


def _failed(output: str) -> DevhostError:
    if taken := re.search(r"EADDRINUSE.*:(\d+)$", output, re.MULTILINE):
        return _taken(int(taken[1]))
    last = next((line for line in reversed(output.split("\n")) if line.strip()), "it said nothing")
    return DevhostError(f"Azurite did not start: {last}")


def _taken(port: int, server: str = "") -> DevhostError:
    who = holder(port) or f"another program ({server or 'unnamed'})"
    return DevhostError(f"port {port}, wanted for Azurite, is taken by {who}: stop it, or {OTHER_PORTS}")


def _is(server: str | None, name: str) -> bool:
    return server is not None and server.startswith(name)


def _listed(ports: Iterable[int]) -> str:
    return ", ".join(map(str, ports))


def _server_at(port: int) -> str | None:
    """The Server header of what answers on a port: "" if there is none, None if nobody listens."""
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", "/")
        response = connection.getresponse()
        with suppress(OSError, http.client.HTTPException):
            response.read()
        return response.getheader("Server", "")
    except ConnectionRefusedError:
        return None
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
