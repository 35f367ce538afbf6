"""Finding, starting, sharing and ending Azurite."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from azure.storage.queue import QueueClient

from devhost import azurite as module
from devhost.azurite import FREE_PORTS, Azurite, Ports, connection_string
from devhost.errors import DevhostError
from tests.devhost.support import eventually_sync

pytestmark = pytest.mark.servers


def answers(port: int) -> bool:
    """Whether somebody listens."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def other_program() -> Iterator[int]:
    """The port of a web server that is no Azurite."""
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_connection_string_names_each_service() -> None:
    text = connection_string(Ports(1, 2, 3))
    assert text.startswith(
        "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFl"
    )
    assert text.endswith(
        "BlobEndpoint=http://127.0.0.1:1/devstoreaccount1;QueueEndpoint=http://127.0.0.1:2/devstoreaccount1;"
        "TableEndpoint=http://127.0.0.1:3/devstoreaccount1;"
    )


def test_free_ports_are_chosen_by_azurite_and_told() -> None:
    with Azurite.start(in_memory=True) as first, Azurite.start(in_memory=True) as second:
        assert len({*first.ports, *second.ports}) == 6
        assert all(map(answers, first.ports + second.ports))


def test_it_listens_on_the_ports_that_it_is_given(tmp_path: Path) -> None:
    for _ in range(20):
        with Azurite.start(in_memory=True) as running:
            ports = running.ports
        # Somebody may have taken one meanwhile.
        with suppress(DevhostError), Azurite.use_or_start(location=tmp_path, ports=ports) as again:
            assert (again.is_ours, again.ports) == (True, ports)
            return
    raise AssertionError("the ports were taken each time")


def test_an_azurite_of_somebody_else_is_not_taken_for_the_one_that_was_started(azurite: Azurite) -> None:
    with pytest.raises(DevhostError, match=f"^port {azurite.ports.blob}, wanted for Azurite, is taken by "):
        Azurite.start(ports=azurite.ports, in_memory=True)
    assert all(map(answers, azurite.ports))


def test_what_is_stored_survives_a_stop_and_nothing_listens_after_it(tmp_path: Path) -> None:
    with Azurite.start(location=tmp_path) as first:
        with QueueClient.from_connection_string(first.connection_string, "kept") as queue:
            queue.create_queue()
            queue.send_message("hello")
        assert all(map(answers, first.ports))
    assert not any(map(answers, first.ports))
    with Azurite.use_or_start(location=tmp_path, ports=FREE_PORTS) as second:
        assert second.is_ours
        with QueueClient.from_connection_string(second.connection_string, "kept") as queue:
            assert [message.content for message in queue.peek_messages()] == ["hello"]


def test_one_that_runs_is_used_and_left_running(azurite: Azurite, tmp_path: Path) -> None:
    with Azurite.use_or_start(location=tmp_path, ports=azurite.ports) as shared:
        assert not shared.is_ours
        assert shared.connection_string == azurite.connection_string
    assert all(map(answers, azurite.ports))


def test_a_port_of_another_program_is_named(other_program: int, tmp_path: Path) -> None:
    ports = FREE_PORTS._replace(queue=other_program)
    with pytest.raises(DevhostError, match=rf"^port {other_program}, .* taken by .*\): stop it, or choose other"):
        Azurite.use_or_start(location=tmp_path, ports=ports)


def test_a_program_that_cannot_be_seen_is_named_by_what_it_answers(
    other_program: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "holder", lambda port: None)
    with pytest.raises(DevhostError, match=r"taken by another program \(BaseHTTP.*\): stop it"):
        Azurite.use_or_start(location=tmp_path, ports=FREE_PORTS._replace(queue=other_program))


def test_a_half_occupied_set_is_named(azurite: Azurite, tmp_path: Path) -> None:
    ports = azurite.ports._replace(table=9)
    with pytest.raises(DevhostError, match=rf"answers on some, but not on {ports.table}: stop it"):
        Azurite.use_or_start(location=tmp_path, ports=ports)


def test_services_in_another_order_are_not_taken_for_the_right_ones(azurite: Azurite, tmp_path: Path) -> None:
    blob, queue, table = azurite.ports
    with pytest.raises(DevhostError, match=f"^port {queue}, wanted for Azurite, is taken by "):
        Azurite.use_or_start(location=tmp_path, ports=Ports(queue, blob, table))


def test_a_start_on_a_taken_port_says_so_and_leaves_nothing(
    other_program: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def noted(*arguments: Any, **more: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **more))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", noted)
    with pytest.raises(DevhostError, match=f"^port {other_program}, wanted for Azurite, is taken by "):
        Azurite.start(ports=FREE_PORTS._replace(table=other_program), in_memory=True)
    assert started[0].returncode is not None


def test_a_start_that_fails_says_why() -> None:
    with pytest.raises(DevhostError, match=r"^Azurite did not start: .*no-such-file"):
        Azurite.start(in_memory=True, options=["--cert", "no-such-file", "--key", "no-such-file"])


def test_one_that_does_not_end_is_killed(tmp_path: Path) -> None:
    azurite = Azurite.start(location=tmp_path)
    azurite.stop(0.0)
    eventually_sync(lambda: not any(map(answers, azurite.ports)))


def test_a_folder_that_is_in_use_is_not_opened_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STOP_SECONDS", 0.1)
    with Azurite.start(location=tmp_path), pytest.raises(DevhostError, match="another Azurite"):
        Azurite.start(location=tmp_path)


def test_a_missing_node_or_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCRIPT", tmp_path / "none.js")
    with pytest.raises(DevhostError, match="npm ci --prefix devhost"):
        Azurite.start(in_memory=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DevhostError, match="Node 18 or newer"):
        Azurite.start(in_memory=True)


def test_without_a_folder_it_must_be_in_memory() -> None:
    with pytest.raises(ValueError, match="needs a location"):
        Azurite.start()


def test_it_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from devhost.azurite import Azurite\n"
        f"print(*Azurite.start(location=Path({str(tmp_path)!r})).ports, flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        ports = [int(port) for port in owner.stdout.readline().split()]
        assert all(map(answers, ports))
        os.kill(owner.pid, signal.SIGKILL)
    eventually_sync(lambda: not any(map(answers, ports)))
