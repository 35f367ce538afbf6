"""POST /preview: what a trigger would do, without a job."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field, JsonValue, ValidationError

from shared.engine.clock import Clock
from shared.errors import Fault, InvalidInput
from shared.jobs.spec import Model, fault_of, parse_trigger
from shared.jobs.times import floor_second, json_text
from shared.recurrence import Schedule
from shared.web.exchange import Request, Response, known_query, read_json

MAX_COUNT = 1000


class PreviewRequest(Model):
    """The body of `POST /preview`."""

    trigger: JsonValue
    parameters: dict[str, JsonValue] | None = None
    created_at: str | None = None
    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 10


class PreviewRoute:
    """`/preview`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def preview(self, request: Request) -> Response:
        """What the trigger would do if the job were created at `createdAt`; stores nothing."""
        known_query(request)
        body = read_json(request)
        faults: list[Fault] = []
        asked = None
        try:
            asked = PreviewRequest.model_validate(body)
        except ValidationError as error:
            faults += [fault_of(details, body) for details in error.errors()]
        created = self._clock()
        try:
            if asked and asked.created_at is not None:
                created = _instant(asked.created_at)
        except ValueError as error:
            faults.append(Fault("createdAt", str(error)))
        schedule = None
        if asked:
            try:
                schedule = parse_trigger(asked.trigger, asked.parameters, floor_second(created))
            except InvalidInput as error:
                faults += error.faults
        if faults or asked is None or schedule is None:
            raise InvalidInput(faults)
        return Response(status=200, body=_view(schedule, floor_second(created), asked.count))


def _view(schedule: Schedule, created: datetime, count: int) -> dict[str, Any]:
    wanted = count if schedule.count is None else min(count, schedule.count)
    points: list[datetime] = []
    point = schedule.at_or_after(datetime.min.replace(tzinfo=UTC))
    while point is not None and len(points) < wanted:
        points.append(point)
        point = schedule.after(point)
    completed = point is None or (schedule.count is not None and len(points) == schedule.count)
    warnings = []
    if schedule.initial_run is not None:
        warnings.append({"code": "InitialRun", "at": json_text(schedule.initial_run)})
    view: dict[str, Any] = {
        "occurrences": [_occurrence(schedule, point) for point in points],
        "completed": completed,
        "describe": schedule.describe(),
        "warnings": warnings,
    }
    return view | ({"evaluatedRecurrence": schedule.evaluated} if schedule.evaluated else {})


def _occurrence(schedule: Schedule, point: datetime) -> dict[str, Any]:
    item = {
        "scheduledTime": json_text(point),
        "dueTime": json_text(schedule.due(point)),
        "localTime": schedule.local(point).isoformat(),
    }
    note = schedule.note(point)
    return item | ({"note": note} if note else {})


def _instant(text: str) -> datetime:
    """An instant of the API: ISO 8601 in UTC with Z. Raises ValueError for any other text."""
    try:
        if not text.isascii() or not text.endswith("Z") or "T" not in text:
            raise ValueError
        instant = datetime.fromisoformat(text)
        if instant.year < 1970:
            raise ValueError
    except ValueError:
        raise ValueError("must be an instant such as 2026-09-08T13:00:00Z, not before 1970") from None
    return instant
