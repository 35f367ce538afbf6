"""The schemas of the document: of requests, from the models that validate them; of answers, from models here.

What answers are made of is `shared.web.views`; tests hold them against these models.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, JsonValue
from pydantic.json_schema import models_json_schema

from shared.jobs.fields import OfModel
from shared.jobs.hostwork import Asked, Registration, Renewal, Saving
from shared.jobs.request import ActivationParameters, AnyAction, JobRequest, Trigger
from shared.jobs.spec import READ_ONLY
from shared.jobs.template import TimerJobRequest
from shared.recurrence import MonthlyOccurrence, Recurrence, RecurrenceSchedule
from shared.web.bulk import BulkLine
from shared.web.openapi.of_hosts import OF_HOSTS, PROBLEM_TYPES, Answer, Time
from shared.web.preview import PreviewRequest

PREFIX = "#/components/schemas/"
NULL = {"type": "null"}
# What a recurrence may hold in place of any value.
EXPRESSION = {
    "type": "string",
    "pattern": "^@|@\\{",
    "description": "`@parameters('name')`, or a text that holds `@{parameters('name')}`",
}

Status = Literal["Running", "Waiting", "Succeeded", "Failed", "TimedOut", "Missed", "Skipped", "Cancelled"]


class Warned(Answer):
    """What a caller may not expect: a run at creation, that the job cannot be fired for a fault of its own, or
    that nobody can run it at present."""

    code: Literal["InitialRun", "SetAside", "NoHost"]
    at: Time | None = None
    detail: str | None = None


class LastRun(Answer):
    """The run of the job that ended last."""

    seq: int
    status: Status
    scheduled_time: Time
    start_time: Time
    end_time: Time


class Job(Answer):
    """A job: its definition, which can be edited and PUT back, and what is read-only."""

    id: str
    state: Literal["Enabled", "Suspended", "Completed"]
    description: str | None = None
    tags: dict[str, str] | None = None
    trigger: Trigger
    actions: dict[str, AnyAction] | None = None
    parameters: dict[str, JsonValue] | None = None
    service_type: str
    activation: ActivationParameters | None = None
    history_limit: int
    delete_after: str | None = None
    evaluated_recurrence: Annotated[JsonValue, OfModel(Recurrence)] = None
    describe: str | None = None
    next_occurrence: Time | None
    fired: Annotated[int, Field(ge=0)]
    missed: Annotated[int, Field(ge=0)]
    skipped: Annotated[int, Field(ge=0)]
    last_run: LastRun | None
    created_at: Time
    updated_at: Time
    generation: Annotated[int, Field(ge=1)]
    warnings: list[Warned]


class Jobs(Answer):
    """A page of jobs; with `continuation` the next one is asked for, null at the end."""

    value: list[Job]
    continuation: str | None


class ActionRecord(Answer):
    """What an action of a run did; `response` is what history keeps of its target's answer."""

    status: Status
    attempts: Annotated[int, Field(ge=0)]
    start_time: Time
    end_time: Time | None
    reason: str | None = None
    response: dict[str, JsonValue] | None = None


class Run(Answer):
    """The execution of one occurrence."""

    seq: int
    scheduled_time: Time
    start_time: Time | None
    end_time: Time | None
    lateness: str | None = None
    status: Status
    reason: str | None = None
    attempts: Annotated[int, Field(ge=0)]
    window_start_time: Time | None = None
    window_end_time: Time | None = None
    actions: dict[str, ActionRecord]
    result: JsonValue = None


class Stretch(Answer):
    """Occurrences that were not fired, as one record."""

    seq: int
    status: Literal["Missed", "Skipped"]
    reason: str
    from_: Annotated[Time, Field(alias="from")]
    to: Time
    count: Annotated[int, Field(ge=1)]


class Runs(Answer):
    """A page of a job's runs and stretches, newest first; `continuation` as that of jobs."""

    value: list[Run | Stretch]
    continuation: str | None


class Occurrence(Answer):
    """An occurrence to come; `note` tells of a local time that does not exist, or comes twice."""

    scheduled_time: Time
    due_time: Time
    local_time: str
    window_start_time: Time | None = None
    window_end_time: Time | None = None
    note: str | None = None


class Occurrences(Answer):
    """A job's next occurrences."""

    value: list[Occurrence]


class BulkAnswer(Answer):
    """What came of a line; or, without a status, from which line on nothing was done (`stoppedAt`)."""

    line: int | None = None
    op: str | None = None
    id: str | None = None
    status: int | None = None
    etag: str | None = None
    run: int | None = None
    problem: "Problem | None" = None
    stopped_at: int | None = None
    detail: str | None = None


class Preview(Answer):
    """What a trigger would do."""

    occurrences: list[Occurrence]
    completed: bool
    describe: str
    warnings: list[Warned]
    evaluated_recurrence: Annotated[JsonValue, OfModel(Recurrence)] = None


class Health(Answer):
    """Whether the scheduler does its work; all but `status` only with the key of `HEALTH_KEY`."""

    status: Literal["Healthy", "Unhealthy"]
    problems: list[str] | None = None
    detection_age_seconds: float | None = None
    oldest_overdue_seconds: float | None = None
    newer_rows: int = 0


class InputFault(Answer):
    """One thing wrong with the input."""

    field: str
    reason: str


class Problem(Answer):
    """An error, as RFC 9457 has it."""

    type: PROBLEM_TYPES
    title: str
    status: Annotated[int, Field(ge=400, le=599)]
    detail: str
    errors: Annotated[list[InputFault], Field(min_length=1)] | None = None


REQUESTS: tuple[type[BaseModel], ...] = (
    *(JobRequest, BulkLine, TimerJobRequest, PreviewRequest),
    *(Registration, Renewal, Asked, Saving),
)
PARTS: tuple[type[BaseModel], ...] = (Recurrence, RecurrenceSchedule, MonthlyOccurrence)
ANSWERS: tuple[type[BaseModel], ...] = (
    *(Job, Jobs, Run, Stretch, Runs, Occurrences),
    *(BulkAnswer, Preview, Health, Problem),
    *OF_HOSTS,
)


def components() -> dict[str, Any]:
    """The schemas by their names."""
    models = [(model, "validation") for model in REQUESTS + PARTS + ANSWERS]
    _, made = models_json_schema(models, ref_template=PREFIX + "{model}")  # type: ignore[arg-type]
    found: dict[str, Any] = {name: _tidied(schema, made["$defs"]) for name, schema in made["$defs"].items()}
    of_answers = {model.__name__ for model in Answer.__subclasses__()}
    for name, schema in found.items():
        _say_of_null(schema, absent=name in of_answers)
    for model in PARTS:
        _allow_expressions(found[model.__name__]["properties"])
    found["Expression"] = EXPRESSION
    _allow_expressions(found["Trigger"]["properties"], "recurrence")
    _allow_short_forms(found["JobRequest"])
    found["PreviewRequest"]["properties"]["trigger"] = refer("Trigger")
    found["BulkLine"]["properties"]["job"] = refer("JobRequest")
    found["TimerJobRequest"]["properties"]["action"] = found["JobRequest"]["properties"]["action"]
    return found


def refer(name: str) -> dict[str, str]:
    """A reference to a schema of the document."""
    return {"$ref": PREFIX + name}


def _tidied(schema: Any, known: Mapping[str, Any], top: bool = True) -> Any:
    """A schema without the titles and nulls that models leave; a known one within it as a reference."""
    if isinstance(schema, list):
        return [_tidied(item, known, False) for item in schema]
    if not isinstance(schema, dict):
        return schema
    title = schema.get("title")
    if not top and title in known and schema.get("type") == "object":
        return refer(str(title))
    tidy = {
        name: {key: _tidied(value, known, False) for key, value in part.items()}
        if name == "properties"
        else _tidied(part, known, False)
        for name, part in schema.items()
        if not (name == "title" and isinstance(part, str)) and not (name == "default" and part is None)
    }
    if "patternProperties" in tidy:
        tidy["additionalProperties"] = False
    return tidy


def _say_of_null(schema: dict[str, Any], absent: bool) -> None:
    """In a request, null is what is left out; in an answer, what can be left out is never null (`absent`)."""
    properties = schema.get("properties", {})
    for name in properties.keys() - set(schema.get("required", ())):
        part = properties[name]
        described = {key: part.pop(key) for key in ("description", "default") if key in part}
        choices = [choice for choice in part.get("anyOf", [part]) if choice != NULL]
        choices += [] if absent else [NULL]
        properties[name] = (choices[0] if len(choices) == 1 else {"anyOf": choices}) | described


def _allow_expressions(properties: dict[str, Any], *names: str) -> None:
    """Lets each of these properties (all, unless named) be an expression as well, and each item of a list."""
    for name in names or properties:
        choices = properties[name].get("anyOf", [properties[name]])
        for choice in choices:
            if choice.get("type") == "array":
                choice["items"] = {"anyOf": [choice["items"], refer("Expression")]}
        properties[name] = {"anyOf": [*choices, refer("Expression")]}


def _allow_short_forms(schema: dict[str, Any]) -> None:
    """What a job's body may say beside what its model does: `triggers`, `action`, and what answers have."""
    properties = schema["properties"]
    action = properties["actions"]["anyOf"][0]["patternProperties"]
    properties["triggers"] = {
        "type": "object",
        "description": "stands for `trigger`, as in a Logic App's code view",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": refer("Trigger"),
    }
    properties["action"] = next(iter(action.values())) | {"description": "short for `actions` with one, `Action`"}
    properties |= {name: {"readOnly": True, "description": "ignored"} for name in sorted(READ_ONLY)}
    del schema["required"]
    schema["allOf"] = [
        {"oneOf": [{"required": [name]} for name in pair]}
        for pair in (("trigger", "triggers"), ("actions", "action"))
    ]
    actions, of_timer_job = schema["allOf"][1], {"properties": {"serviceType": {"enum": ["TimerJob", None]}}}
    schema["allOf"][1] = {"if": of_timer_job, "then": actions, "else": {"not": {"anyOf": actions["oneOf"]}}}
