"""The command line: `python -m devhost` runs the Functions app in this folder."""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

from devhost import echo
from devhost.azurite import STANDARD_PORTS, Azurite, Ports
from devhost.ending import GRACE_SECONDS, Ending
from devhost.errors import DevhostError
from devhost.functions import HANDLER_THREADS, Functions, Threads, load_app, read_functions
from devhost.host import Host
from devhost.listeners import holder
from devhost.only_run import only_run, say
from devhost.queues import LOCK_SECONDS
from devhost.settings import HostConfig, load_settings, point_development_storage_at
from devhost.worker import Start, kill

log = logging.getLogger("devhost")

DATA_FOLDER = ".azurite"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the host until SIGINT or SIGTERM. Returns the exit status: 1 if it could not start."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
        level=logging.DEBUG if options.verbose else logging.INFO,
    )
    for name in ("azure", "asyncio", "aiohttp"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # Until the host runs, both signals end it like any exception, so that Azurite is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _run(options)
    except DevhostError as error:
        print(f"devhost: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


def _run(options: argparse.Namespace) -> None:
    start = Start.now()
    app_dir = options.app_dir.resolve()
    os.chdir(app_dir)
    config = HostConfig.read(app_dir)
    if options.function_timeout is not None:
        config = replace(config, function_timeout=timedelta(seconds=options.function_timeout))
    settings = load_settings(app_dir)
    functions = _load(app_dir)
    if options.only is not None:
        functions = functions.only(options.only)
    with ExitStack() as stack:
        data = app_dir / DATA_FOLDER
        claim = stack.enter_context(only_run(data)) if options.azurite else None
        server = stack.enter_context(_listen(options.host, options.port))
        address = _address(options.host, server)
        ending = stack.enter_context(Ending(options.grace))
        if claim is not None:
            say(claim, address)
            ending.azurite = Azurite.use_or_start(location=data, ports=options.azurite_ports)
        log.info("Port %d for HTTP%s", server.getsockname()[1], _storage(ending.azurite))
        point_development_storage_at(ending.azurite.ports if ending.azurite else options.azurite_ports)
        log.info(
            "Functions: %d HTTP, %d timer, %d queue; settings from the environment and %s",
            len(functions.http),
            len(functions.timers),
            len(functions.queues),
            settings or "no file",
        )

        def restart() -> NoReturn:
            port = server.getsockname()[1]
            stack.close()  # so Azurite saves its data
            signal.signal(signal.SIGINT, signal.default_int_handler)
            start.again("--port", str(port))

        asyncio.run(_serve(functions, config, server, options, address, ending, restart))


def _address(host: str, server: socket.socket) -> str:
    name = f"[{host}]" if ":" in host else host.replace("0.0.0.0", "127.0.0.1")
    return f"http://{name}:{server.getsockname()[1]}"


def _storage(azurite: Azurite | None) -> str:
    if azurite is None:
        return ""
    ports = ", ".join(f"{port} ({service})" for service, port in azurite.ports._asdict().items())
    if azurite.is_ours:
        return f"; ports {ports} for Azurite, started, with its data in {DATA_FOLDER}"
    whose = holder(azurite.ports.table) or "another program"
    return f"; ports {ports} for Azurite, found running: {whose}, whose jobs are shared and end with it"


async def _serve(
    functions: Functions,
    config: HostConfig,
    server: socket.socket,
    options: argparse.Namespace,
    address: str,
    ending: Ending,
    restart: Callable[[], NoReturn],
) -> None:
    host = Host(functions, config, restart=restart, key=options.key, lock_seconds=options.lock_seconds)

    def stop() -> None:
        log.info("Stopping, with at most %g s for what is running; again to stop now", options.grace)
        ending.begin()
        host.stop()

    def drain() -> None:
        log.info("Draining: killed when no invocation is open, after %g s at most", options.drain_seconds)
        host.drain(options.drain_seconds)

    loop = asyncio.get_running_loop()
    loop.set_default_executor(Threads())
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGUSR1, drain)
    await host.run(server, options.grace, lambda: print(_welcome(address, config, options.key), flush=True))


def _load(app_dir: Path) -> Functions:
    try:
        return read_functions(load_app(app_dir))
    except DevhostError:
        raise
    except Exception as error:
        log.exception("function_app.py cannot be loaded")
        raise DevhostError(f"function_app.py cannot be loaded: {error}") from None


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise DevhostError(
                f"port {port} is taken by {holder(port) or 'another program'}: "
                f"stop it, or choose another port with --port (make run PORT={port + 1})"
            ) from None
        raise DevhostError(f"cannot listen on {host}, port {port}: {error.strerror}") from None


def _welcome(address: str, config: HostConfig, key: str | None) -> str:
    api = "/".join(filter(None, (address, config.route_prefix)))
    header = f" -H 'x-functions-key: {key}'" if key else ""
    job = {
        "id": "echo",  # not that of the README: both can be sent
        "trigger": {"type": "Recurrence", "recurrence": {"frequency": "Second", "interval": 10}},
        "action": {
            "type": "Http",
            "inputs": {"method": "POST", "uri": address + echo.PATH, "body": {"hello": "world"}},
        },
    }
    return f"""
The app answers at {api}; Ctrl-C stops it. A job that calls {address}{echo.PATH} every 10 seconds:

  curl{header} -H 'Content-Type: application/json' {api}/jobs -d '{json.dumps(job)}'

Its runs:

  curl{header} {api}/jobs/echo/runs
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devhost", description="Runs a Functions app on this machine.")
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", type=_port, default=7071, help="port to listen on; 0: a free one (default: %(default)s)")
    add("--app-dir", type=Path, default=Path(), help="folder of function_app.py (default: this one)")
    add("--no-azurite", dest="azurite", action="store_false", help="do not start Azurite")
    add(
        "--azurite-ports",
        type=_ports,
        default=STANDARD_PORTS,
        metavar="BLOB,QUEUE,TABLE",
        help="ports for UseDevelopmentStorage=true; 0: a free one (default: {},{},{})".format(*STANDARD_PORTS),
    )
    add(
        "--key",
        default=os.environ.get("DEVHOST_KEY"),
        help="demand this function key (default: $DEVHOST_KEY)",
    )
    add(
        "--grace",
        type=float,
        default=GRACE_SECONDS,
        help="seconds for running invocations at the end (default: %(default)g)",
    )
    add(
        "--only",
        type=lambda text: text.split(","),
        metavar="NAME[,NAME]",
        help="run these functions alone, as one of the platform's instances does; http: all that answer HTTP",
    )
    add(
        "--function-timeout",
        type=_seconds,
        metavar="SECONDS",
        help="the longest an invocation may last, instead of functionTimeout of host.json",
    )
    add(
        "--drain-seconds",
        type=_seconds,
        default=3600.0,
        metavar="SECONDS",
        help="the longest that open invocations may last after SIGUSR1, which drains (default: %(default)g)",
    )
    # For tests only: on the platform it cannot be set.
    add("--lock-seconds", type=int, default=LOCK_SECONDS, help=argparse.SUPPRESS)
    add("--verbose", action="store_true", help="log each invocation")
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def _ports(text: str) -> Ports:
    ports = [_port(each) for each in text.split(",")]
    if len(ports) != 3:
        raise argparse.ArgumentTypeError(f"{text!r} is not three ports")
    return Ports(*ports)


def _exit(status: int) -> None:
    """Leave even if a handler still runs in a thread, which cannot be stopped."""
    HANDLER_THREADS.shutdown()
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        kill(status)
    sys.exit(status)


if __name__ == "__main__":
    _exit(main())
