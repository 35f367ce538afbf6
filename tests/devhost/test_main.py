"""The host as a whole: a process of its own that runs the sample app."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from azure.storage.queue import QueueClient

from devhost.__main__ import main
from devhost.azurite import FREE_PORTS, Azurite, Ports, connection_string
from devhost.ending import CANCEL_SECONDS, GRACE_SECONDS, SAVE_SECONDS
from devhost.host import CLOSE_SECONDS
from tests.devhost.support import SAMPLE, eventually_sync
from tests.devhost.test_azurite import answers

pytestmark = pytest.mark.servers

ROOT = Path(__file__).parents[2]
WHOEVER = r"process \d+ \(.+\)" if sys.platform == "linux" else "another program( .*)?"


class HostProcess:
    """`python -m devhost` for the app in a folder, on a free port. Leaving it kills what still runs."""

    def __init__(self, app: Path, *arguments: str, log: Path | None = None, **environment: str) -> None:
        self._log = (log or app) / f"log-{uuid.uuid4().hex}.txt"  # several hosts may run one app
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("Azure", "DEVHOST"))}
        with self._log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "devhost", "--port", "0", "--app-dir", str(app), *arguments],
                cwd=ROOT,
                env={**inherited, **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def output(self) -> str:
        return self._log.read_text()

    def ready(self) -> Self:
        """Wait until it has started."""
        eventually_sync(lambda: "answers at" in self.output or self.process.poll() is not None)
        assert self.process.poll() is None, self.output
        return self

    @property
    def address(self) -> str:
        """Where it answers."""
        started = re.search(r"answers at (http://[^/]+)/api;", self.output)
        assert started is not None
        return started[1]

    @property
    def ports(self) -> Ports:
        """Where its Azurite listens."""
        found = re.findall(r"; ports (\d+) \(blob\), (\d+) \(queue\), (\d+) \(table\) for Azurite", self.output)
        return Ports(*map(int, found[-1]))  # of the worker that runs now

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """The status and the text of an answer."""
        try:
            with urlopen(Request(self.address + path, headers=headers)) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def end(self, number: signal.Signals) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(60)

    def failure(self) -> str:
        """Its output, when it has ended because it could not start."""
        assert self.process.wait(60) == 1, self.output
        return self.output


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A copy of the sample app; the host's data are to lie in it too."""
    return Path(shutil.copytree(SAMPLE, tmp_path / "app"))


def listed(ports: Ports) -> str:
    return ",".join(map(str, ports))


ON_FREE_PORTS = ("--azurite-ports", listed(FREE_PORTS))


@pytest.fixture
def with_azurite(azurite: Azurite) -> list[str]:
    """Arguments to use the session's Azurite."""
    return ["--azurite-ports", listed(azurite.ports)]


def test_it_starts_azurite_serves_and_leaves_nothing_behind(app: Path) -> None:
    with HostProcess(app, *ON_FREE_PORTS) as host:
        ports = host.ready().ports
        assert all(map(answers, ports))
        assert "local.settings.sample.json" in host.output
        assert host.get("/api/greeting") == (200, "from the sample")
        assert host.get("/api/secret") == (200, "for those who have the key")
        assert host.get("/echo?status=202")[0] == 202
        assert "GET /echo?status=202" in host.output
        for expected in ('{"id": "echo", "trigger": ', "/echo", "/api/jobs/echo/runs"):
            assert expected in host.output
        assert "Executing" not in host.output
        assert host.end(signal.SIGTERM) == 0
    assert not any(map(answers, ports))


def test_a_killed_host_loses_nothing_and_starts_again(app: Path) -> None:
    with HostProcess(app, *ON_FREE_PORTS) as host:
        ports = host.ready().ports
        with QueueClient.from_connection_string(connection_string(ports), "kept") as queue:
            queue.create_queue()
            queue.send_message("hello")
        host.end(signal.SIGKILL)
    eventually_sync(lambda: not any(map(answers, ports)))
    with HostProcess(app, *ON_FREE_PORTS) as again:
        ports = again.ready().ports
        with QueueClient.from_connection_string(connection_string(ports), "kept") as queue:
            assert [message.content for message in queue.peek_messages()] == ["hello"]
        assert again.end(signal.SIGINT) == 0
    assert not any(map(answers, ports))


def test_a_second_host_uses_the_azurite_that_runs(app: Path, with_azurite: list[str], azurite: Azurite) -> None:
    with HostProcess(app, *with_azurite) as host:
        host.ready()
        assert f"; ports {azurite.ports.blob} (blob), " in host.output
        assert "for Azurite, found running: " in host.output
        assert host.end(signal.SIGINT) == 0
    assert all(map(answers, azurite.ports))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_invocations_finish_and_storage_last_until_then(app: Path, number: signal.Signals) -> None:
    by_http, by_queue = app / "by http", app / "by_queue"
    by_http.mkdir()
    by_queue.mkdir()
    with HostProcess(app, *ON_FREE_PORTS, "--grace", "60") as host, ThreadPoolExecutor() as pool:
        ports = host.ready().ports
        eventually_sync(lambda: "Queue sample created" in host.output)
        with QueueClient.from_connection_string(connection_string(ports), "sample") as queue:
            queue.send_message(base64.b64encode(str(by_queue).encode()).decode())
        answer = pool.submit(host.get, f"/api/slow?folder={quote(str(by_http))}")
        for folder in (by_http, by_queue):
            eventually_sync((folder / "started").exists)
        os.killpg(host.process.pid, number)  # to all in the foreground, as Ctrl-C does
        eventually_sync(lambda: "Stopping" in host.output)
        assert host.get("/api/greeting")[0] == 503
        for folder in (by_http, by_queue):
            (folder / "release").touch()
        assert answer.result() == (200, "finished")
        assert host.process.wait(60) == 0
    with Azurite.start(location=app / ".azurite") as storage:
        queue = QueueClient.from_connection_string(storage.connection_string, "sample")
        assert queue.get_queue_properties().approximate_message_count == 0
        queue.close()


def get_no_answer(host: HostProcess, path: str) -> None:
    with pytest.raises(ConnectionError):
        host.get(path)


@pytest.mark.parametrize(
    ("route", "again"), [("slow", False), ("stuck", False), ("stuck_inside", False), ("slow", True)]
)
def test_what_does_not_finish_in_time_is_given_up(
    app: Path, with_azurite: list[str], route: str, again: bool
) -> None:
    grace = "60" if again else "0.1"
    with HostProcess(app, *with_azurite, "--grace", grace, SAMPLE_QUEUE=f"q{uuid.uuid4().hex}") as host:
        host.ready()
        address = f"/api/{route}?folder={quote(str(app))}"
        asking = threading.Thread(target=get_no_answer, args=(host, address))
        asking.start()
        eventually_sync((app / "started").exists)
        host.process.send_signal(signal.SIGINT)
        if again:
            eventually_sync(lambda: "Stopping" in host.output)
            host.process.send_signal(signal.SIGINT)
        assert host.process.wait(30) == 0
        asking.join()
        assert ("Not all invocations ended" in host.output) is not again


def invoke(host: HostProcess, route: str, folder: Path) -> tuple[int, str]:
    return host.get(f"/api/{route}?folder={quote(str(folder))}")


def length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def test_a_drained_host_is_killed_when_its_last_invocation_ends_and_not_before(
    app: Path, with_azurite: list[str], azurite: Azurite, queue_name: str
) -> None:
    by_http, by_queue, late = (app / each for each in ("http", "queue", "late"))
    for folder in (by_http, by_queue, late):
        folder.mkdir()

    def the_task_goes_on() -> None:
        before = length(app / "ticks")
        eventually_sync(lambda: length(app / "ticks") > before + 10)
        assert host.process.poll() is None

    with (
        HostProcess(app, *with_azurite, SAMPLE_QUEUE=queue_name) as host,
        QueueClient.from_connection_string(azurite.connection_string, queue_name) as queue,
        ThreadPoolExecutor() as pool,
    ):
        host.ready()
        eventually_sync(lambda: f"Queue {queue_name} created" in host.output)
        queue.send_message(base64.b64encode(str(by_queue).encode()).decode())
        answer = pool.submit(invoke, host, "slow", by_http)
        for folder in (by_http, by_queue):
            eventually_sync((folder / "started").exists)
        assert invoke(host, "background", app) == (200, "1")
        host.process.send_signal(signal.SIGUSR1)
        eventually_sync(lambda: "Draining" in host.output)
        assert (host.get("/api/greeting")[0], host.get("/echo")[0]) == (503, 200)
        the_task_goes_on()
        queue.send_message(base64.b64encode(str(late).encode()).decode())
        (by_http / "release").touch()
        assert answer.result() == (200, "finished")
        the_task_goes_on()
        (by_queue / "release").touch()
        assert host.process.wait(60) == 0
        assert "Drained: no invocation is open" in host.output
        assert not (late / "started").exists()
        assert queue.get_queue_properties().approximate_message_count == 1


@pytest.mark.parametrize(("number", "cleaned"), [(signal.SIGTERM, True), (signal.SIGUSR1, False)])
def test_draining_leaves_tasks_no_time_to_clean_up_as_stopping_does(
    app: Path, with_azurite: list[str], queue_name: str, number: signal.Signals, cleaned: bool
) -> None:
    with HostProcess(app, *with_azurite, SAMPLE_QUEUE=queue_name) as host:
        invoke(host.ready(), "background", app)
        eventually_sync(lambda: length(app / "ticks"))
        assert host.end(number) == 0
        assert (app / "cleaned").exists() is cleaned


def test_draining_kills_what_does_not_end_in_time(app: Path, with_azurite: list[str], queue_name: str) -> None:
    with HostProcess(app, *with_azurite, "--drain-seconds", "0.1", SAMPLE_QUEUE=queue_name) as host:
        asking = threading.Thread(target=get_no_answer, args=(host.ready(), f"/api/slow?folder={quote(str(app))}"))
        asking.start()
        eventually_sync((app / "started").exists)
        assert host.end(signal.SIGUSR1) == 1
        asking.join()
        assert "Not all invocations ended within 0.1 s of draining" in host.output


def test_an_invocation_beyond_function_timeout_ends_the_worker_and_another_starts(app: Path) -> None:
    with HostProcess(app, "--azurite-ports", "0,0,0", "--function-timeout", "3") as host:
        host.ready()
        with QueueClient.from_connection_string(connection_string(host.ports), "kept") as queue:
            queue.create_queue()
            queue.send_message("hello")
            assert invoke(host, "background", app) == (200, "1")
            settings = app / "local.settings.sample.json"
            settings.write_text(settings.read_text().replace("from the sample", "from the next worker"))
            get_no_answer(host, f"/api/slow?folder={quote(str(app))}")
            eventually_sync(lambda: host.output.count("answers at") == 2)
            assert host.output.count("Function slow exceeded functionTimeout") == 1
            assert host.get("/api/greeting") == (200, "from the next worker")  # at the same port
            assert invoke(host, "background", app) == (200, "1")
            assert not (app / "cleaned").exists()
        with QueueClient.from_connection_string(connection_string(host.ports), "kept") as queue:
            assert [message.content for message in queue.peek_messages()] == ["hello"]
        assert host.end(signal.SIGTERM) == 0
    assert not any(map(answers, host.ports))


def test_function_timeout_of_host_json_holds_and_a_draining_worker_is_not_started_again(
    app: Path, with_azurite: list[str], queue_name: str
) -> None:
    config = json.loads((app / "host.json").read_text()) | {"functionTimeout": "00:00:03"}
    (app / "host.json").write_text(json.dumps(config))
    with HostProcess(app, *with_azurite, SAMPLE_QUEUE=queue_name) as host:
        asking = threading.Thread(target=get_no_answer, args=(host.ready(), f"/api/slow?folder={quote(str(app))}"))
        asking.start()
        eventually_sync((app / "started").exists)
        assert host.end(signal.SIGUSR1) == 1
        asking.join()
        assert "Function slow exceeded functionTimeout" in host.output
        assert host.output.count("answers at") == 1


def test_only_the_functions_that_are_named_run(app: Path, azurite: Azurite, queue_name: str) -> None:
    storage = azurite.connection_string
    names = ("--no-azurite", "--only")
    with (
        HostProcess(app, *names, "take", SAMPLE_QUEUE=queue_name, AzureWebJobsStorage=storage) as dispatching,
        HostProcess(app, *names, "http", SAMPLE_QUEUE="other", AzureWebJobsStorage=storage) as answering,
        QueueClient.from_connection_string(azurite.connection_string, queue_name) as queue,
    ):
        dispatching.ready()
        answering.ready()
        assert (dispatching.get("/api/greeting")[0], dispatching.get("/echo")[0]) == (404, 200)
        assert answering.get("/api/greeting")[0] == 200
        assert "1 queue" in dispatching.output
        assert "0 queue" in answering.output
        eventually_sync(lambda: f"Queue {queue_name} created" in dispatching.output)
        (app / "release").touch()
        queue.send_message(base64.b64encode(str(app).encode()).decode())
        eventually_sync((app / "started").exists)


def test_a_function_that_is_not_there_is_named_in_one_line(app: Path) -> None:
    with HostProcess(app, "--only", "take,talk") as host:
        expected = "devhost: there is no function talk; there are http, take, greeting, secret, .*\n"
        assert re.fullmatch(expected, host.failure())


def test_a_killed_hosts_message_comes_again_when_its_lock_ends(
    app: Path, with_azurite: list[str], azurite: Azurite, queue_name: str
) -> None:
    arguments = [*with_azurite, "--lock-seconds", "2"]
    with QueueClient.from_connection_string(azurite.connection_string, queue_name) as queue:
        queue.create_queue()
        queue.send_message(base64.b64encode(str(app).encode()).decode())
        with HostProcess(app, *arguments, SAMPLE_QUEUE=queue_name) as host:
            eventually_sync((app / "started").exists)
            host.end(signal.SIGKILL)
        (app / "started").unlink()
        with HostProcess(app, *arguments, SAMPLE_QUEUE=queue_name):
            eventually_sync((app / "started").exists)


def test_keys_are_demanded_if_one_is_set(app: Path, azurite: Azurite) -> None:
    with HostProcess(
        app, "--no-azurite", DEVHOST_KEY="s3cret", AzureWebJobsStorage=azurite.connection_string
    ) as host:
        host.ready()
        assert host.get("/api/secret")[0] == 401
        assert host.get("/api/secret", **{"x-functions-key": "s3cret"})[0] == 200
        assert host.get("/api/greeting")[0] == 200
        assert "curl -H 'x-functions-key: s3cret'" in host.output
        assert "Azurite" not in host.output


def test_ports_that_are_taken_are_named_in_one_line(app: Path, azurite: Azurite) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with HostProcess(app, "--port", str(port)) as host:
            assert re.fullmatch(f"devhost: port {port} is taken by {WHOEVER}: stop it, .*\n", host.failure())
        with HostProcess(app, "--azurite-ports", listed(FREE_PORTS._replace(blob=port))) as host:
            expected = f"devhost: port {port}, wanted for Azurite, is taken by {WHOEVER}: stop it, .*\n"
            assert re.fullmatch(expected, host.failure())
    with HostProcess(app, "--azurite-ports", listed(azurite.ports._replace(blob=9))) as host:
        assert re.fullmatch("devhost: of the ports .* not on 9: .*\n", host.failure())


def test_a_second_run_in_a_folder_says_which_is_the_first(app: Path) -> None:
    with HostProcess(app, *ON_FREE_PORTS) as first:
        first.ready()
        (again := app / "again").mkdir()
        with HostProcess(app, *ON_FREE_PORTS, log=again) as second:
            assert second.failure() == (
                f"devhost: this folder's app runs already, as process {first.process.pid} on {first.address}: "
                "stop that one first\n"
            )
        assert first.get("/api/greeting")[0] == 200
        first.end(signal.SIGKILL)
    with HostProcess(app, *ON_FREE_PORTS) as third:
        third.ready()


def test_hosts_that_start_no_azurite_may_share_a_folder(app: Path, azurite: Azurite) -> None:
    storage = azurite.connection_string
    (other := app / "other").mkdir()
    with (
        HostProcess(app, "--no-azurite", AzureWebJobsStorage=storage) as first,
        HostProcess(app, "--no-azurite", log=other, AzureWebJobsStorage=storage) as second,
    ):
        assert first.ready().address != second.ready().address
        for host in (first, second):
            assert host.get("/api/greeting")[0] == 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_refuses_to_end_is_left_and_storage_is_saved(app: Path, number: signal.Signals) -> None:
    with HostProcess(app, *ON_FREE_PORTS, "--grace", "0.1") as host:
        ports = host.ready().ports
        with QueueClient.from_connection_string(connection_string(ports), "kept") as queue:
            queue.create_queue()
        asking = threading.Thread(target=get_no_answer, args=(host, f"/api/stubborn?folder={quote(str(app))}"))
        asking.start()
        eventually_sync((app / "started").exists)
        assert host.end(number) == 0
        asking.join()
        assert "Runs under way were cut off" in host.output
    assert not any(map(answers, ports))
    with Azurite.start(location=app / ".azurite") as storage:
        queue = QueueClient.from_connection_string(storage.connection_string, "kept")
        assert queue.get_queue_properties().approximate_message_count == 0
        queue.close()


def test_the_time_to_end_is_below_five_seconds() -> None:
    assert GRACE_SECONDS + CANCEL_SECONDS + SAVE_SECONDS < 5
    assert CLOSE_SECONDS < CANCEL_SECONDS


def test_a_missing_setting_is_named_in_one_line(app: Path) -> None:
    (app / "local.settings.sample.json").write_text("{}")
    with HostProcess(app) as host:
        expected = "devhost: setting SAMPLE_QUEUE, named by queueName of function take, is missing: .*\n"
        assert re.fullmatch(expected, host.failure())


def test_an_app_that_cannot_be_loaded_is_shown_with_its_error(app: Path) -> None:
    (app / "function_app.py").write_text("import no_such_module\n")
    with HostProcess(app) as host:
        assert 'function_app.py", line 1' in host.failure()
        assert host.output.endswith(
            "devhost: function_app.py cannot be loaded: No module named 'no_such_module'\n"
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "65536"], "'65536' is not a port"),
        (["--port", "x"], "'x' is not a port"),
        (["--azurite-ports", "1,2"], "'1,2' is not three ports"),
        (["--drain-seconds", "0"], "'0' is not a number of seconds above 0"),
        (["--function-timeout", "soon"], "'soon' is not a number of seconds above 0"),
    ],
)
def test_arguments_that_are_wrong_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert capsys.readouterr().err.endswith(f"{message}\n")
