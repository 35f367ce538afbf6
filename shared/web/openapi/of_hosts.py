"""What hosts are answered: the base of all answers' schemas, and those of hosts."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from shared.jobs.fields import matching
from shared.jobs.request import ActivationParameters

Time = Annotated[str, matching(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?Z$")]
Count = Annotated[int, Field(ge=0)]
PROBLEM_TYPES = Literal[
    "about:blank",
    "HostLockExpired",
    "InstanceLockLost",
    "InstanceLocked",
    "InstancePersistenceError",
    "StaleInstanceVersion",
]


class Answer(BaseModel):
    """What an answer holds, all of it."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


class Host(Answer):
    """A host; its lease and its locks last until `lockedUntil`, and are to be renewed every `renewalPeriod`."""

    id: str
    service_types: list[str]
    activation_type: str | None = None
    locked_until: Time
    renewal_period: str


class Named(Answer):
    """An instance, by the lock that a host holds, or held."""

    job_id: str
    run: int
    fencing_token: int


class RenewedHost(Answer):
    """A host; `lost` are the instances named that it holds no more."""

    id: str
    service_types: list[str]
    activation_type: str | None = None
    locked_until: Time
    renewal_period: str
    lost: list[Named]


class Instance(Answer):
    """An instance that the host has loaded; `version` counts its saves."""

    job_id: str
    run: int
    service_type: str
    version: Count
    fencing_token: Count
    idempotency_key: str
    locked_until: Time
    scheduled_time: Time
    start_time: Time
    attempt: Annotated[int, Field(ge=1)]
    parameters: dict[str, JsonValue]
    state: JsonValue
    activation: ActivationParameters | None
    window_start_time: Time | None = None
    window_end_time: Time | None = None


class Saved(Answer):
    """That an instance is saved, and the version it is at."""

    job_id: str
    run: int
    version: Count


class HostEvent(Answer):
    """That there may be something to load, or to activate."""

    type: Literal["HasRunnableWorkflow", "HasActivatableWorkflow"]
    service_type: str


class HostEvents(Answer):
    """The events that stand for the host."""

    value: list[HostEvent]


class Activatable(Answer):
    """A service type that nobody alive can load, and where a host of it is activated."""

    service_type: str
    site: str
    application_path: str
    service_path: str


class Activatables(Answer):
    """What is to be activated."""

    value: list[Activatable]


OF_HOSTS: tuple[type[BaseModel], ...] = (Host, RenewedHost, Instance, Saved, HostEvents, Activatables)
