"""The table that the document is made of: one entry for each route, in the names of `function_app`.

Its examples are requests that follow one another, on one job, from its creation to its end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.jobs.fields import JOB_ID
from shared.web.jobs import MAX_OCCURRENCES, MAX_PAGE
from shared.web.openapi import examples as shown
from shared.web.openapi.examples import Example

JSON = "application/json"
TEXT = {"type": "string"}
ETAG = {"type": "string", "pattern": '^"[^"]+"$'}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What a request may carry beside its body. `place`: path, query or header."""

    place: str
    schema: Mapping[str, Any]
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What comes with a status. `schema` is the name of a component; without one there is no body.

    `headers` are names of HEADERS.
    """

    says: str
    schema: str | None = None
    media_type: str = JSON
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a request must bring: a component's name, and as which media type."""

    schema: str
    media_type: str = JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation. `path` is as `function_app` binds it, `name` the function's.

    `parameters` are names of PARAMETERS, beside those in the path. `problems` are the statuses of errors that
    this route has beside those of all (USUAL).
    """

    method: str
    path: str
    name: str
    says: str
    answers: Mapping[int, Answer]
    parameters: tuple[str, ...] = ()
    body: Body | None = None
    problems: tuple[int, ...] = ()
    usual: bool = True
    anonymous: bool = False
    examples: tuple[Example, ...] = ()


USUAL = (400, 500, 503)
PROBLEMS = {
    400: "The input is wrong; `errors` names the fields",
    404: "There is no such job or run",
    409: "It does not go with what exists",
    412: "A condition of the request does not hold",
    413: "The body, or the definition in it, is too large",
    415: "The body is of another type",
    500: "An error of the scheduler's own",
    503: "Storage does not answer, or keeps being changed; trying again may help",
}
HEADERS: dict[str, tuple[Mapping[str, Any], str]] = {
    "ETag": (ETAG, "the version of the job, for `If-Match`; the scheduler's own writes do not change it"),
    "Location": (TEXT, "the path of the job"),
}
PARAMETERS = {
    "id": Parameter(place="path", schema={"type": "string", "examples": [shown.ID]} | JOB_ID, says="the job's id"),
    "seq": Parameter(
        place="path",
        schema={"type": "string", "pattern": "^[0-9]{1,10}$", "examples": ["1"]},
        says="the number of a run or a stretch",
    ),
    "If-Match": Parameter(
        place="header", schema=TEXT, says="entity tags, one of which the job must have, or `*`: any"
    ),
    "If-None-Match": Parameter(place="header", schema={"const": "*"}, says="`*`: there must be no such job"),
    "resetState": Parameter(
        place="query",
        schema={"enum": ["true", "false"]},
        says="`true`: the schedule begins anew, even if it means the same as before",
    ),
    "prefix": Parameter(
        place="query", schema={"type": "string", "pattern": JOB_ID["pattern"]}, says="the beginning of ids"
    ),
    "state": Parameter(
        place="query", schema={"enum": ["Enabled", "Suspended", "Completed"]}, says="only jobs in this state"
    ),
    "tag": Parameter(
        place="query",
        schema={"type": "string", "pattern": "^$|:"},
        says="only jobs with this tag, as `name:value`",
    ),
    "pageSize": Parameter(
        place="query",
        schema={"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": 100},
        says="how many jobs at most; with `state` or `tag` pages may be shorter though more follow",
    ),
    "continuation": Parameter(place="query", schema=TEXT, says="what the page before gave; leads on from there"),
    "count": Parameter(
        place="query",
        schema={"type": "integer", "minimum": 1, "maximum": MAX_OCCURRENCES, "default": 10},
        says="how many occurrences at most",
    ),
}

_JOB = Body(schema="JobRequest")
_WITH_BODY = (413, 415)


def _job(says: str, *headers: str) -> Answer:
    return Answer(says=says, schema="Job", headers=("ETag", *headers))


ROUTES = (
    Route(
        method="POST",
        path="jobs",
        name="create_job",
        says="Create a job",
        body=_JOB,
        answers={201: _job("The job", "Location")},
        problems=(409, *_WITH_BODY),
        examples=shown.CREATE,
    ),
    Route(
        method="GET",
        path="jobs",
        name="list_jobs",
        says="A page of jobs",
        parameters=("prefix", "state", "tag", "pageSize", "continuation"),
        answers={200: Answer(says="The page", schema="Jobs")},
        examples=shown.LIST,
    ),
    Route(
        method="PUT",
        path="jobs/{id}",
        name="put_job",
        says="Create or replace a job",
        parameters=("If-Match", "If-None-Match", "resetState"),
        body=_JOB,
        answers={200: _job("The job, replaced"), 201: _job("The job, new", "Location")},
        problems=(409, 412, *_WITH_BODY),
        examples=shown.PUT,
    ),
    Route(
        method="GET",
        path="jobs/{id}",
        name="get_job",
        says="A job",
        answers={200: _job("The job")},
        problems=(404,),
        examples=shown.GET,
    ),
    Route(
        method="POST",
        path="jobs/{id}/suspend",
        name="suspend_job",
        says="Stop dispatching a job; may be repeated",
        answers={200: _job("The job, Suspended")},
        problems=(404, 409),
        examples=shown.SUSPEND,
    ),
    Route(
        method="POST",
        path="jobs/{id}/resume",
        name="resume_job",
        says="Dispatch a job again; may be repeated",
        answers={200: _job("The job, Enabled")},
        problems=(404, 409),
        examples=shown.RESUME,
    ),
    Route(
        method="GET",
        path="jobs/{id}/occurrences",
        name="list_occurrences",
        says="A job's next occurrences",
        parameters=("count",),
        answers={200: Answer(says="The occurrences", schema="Occurrences")},
        problems=(404,),
        examples=shown.OCCURRENCES,
    ),
    Route(
        method="POST",
        path="jobs/{id}/run",
        name="run_job",
        says="A run beside the schedule, now",
        answers={202: Answer(says="The run", schema="Run")},
        problems=(404, 409),
        examples=shown.RUN_NOW,
    ),
    Route(
        method="GET",
        path="jobs/{id}/runs",
        name="list_runs",
        says="A job's runs, newest first",
        answers={200: Answer(says="The runs", schema="Runs")},
        problems=(404,),
        examples=shown.RUNS,
    ),
    Route(
        method="POST",
        path="jobs/{id}/runs/{seq}/cancel",
        name="cancel_run",
        says="End a run",
        answers={202: Answer(says="The run, Cancelled", schema="Run")},
        problems=(404, 409),
        examples=shown.CANCEL,
    ),
    Route(
        method="GET",
        path="jobs/{id}/runs/{seq}",
        name="get_run",
        says="A run, or a stretch of occurrences that were not fired",
        answers={200: Answer(says="The run", schema="RunOrStretch")},
        problems=(404,),
        examples=shown.GET_RUN,
    ),
    Route(
        method="POST",
        path="jobs/{id}/runs/{seq}/resubmit",
        name="resubmit_run",
        says="Repeat a run that has ended, or the last of a stretch, with its scheduled time",
        answers={202: Answer(says="The new run", schema="Run")},
        problems=(404, 409),
        examples=shown.RESUBMIT,
    ),
    Route(
        method="DELETE",
        path="jobs/{id}",
        name="delete_job",
        says="Delete a job and its history",
        parameters=("If-Match",),
        answers={204: Answer(says="Nothing of it starts any more")},
        problems=(404, 412),
        examples=shown.DELETE,
    ),
    Route(
        method="POST",
        path="preview",
        name="preview",
        says="What a trigger would do; nothing is stored",
        body=Body(schema="PreviewRequest"),
        answers={200: Answer(says="Its occurrences", schema="Preview")},
        problems=_WITH_BODY,
        examples=shown.PREVIEW,
    ),
    Route(
        method="GET",
        path="health",
        name="health",
        says="Whether the scheduler does its work",
        answers={
            200: Answer(says="It does", schema="Health"),
            503: Answer(says="It does not", schema="Health"),
        },
        usual=False,
        problems=(500,),
        anonymous=True,
        examples=shown.HEALTH,
    ),
    Route(
        method="GET",
        path="openapi.json",
        name="openapi",
        says="This document",
        answers={200: Answer(says="OpenAPI 3.1", schema="OpenApi")},
        usual=False,
        problems=(400, 500),
    ),
)
