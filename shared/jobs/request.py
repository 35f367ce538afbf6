"""The models that validate a request: a job, its trigger, its actions. What each may say by itself.

What needs more than one field is checked in `spec`.
"""

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from shared.jobs.definition import DEFAULT_HISTORY_LIMIT, MAX_WAITING
from shared.jobs.fields import (
    DURATION,
    HEADER_NAME,
    INSTANT,
    JOB_ID,
    QUEUE_NAME,
    URI_OR_EXPRESSION,
    AtMost,
    Bounds,
    Lasting,
    Model,
    OfModel,
    check_header_name,
    check_header_value,
    check_job_id,
    check_queue_name,
    check_uri,
    matching,
    name_once,
    options,
    told_as,
)
from shared.jobs.instance import PATH, SERVICE_TYPE, Activation, check_service_type
from shared.jobs.model import TIMER_JOB
from shared.jobs.times import duration_text
from shared.recurrence import Recurrence, parse_duration
from shared.recurrence.models import SOME, FirstFault

MAX_TIMEOUT = timedelta(minutes=5)
MAX_HISTORY = 1000
MAX_ACTIONS = 100
MAX_RUNS = 50
DAY = timedelta(days=1)
USUAL_MINIMUM = timedelta(seconds=5)
ActionName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_-]{1,80}$"), told_as("must be named by 1 to 80 of A-Z a-z 0-9 _ -")
]
TagName = Annotated[str, Field(min_length=1, max_length=128), told_as("must be named by 1 to 128 characters")]
HeaderName = Annotated[str, AfterValidator(check_header_name), matching(f"^{HEADER_NAME.pattern}$")]
HeaderValue = Annotated[str, AfterValidator(check_header_value)]
QueryValue = Annotated[str | int | float | bool, told_as("must be text, a number, true or false")]


class NoRetry(Model):
    """A failed call is not repeated."""

    type: Literal["none"]


class FixedRetry(Model):
    """A failed call is repeated after equal intervals."""

    type: Literal["fixed"]
    count: Annotated[int, Bounds(1, 90)]
    interval: Annotated[str, Lasting(timedelta(seconds=1), DAY)]


class ExponentialRetry(Model):
    """A failed call is repeated after growing intervals."""

    type: Literal["exponential"]
    count: Annotated[int, Bounds(1, 90)]
    interval: Annotated[str, Lasting(timedelta(seconds=1), DAY)]
    minimum_interval: Annotated[str, Lasting(timedelta(seconds=1), DAY)] | None = None
    maximum_interval: Annotated[str, Lasting(timedelta(seconds=1), DAY)] | None = None

    @field_validator("maximum_interval")
    @classmethod
    def _not_below_minimum(cls, text: str, others: ValidationInfo) -> str:
        if {"interval", "minimum_interval"} <= others.data.keys():
            given, interval = others.data["minimum_interval"], parse_duration(others.data["interval"])
            minimum = min(USUAL_MINIMUM, interval) if given is None else parse_duration(given)
            if parse_duration(text) < minimum:
                raise ValueError(f"must not be shorter than minimumInterval, {duration_text(minimum)}")
        return text


class Identity(Model):
    """A token of the app's managed identity, for an audience that the operator allows."""

    type: Literal["ManagedServiceIdentity"]
    audience: Annotated[str, Field(min_length=1, max_length=1024)]
    identity: Annotated[str, Field(min_length=1, max_length=256)] | None = None


class Secret(Model):
    """An app setting whose name starts with SECRET_."""

    setting: Annotated[str, Field(pattern=r"^SECRET_[A-Z0-9_]{1,100}$"), told_as("must be named SECRET_…")]


class Raw(Model):
    """The Authorization header's value, from an app setting."""

    type: Literal["Raw"]
    value: Secret


class HttpInputs(Model):
    """The request that an Http action sends."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
    uri: Annotated[str, Field(max_length=8192), AfterValidator(check_uri), matching(URI_OR_EXPRESSION)]
    headers: Annotated[dict[HeaderName, HeaderValue], AtMost(50), AfterValidator(name_once)] = {}
    queries: Annotated[dict[str, QueryValue], AtMost(100)] = {}
    body: Any = None
    retry_policy: Annotated[NoRetry | FixedRetry | ExponentialRetry, Field(discriminator="type")] | None = None
    authentication: Annotated[Identity | Raw, Field(discriminator="type")] | None = None


class QueueInputs(Model):
    """The message that a Queue action puts on a storage queue."""

    queue: Annotated[str, AfterValidator(check_queue_name), matching(f"^{QUEUE_NAME.pattern}$")]
    message: Any


class Interval(Model):
    """How long to wait."""

    count: Annotated[Any, WithJsonSchema({"type": ["integer", "string"], "minimum": 0})]
    unit: Annotated[Any, WithJsonSchema({"type": "string", "examples": ["Minute"]})]


class Until(Model):
    """Until when to wait."""

    timestamp: Annotated[Any, WithJsonSchema({"type": "string", "examples": ["2026-10-01T07:00:00Z"]})]


class WaitInputs(Model):
    """A delay, or an instant."""

    interval: Interval | None = None
    until: Until | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "WaitInputs":
        if (self.interval is None) == (self.until is None):
            raise ValueError("must have either interval or until")
        return self


class Limit(Model):
    """How long one attempt may take."""

    timeout: Annotated[str, Lasting(timedelta(seconds=1), MAX_TIMEOUT)]


class SecureData(Model):
    """What of an action is kept out of history."""

    properties: Annotated[list[Literal["inputs", "outputs"]], Field(min_length=1, max_length=2)]


class ActionConfiguration(Model):
    """How an action is treated beside being run."""

    secure_data: SecureData | None = None


class _Action(Model):
    run_after: (
        Annotated[
            dict[str, Annotated[list[Literal["Succeeded", "Failed", "Skipped", "TimedOut"]], FirstFault(), SOME]],
            AtMost(MAX_ACTIONS),
        ]
        | None
    ) = None
    limit: Limit | None = None
    runtime_configuration: ActionConfiguration | None = None


class HttpAction(_Action):
    """An HTTP call."""

    type: Literal["Http"]
    inputs: HttpInputs
    operation_options: Annotated[str, options("DisableAsyncPattern")] | None = None


class QueueAction(_Action):
    """A message on a storage queue."""

    type: Literal["Queue"]
    inputs: QueueInputs


class WaitAction(_Action):
    """A wait that holds no process."""

    type: Literal["Wait"]
    inputs: WaitInputs


AnyAction = Annotated[HttpAction | QueueAction | WaitAction, Field(discriminator="type")]


class Concurrency(Model):
    """How many runs may be under way, and how many more may wait (W6)."""

    runs: Annotated[int, Bounds(1, MAX_RUNS)]
    maximum_waiting_runs: Annotated[int, Bounds(0, MAX_WAITING)] | None = None


class TriggerConfiguration(Model):
    """How a trigger is treated beside its schedule."""

    concurrency: Concurrency | None = None


class WindowInputs(Model):
    """How long after a sliding window's start its run is due. Checked by `shared.recurrence`."""

    delay: Annotated[str, matching(DURATION)] | None = None


class Trigger(Model):
    """When a job runs. The calendar rules themselves are checked by `shared.recurrence`."""

    type: Literal["Recurrence", "SlidingWindow", "Once"]
    recurrence: Annotated[Any, OfModel(Recurrence)] = None
    inputs: Annotated[Any, OfModel(WindowInputs)] = None
    run_at: Annotated[Any, WithJsonSchema({"type": "string", "pattern": INSTANT})] = None
    skip_initial_run: Annotated[Any, WithJsonSchema({"type": "boolean"})] = None
    max_lateness: Annotated[str, Lasting(timedelta(0), timedelta(days=3660))] | None = None
    jitter: Annotated[str, Lasting(timedelta(0), DAY)] | None = None
    runtime_configuration: TriggerConfiguration | None = None
    operation_options: Annotated[str, options("SingleInstance")] | None = None


class ActivationParameters(Model):
    """Where a host of the job's service type is activated."""

    site: Annotated[str, Field(min_length=1, max_length=2048), matching(r"^(https?://[!-~]+|[!-~]+)$")]
    application_path: Annotated[str, Field(max_length=1024), matching(f"^{PATH.pattern}$")] = ""
    service_path: Annotated[str, Field(max_length=1024), matching(f"^{PATH.pattern}$")] = ""

    @model_validator(mode="after")
    def _names_an_endpoint(self) -> "ActivationParameters":
        _ = self.parameters.endpoint
        return self

    @property
    def parameters(self) -> Activation:
        """As a value."""
        return Activation.of(self.model_dump(by_alias=True))


class JobRequest(Model):
    """The body of `POST /jobs` and `PUT /jobs/{id}`."""

    id: Annotated[str, AfterValidator(check_job_id), Field(json_schema_extra=JOB_ID)] | None = None
    description: Annotated[str, Field(max_length=4096)] | None = None
    tags: Annotated[dict[TagName, Annotated[str, Field(max_length=256)]], AtMost(50)] | None = None
    # Completed: as an answer said it; changes nothing. None: Enabled, or Suspended if the job is.
    state: Literal["Enabled", "Suspended", "Disabled", "Completed"] | None = None
    trigger: Trigger
    # None: the runs are those of a host of another service type.
    actions: Annotated[dict[ActionName, AnyAction], SOME, AtMost(MAX_ACTIONS)] | None = None
    parameters: dict[str, Any] | None = None
    service_type: Annotated[
        str, AfterValidator(check_service_type), matching(f"^(?!Any$){SERVICE_TYPE.pattern}$")
    ] = TIMER_JOB
    activation: ActivationParameters | None = None
    history_limit: Annotated[int, Bounds(1, MAX_HISTORY)] = DEFAULT_HISTORY_LIMIT
    delete_after: Annotated[str, Lasting(timedelta(seconds=1), timedelta(days=3660))] | None = None
