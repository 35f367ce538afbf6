"""POST /preview: what a trigger would do, without a job."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from shared.engine.clock import Clock
from shared.errors import InvalidInput
from shared.jobs.faults import and_faults, read_model
from shared.jobs.fields import Model, told_as
from shared.jobs.spec import parse_trigger
from shared.jobs.times import floor_second, json_text
from shared.recurrence import Schedule
from shared.web.exchange import Request, Response, known_query, read_json
from shared.web.occurrences import occurrence_view, points_from

MAX_COUNT = 1000
LAST_YEAR = 2999  # from there even 1,000 sparse occurrences do not come to the end of what a datetime can say
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?Z", re.ASCII)


def _instant(text: str) -> datetime:
    """An instant of the API. Raises ValueError for any other text."""
    try:
        if not _INSTANT.fullmatch(text):
            raise ValueError
        instant = datetime.fromisoformat(text)
        if not 1970 <= instant.year <= LAST_YEAR:
            raise ValueError
    except ValueError:
        raise ValueError(f"must be an instant such as 2026-09-08T13:00:00Z, from 1970 to {LAST_YEAR}") from None
    return instant


def _is_instant(text: str) -> str:
    _instant(text)
    return text


class PreviewRequest(Model):
    """The body of `POST /preview`."""

    trigger: Any
    parameters: dict[str, Any] | None = None
    created_at: Annotated[str, AfterValidator(_is_instant)] | None = None
    count: Annotated[int, Field(ge=1, le=MAX_COUNT), told_as(f"must be an integer from 1 to {MAX_COUNT}")] = 10


class PreviewRoute:
    """`/preview`."""

    def __init__(self, clock: Clock, max_body: int) -> None:
        self._max_body = max_body
        self._clock = clock

    async def preview(self, request: Request) -> Response:
        """What the trigger would do if the job were created at `createdAt`; stores nothing."""
        known_query(request)
        body = read_json(request, self._max_body)
        asked, faults = read_model(PreviewRequest, body)
        if {fault.field for fault in faults} & {"body", "trigger", "createdAt"}:
            raise InvalidInput(faults)  # there is no trigger, or no instant to see it from
        created = floor_second(_instant(body["createdAt"]) if body.get("createdAt") else self._clock())
        try:
            schedule = parse_trigger(body["trigger"], body.get("parameters"), created)
        except InvalidInput as error:
            raise InvalidInput(and_faults(faults, list(error.faults))) from None
        if asked is None:
            raise InvalidInput(faults)
        return Response(status=200, body=await _view(schedule, asked.count))


async def _view(schedule: Schedule, count: int) -> dict[str, Any]:
    wanted = count if schedule.count is None else min(count, schedule.count)
    first = schedule.at_or_after(datetime.min.replace(tzinfo=UTC))
    is_last = wanted == schedule.count
    points = await points_from(schedule, first, wanted if is_last else wanted + 1)
    completed = is_last or len(points) <= wanted
    points = points[:wanted]
    warnings = []
    if schedule.initial_run is not None:
        warnings.append({"code": "InitialRun", "at": json_text(schedule.initial_run)})
    view: dict[str, Any] = {
        "occurrences": [occurrence_view(schedule, point, schedule.due) for point in points],
        "completed": completed,
        "describe": schedule.describe(),
        "warnings": warnings,
    }
    return view | ({"evaluatedRecurrence": schedule.evaluated} if schedule.evaluated else {})
