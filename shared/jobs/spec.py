"""What a request says of a job: validated, with every fault told at once, and the canonical definition it gives.

Each fault bears its field's path as the caller wrote it (API.md, RECURRENCE.md V13).
"""

from collections.abc import Mapping
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from pydantic import JsonValue

from shared.errors import Fault, InvalidInput
from shared.jobs.context import check_inputs, check_lengths
from shared.jobs.definition import DEFAULT_HISTORY_LIMIT
from shared.jobs.faults import TYPE, and_faults, read_model, renamed, step_name
from shared.jobs.graph import order_faults
from shared.jobs.instance import is_service_type
from shared.jobs.model import TIMER_JOB, State
from shared.jobs.request import JobRequest, Trigger
from shared.recurrence import Schedule, compile_trigger

READ_ONLY = frozenset(
    {"nextOccurrence", "fired", "missed", "skipped", "lastRun", "createdAt", "updatedAt", "generation"}
    | {"evaluatedRecurrence", "describe", "warnings"}
)
_FOR_CALENDAR = frozenset({"type", "recurrence", "inputs", "runAt", "skipInitialRun"})
_STATES = {"Enabled": State.ENABLED, "Suspended": State.SUSPENDED, "Disabled": State.SUSPENDED}


class JobBody(NamedTuple):
    """What a request asks: the id (None if it gives none), the canonical definition, Enabled or Suspended (None if
    it does not say), what its trigger means, and where that and the one action stand: `action`, or within
    `actions`."""

    id: str | None
    definition: dict[str, Any]
    state: State | None
    schedule: Schedule
    trigger_at: str
    short: bool


def parse_job(body: JsonValue, created: datetime) -> JobBody:
    """What the body of a request asks.

    `created` is the instant C of the calendar rules. Raises InvalidInput with every fault.
    """
    if not isinstance(body, dict):
        raise InvalidInput([Fault("body", "must be a JSON object")])
    plain, faults = _without_short_forms({k: v for k, v in body.items() if k not in READ_ONLY})
    trigger, actions, parameters = plain.get("trigger"), plain.get("actions"), plain.get("parameters")
    request, of_shape = read_model(JobRequest, plain)
    # Of a trigger whose type is wrong it is not known.
    has_windows = not isinstance(trigger, dict) or trigger.get("type") not in ("Recurrence", "Once")
    faults = and_faults(faults, check_inputs(actions, parameters, has_windows))
    faults = and_faults(faults, of_shape)
    faults = and_faults(faults, _faults_of_type(plain))
    faults = and_faults(faults, order_faults(actions))
    schedule, of_trigger = read_trigger(trigger, parameters, created)
    faults = and_faults(faults, of_trigger)
    if not faults and isinstance(actions, dict):
        faults = check_lengths(actions, parameters, has_windows)
    if faults or request is None or schedule is None:
        raise InvalidInput(_as_written(f, body) for f in _without_dependent(faults))
    state = _STATES.get(request.state or "")
    short = body.get("action") is not None and body.get("actions") is None
    trigger_at = _as_written(Fault("trigger", ""), body).field
    return JobBody(request.id, _canonical(request), state, schedule, trigger_at, short)


def _faults_of_type(plain: Mapping[str, JsonValue]) -> list[Fault]:
    """What does not go with the service type: actions are TimerJob's, activation is the others'."""
    service_type = plain.get("serviceType") or TIMER_JOB
    if service_type == TIMER_JOB:
        faults = [] if plain.get("actions") is not None else [Fault("actions", "is required")]
        if plain.get("activation") is not None:
            faults.append(Fault("activation", "applies to service types other than TimerJob"))
        return faults
    known = isinstance(service_type, str) and is_service_type(service_type)
    if plain.get("actions") is None or not known:
        return []
    return [Fault("actions", "does not apply to this serviceType, whose hosts know what to do")]


def parse_trigger(trigger: Any, parameters: Mapping[str, Any] | None, created: datetime) -> Schedule:
    """The schedule of a trigger object on its own. Raises InvalidInput, its paths starting at `trigger`."""
    _, of_shape = read_model(Trigger, trigger, "trigger")
    schedule, faults = read_trigger(trigger, parameters, created)
    faults = and_faults(of_shape, faults)
    if faults or schedule is None:
        raise InvalidInput(_without_dependent(faults))
    return schedule


def read_trigger(trigger: Any, parameters: Any, created: datetime) -> tuple[Schedule | None, list[Fault]]:
    """What a trigger means, and what is wrong with it as a whole; neither where its type is, which its model
    tells."""
    if not isinstance(trigger, dict) or trigger.get("type") not in ("Recurrence", "SlidingWindow", "Once"):
        return None, []
    schedule, faults = None, []
    if trigger["type"] != "Recurrence" and trigger.get("maxLateness") is not None:
        faults.append(Fault("trigger.maxLateness", f"does not apply to {trigger['type']}, which misses nothing"))
    if trigger.get("operationOptions") is not None and trigger.get("runtimeConfiguration") is not None:
        faults.append(Fault("trigger.operationOptions", "must not be given beside runtimeConfiguration"))
    try:
        schedule = compile_trigger(
            {k: v for k, v in trigger.items() if k in _FOR_CALENDAR},
            created,
            parameters if isinstance(parameters, dict) else {},
        )
    except InvalidInput as error:
        faults += [f if f.field.split(".")[0] == "parameters" else f.under("trigger") for f in error.faults]
    return schedule, faults


def _without_dependent(faults: list[Fault]) -> list[Fault]:
    """The faults but those of things whose `type` is at fault: what they may hold is then not known."""
    owners = tuple(f.field.removesuffix("type") for f in faults if TYPE.fullmatch(f.field))
    return [f for f in faults if TYPE.fullmatch(f.field) or not f.field.startswith(owners)]


def _without_short_forms(body: dict[str, JsonValue]) -> tuple[dict[str, JsonValue], list[Fault]]:
    """The body with `trigger` for `triggers` and `actions` for `action`; faults in terms of these."""
    forms = (("trigger", "triggers"), ("action", "actions"))
    body = {k: v for k, v in body.items() if v is not None or k not in chain(*forms)}
    faults = [Fault(two, f"must not be given beside {one}") for one, two in forms if {one, two} <= body.keys()]
    triggers = body.pop("triggers", None)
    if triggers is not None and "trigger" not in body:
        if isinstance(triggers, dict) and len(triggers) == 1:
            (body["trigger"],) = triggers.values()
        else:
            faults.append(Fault("trigger", "must be an object with exactly one member"))
    action = body.pop("action", None)
    if action is not None and "actions" not in body:
        body["actions"] = {"Action": action}
    return body, faults


def _as_written(fault: Fault, body: Mapping[str, JsonValue]) -> Fault:
    """The fault, its path in the form the caller used."""
    triggers = body.get("triggers")
    if triggers is not None and body.get("trigger") is None:
        names = list(triggers) if isinstance(triggers, dict) else []
        fault = renamed(fault, "trigger", f"triggers.{step_name(names[0])}" if len(names) == 1 else "triggers")
    if body.get("action") is not None and body.get("actions") is None:
        fault = renamed(renamed(fault, "actions.Action", "action"), "actions", "action")
    return fault


def _canonical(request: JobRequest) -> dict[str, Any]:
    """The definition as it is stored: what was given, without nulls, with defaults where reading needs them."""
    given = request.model_dump(by_alias=True, exclude_unset=True, exclude={"id", "state"})
    return {"serviceType": TIMER_JOB, "historyLimit": DEFAULT_HISTORY_LIMIT} | given
