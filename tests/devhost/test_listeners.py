"""Telling which process has a port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from devhost import listeners
from devhost.listeners import holder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows it without another program")


@pytest.mark.parametrize(
    ("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1")]
)
def test_the_process_that_listens_is_named(family: socket.AddressFamily, address: str) -> None:
    with socket.create_server((address, 0), family=family) as server:
        assert (holder(server.getsockname()[1]) or "").startswith(f"process {os.getpid()} (")


def test_its_command_line_is_shown_in_one_line_and_cut() -> None:
    program = (
        "import socket\ns = socket.create_server(('127.0.0.1', 0))\nprint(s.getsockname()[1], flush=True)\ninput()"
    )
    command = [sys.executable, "-c", program, "x" * 200]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = holder(int(process.stdout.readline())) or ""
        process.kill()
    shown = " ".join(command).replace("\n", " ")[: listeners.LONGEST_COMMAND - 1]
    assert found == f"process {process.pid} ({shown}…)"


def test_who_is_only_connected_does_not_have_the_port() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert holder(client.getsockname()[1]) is None


def test_nobody_has_a_port_on_which_nobody_listens() -> None:
    assert holder(9) is None


def test_without_the_kernels_tables_nothing_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "PROC", tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert holder(server.getsockname()[1]) is None
