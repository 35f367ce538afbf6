"""The functions of an app, as its decorators describe them."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import logging
import os
import sys
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import azure.functions as func

from devhost.errors import DevhostError
from devhost.settings import resolve

log = logging.getLogger("devhost.functions")

APP_MODULE = "function_app"
DEFAULT_CONNECTION = "AzureWebJobsStorage"
HTTP_GROUP = "http"  # all functions that answer HTTP; the platform's name for them

Watch = Callable[[str], AbstractContextManager[object]]  # of a function's name


class Threads(ThreadPoolExecutor):
    """Threads that nobody waits for at the end: what hangs in one must not keep the host from ending."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Return at once, whatever `wait` says."""
        super().shutdown(wait=False, cancel_futures=True)


HANDLER_THREADS = Threads(thread_name_prefix="handler")


@dataclass(frozen=True)
class Function:
    """One function: its name, its code, and the parameter that takes what triggered it.

    `watch` makes the context that each invocation runs in.
    """

    name: str
    handler: Callable[..., Any]
    parameter: str
    watch: Watch = field(default=nullcontext, kw_only=True)

    async def invoke(self, argument: object) -> object:
        """Call the handler, in a thread if it is not async, and hand on what it returns or raises."""
        invocation, started = uuid.uuid4(), time.monotonic()
        log.debug("Executing %s (%s)", self.name, invocation)
        outcome = "failed"
        try:
            with self.watch(self.name):
                result = await self._call(argument)
            outcome = "succeeded"
            return result
        finally:
            took = (time.monotonic() - started) * 1000
            log.debug("Executed %s (%s): %s in %.0f ms", self.name, invocation, outcome, took)

    async def _call(self, argument: object) -> object:
        if inspect.iscoroutinefunction(self.handler):
            return await self.handler(**{self.parameter: argument})
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(HANDLER_THREADS, lambda: self.handler(**{self.parameter: argument}))


@dataclass(frozen=True)
class HttpFunction(Function):
    """A function that answers HTTP. `methods` are upper case; none given means all."""

    route: str
    methods: frozenset[str] = frozenset()
    auth_level: str = "function"

    def allows(self, method: str) -> bool:
        """Whether it answers this method."""
        return not self.methods or method.upper() in self.methods


@dataclass(frozen=True)
class TimerFunction(Function):
    """A function that a schedule (NCRONTAB, UTC) triggers."""

    schedule: str
    run_on_startup: bool = False


@dataclass(frozen=True)
class QueueFunction(Function):
    """A function that the messages of a storage queue trigger. `connection` is the name of a setting."""

    queue: str
    connection: str = DEFAULT_CONNECTION


@dataclass
class Functions:
    """All functions of an app, by trigger."""

    http: list[HttpFunction] = field(default_factory=list)
    timers: list[TimerFunction] = field(default_factory=list)
    queues: list[QueueFunction] = field(default_factory=list)

    def only(self, names: Collection[str]) -> Functions:
        """Those of these names; `http` names all that answer HTTP.

        Raises DevhostError for a name that no function has.
        """
        known = [HTTP_GROUP, *(each.name for each in (*self.queues, *self.timers, *self.http))]
        if unknown := [name for name in names if name not in known]:
            raise DevhostError(f"there is no function {', '.join(unknown)}; there are {', '.join(known)}")
        return Functions(
            [each for each in self.http if each.name in names or HTTP_GROUP in names],
            [each for each in self.timers if each.name in names],
            [each for each in self.queues if each.name in names],
        )

    def watched(self, watch: Watch) -> Functions:
        """The same functions, each invocation in a context that `watch` makes."""
        return Functions(
            [replace(each, watch=watch) for each in self.http],
            [replace(each, watch=watch) for each in self.timers],
            [replace(each, watch=watch) for each in self.queues],
        )


def load_app(app_dir: Path) -> func.FunctionApp:
    """Import function_app.py from a folder and return its FunctionApp.

    An exception in it is passed on as it is. Raises DevhostError if there is no file, or not one FunctionApp.
    """
    path = app_dir / f"{APP_MODULE}.py"
    spec = importlib.util.spec_from_file_location(APP_MODULE, path)
    if not path.exists() or spec is None or spec.loader is None:
        raise DevhostError(f"there is no {path.name} in {app_dir}")
    sys.path.insert(0, str(app_dir))
    module = sys.modules[APP_MODULE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    apps = {id(each): each for each in vars(module).values() if isinstance(each, func.FunctionApp)}
    if len(apps) != 1:
        raise DevhostError(f"{path.name} must have one FunctionApp at its top level; it has {len(apps)}")
    return next(iter(apps.values()))


def read_functions(app: func.FunctionApp) -> Functions:
    """Take an app's functions but those that `AzureWebJobs.NAME.Disabled` names, with each `%SETTING%` replaced.

    Raises DevhostError for a missing setting and for a function that this host cannot call. A trigger of
    another kind is left out with a warning.
    """
    functions = Functions()
    for each in app.get_functions():
        name = each.get_function_name() or ""
        trigger = each.get_trigger()
        if trigger is None or _is_disabled(name):
            continue
        fields = {
            key: resolve(value, f"{key} of function {name}") if isinstance(value, str) else value
            for key, value in trigger.get_dict_repr().items()
        }
        _check_bindings(name, each.get_bindings())
        _add(functions, name, each.get_user_function(), fields)
    return functions


def _is_disabled(name: str) -> bool:
    return os.environ.get(f"AzureWebJobs.{name}.Disabled", "").lower() in ("true", "1")


def _add(functions: Functions, name: str, handler: Callable[..., Any], fields: dict[str, Any]) -> None:
    parameter = fields["name"]
    match fields["type"]:
        case "httpTrigger":
            methods = frozenset(_text(each).upper() for each in fields.get("methods") or ())
            level = _text(fields.get("authLevel") or "function").lower()
            functions.http.append(HttpFunction(name, handler, parameter, fields["route"], methods, level))
        case "timerTrigger":
            at_start = bool(fields.get("runOnStartup"))
            functions.timers.append(TimerFunction(name, handler, parameter, fields["schedule"], at_start))
        case "queueTrigger":
            connection = fields.get("connection") or DEFAULT_CONNECTION
            queue = fields["queueName"].lower()
            functions.queues.append(QueueFunction(name, handler, parameter, queue, connection))
        case other:
            log.warning("Function %s is left out: this host does not know its trigger, %s", name, other)


def _check_bindings(name: str, bindings: Iterable[Any]) -> None:
    for binding in bindings:
        if binding.type != "http" and not binding.type.endswith("Trigger"):
            raise DevhostError(f"function {name} has a binding that this host does not know: {binding.type}")


def _text(value: object) -> str:
    return str(getattr(value, "value", value))
