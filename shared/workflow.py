"""Workflows written in Python: what `workflows/` registers, and what each is given when it runs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, TypeVar

from shared.jobs.instance import check_result, check_service_type, pack_state
from shared.jobs.model import TIMER_JOB, Window


class Leave(BaseException):
    """How a workflow's function is left before its end. No error: let it through."""


class Delayed(Leave):
    """To be entered again at `until`."""

    def __init__(self, until: datetime) -> None:
        self.until = until
        super().__init__(f"until {until}")


class Lost(Leave):
    """The run is not this process's any more; `cause` says why."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause
        super().__init__(str(cause))


class Completed(Leave):
    """The run has succeeded, with this result."""

    def __init__(self, result: Any) -> None:
        self.result = result
        super().__init__("completed")


@dataclass(kw_only=True)
class Context:
    """One run of a job, as its workflow sees it.

    `scheduled` is the nominal instant, `window` the bounds of a sliding window, `parameters` the job's. `attempt`
    grows when a process died under the run; so does `fencing_token`, which also is higher in each later run of the
    job: what takes it along can refuse an owner that has been replaced. `idempotency_key` is the same for every
    attempt at this run. `state` is what was saved last, None at first; what `delay` keeps is `state` as it stands.
    """

    job_id: str
    run: int
    scheduled: datetime
    window: Window | None
    parameters: Mapping[str, Any]
    attempt: int
    fencing_token: int
    idempotency_key: str
    state: Any
    now: Callable[[], datetime] = field(repr=False)
    keep: Callable[[bytes], Awaitable[None]] = field(repr=False)

    async def save(self, state: Any) -> None:
        """Stores the state (JSON, at most 256 KiB compressed). If the process dies, the run goes on with it.

        Raises InvalidInput, TooLarge. If the run has been taken over, the function is left here for good.
        """
        await self.keep(pack_state(state))
        self.state = state

    async def delay(self, duration: timedelta) -> NoReturn:
        """Leaves memory, with the state as it stands; the function is entered again when `duration` has passed."""
        await self.delay_until(self.now() + duration)

    async def delay_until(self, at: datetime) -> NoReturn:
        """Leaves memory, with the state as it stands; the function is entered again at `at` (with a zone)."""
        if at.tzinfo is None:
            raise ValueError("an instant needs a zone: datetime(..., tzinfo=UTC)")
        pack_state(self.state)
        raise Delayed(at.astimezone(UTC))

    def complete(self, result: Any = None) -> NoReturn:
        """Ends the run, Succeeded, its record bearing `result` (JSON, at most 32 KiB compressed)."""
        raise Completed(check_result(result))


Workflow = Callable[[Context], Awaitable[None]]
W = TypeVar("W", bound=Workflow)

_registered: dict[str, Workflow] = {}


def workflow(service_type: str) -> Callable[[W], W]:
    """Registers an async function: jobs of this `serviceType` run it in this app.

    It may be repeated from the last saved state after a crash. When it returns, the run has succeeded; what it
    raises makes the run Failed. Raises ValueError for a name that cannot be or is registered already.
    """
    if check_service_type(service_type) == TIMER_JOB or service_type in _registered:
        raise ValueError(f"the service type {service_type!r} is taken")

    def register(function: W) -> W:
        _registered[service_type] = function
        return function

    return register


def registered() -> Mapping[str, Workflow]:
    """The app's workflows by service type."""
    return _registered
