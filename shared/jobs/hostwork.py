"""The models that validate what hosts ask: to register, to renew, to load, to save."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from shared.errors import InstancePersistenceError
from shared.jobs.fields import INSTANT, JOB_ID, Bounds, Model, check_job_id, matching
from shared.jobs.instance import ANY, SERVICE_TYPE, WAS, check_service_type
from shared.jobs.model import TIMER_JOB
from shared.jobs.request import ActivationParameters
from shared.recurrence.instants import parse_time, to_datetime

MOST_TYPES = 20
MOST_HELD = 100
LONGEST_DELAY = timedelta(days=3660)


def _hosted_type(name: str) -> str:
    if name == TIMER_JOB:
        raise ValueError("must not be TimerJob, whose runs the app performs itself")
    return name if name == ANY else check_service_type(name)


def _instant(text: str) -> str:
    moment(text)
    return text


def moment(text: str) -> datetime:
    """The instant of a text that ends with Z, rounded up to a whole second. Raises ValueError."""
    written = parse_time(text)
    if not written.utc:
        raise ValueError("must end with Z")
    try:
        return to_datetime(written.rounded_up)
    except OverflowError:
        raise ValueError("is beyond the year 9999") from None


JobId = Annotated[str, AfterValidator(check_job_id), Field(json_schema_extra=JOB_ID)]
Seq = Annotated[int, Bounds(1, 9_999_999_999)]
Token = Annotated[int, Bounds(1, 10**14)]


class Registration(Model):
    """The body of `POST /hosts`."""

    service_types: Annotated[
        list[Annotated[str, AfterValidator(_hosted_type), matching(f"^(?!TimerJob$){SERVICE_TYPE.pattern}$")]],
        Field(min_length=1, max_length=MOST_TYPES),
    ]
    activation_type: Annotated[str, Field(max_length=128)] | None = None

    @model_validator(mode="after")
    def _generic_or_not(self) -> "Registration":
        if ANY in self.service_types and len(self.service_types) > 1:
            raise ValueError(f"must have {ANY} as its only service type, or not at all")
        if ANY not in self.service_types and self.activation_type is not None:
            raise ValueError(f"has an activationType, which goes with the service type {ANY}")
        return self

    def check_activation_type(self) -> None:
        """Raises InstancePersistenceError for a generic host of another activation type than WAS."""
        if ANY in self.service_types and self.activation_type != WAS:
            raise InstancePersistenceError(f"activationType must be {WAS}, the only one there is")


class Held(Model):
    """An instance that a host has loaded."""

    job_id: JobId
    run: Seq
    fencing_token: Token


class Renewal(Model):
    """The body of `POST /hosts/{host}/renew`."""

    instances: Annotated[list[Held], Field(max_length=MOST_HELD, default_factory=list)]


class Asked(Model):
    """The body of `POST /hosts/{host}/load`."""

    job_id: JobId
    run: Seq


class Completion(Model):
    """How an instance ended."""

    status: Literal["Succeeded", "Failed"] = "Succeeded"
    reason: Annotated[str, Field(max_length=1000)] | None = None
    result: Any = None


class Saving(Held):
    """The body of `POST /hosts/{host}/save`. What is absent stays as it is."""

    version: Annotated[int, Bounds(0, 10**9)]
    state: Any = None
    activation: ActivationParameters | None = None
    unlock: bool = False
    pending_timer: Annotated[str, AfterValidator(_instant), matching(INSTANT)] | None = None
    complete: Completion | None = None

    @model_validator(mode="after")
    def _leaves_in_one_way(self) -> "Saving":
        if self.pending_timer is not None and not self.unlock:
            raise ValueError("has a pendingTimer, which goes with unlock: a locked instance is not waited for")
        if self.complete is not None and self.unlock:
            raise ValueError("has complete beside unlock: a completed instance is not loaded again")
        return self
