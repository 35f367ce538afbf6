"""Errors of every room: one base, few leaves, each with the HTTP status it means."""

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

MAX_TOLD = 100
"""Faults of one input that are looked for and told; it is not read on after so many."""


class Fault(NamedTuple):
    """One thing wrong with an input.

    `field` is a path such as `trigger.recurrence.schedule.hours`; `reason` is a sentence for the caller.
    """

    field: str
    reason: str

    def under(self, parent: str) -> "Fault":
        """The same fault, its path starting at `parent`."""
        return Fault(f"{parent}.{self.field}" if self.field else parent, self.reason)


class TimerJobsError(Exception):
    """Base of all errors this app raises on purpose. `status` is the HTTP status it means."""

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"
    problem_type: ClassVar[str] = "about:blank"

    def told(self) -> str:
        """What callers are told; what concerns the operator alone goes to the log."""
        return str(self)


class InvalidInput(TimerJobsError):
    """The caller's input is wrong; `faults` names each field and why."""

    status = 400
    title = "Invalid input"

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{f.field}: {f.reason}" for f in self.faults))

    def under(self, parent: str) -> "InvalidInput":
        """The same error, every path starting at `parent`."""
        return InvalidInput(f.under(parent) for f in self.faults)


class Misconfigured(TimerJobsError):
    """An app setting is missing or wrong: for the operator to mend, not for the caller."""

    status = 503
    title = "Unavailable"

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"app setting {f.field} {f.reason}" for f in self.faults))

    def told(self) -> str:
        return "the app is not set up right; its log says how"


class NotFound(TimerJobsError):
    """There is no such thing."""

    status = 404
    title = "Not found"


class Conflict(TimerJobsError):
    """What is asked for does not go with what exists."""

    status = 409
    title = "Conflict"


class PreconditionFailed(TimerJobsError):
    """A condition of the request (If-Match, If-None-Match) does not hold."""

    status = 412
    title = "Precondition failed"


class KeyReused(TimerJobsError):
    """An idempotency key came before with another body."""

    status = 422
    title = "Idempotency key reused"


class TooLarge(TimerJobsError):
    """A body or a definition is over its limit."""

    status = 413
    title = "Too large"


class InstancePersistenceError(TimerJobsError):
    """A host asks for what the instance store does not have."""

    status = 400
    title = "Instance persistence error"
    problem_type = "InstancePersistenceError"


class HostLockExpired(TimerJobsError):
    """The host's lease has run out, or it never registered: it has to register anew, with nothing loaded."""

    status = 409
    title = "Host lock expired"
    problem_type = "HostLockExpired"


class InstanceLockLost(TimerJobsError):
    """The host does not hold the instance any more: taken over, ended, cancelled or deleted."""

    status = 409
    title = "Instance lock lost"
    problem_type = "InstanceLockLost"


class InstanceLocked(TimerJobsError):
    """Another host holds the instance."""

    status = 409
    title = "Instance locked"
    problem_type = "InstanceLocked"


class StaleInstanceVersion(TimerJobsError):
    """The instance has been saved since the version the host knows."""

    status = 412
    title = "Stale instance version"
    problem_type = "StaleInstanceVersion"


class UnsupportedMediaType(TimerJobsError):
    """The body is not of a type this route reads."""

    status = 415
    title = "Unsupported media type"


class Unavailable(TimerJobsError):
    """Storage does not answer, or keeps being changed under the request; trying again may help."""

    status = 503
    title = "Unavailable"


class NewerFormat(Unavailable):
    """What is asked for was written by a newer version of this app, and is left to it."""
