"""The table that the document is made of: one entry for each route, in the names of `function_app`.

Its examples are requests that follow one another, on one job, from its creation to its end.
"""

from shared.web.bulk import MAX_LINES
from shared.web.openapi import examples as shown
from shared.web.openapi.host_routes import HOST_ROUTES
from shared.web.openapi.parts import LINES, PLAIN, Answer, Body, Route

_JOB = Body(schema="JobRequest")
_WITH_BODY = (413, 415)


def _job(says: str, *headers: str) -> Answer:
    return Answer(says=says, schema="Job", headers=("ETag", *headers))


def _text(says: str, *headers: str) -> Answer:
    return Answer(says=says, schema="Text", media_type=PLAIN, headers=headers)


ROUTES = (
    Route(
        method="POST",
        path="jobs",
        name="create_job",
        says="Create a job",
        parameters=("Idempotency-Key",),
        body=_JOB,
        answers={
            200: _job("The job, which this request made before", "Location"),
            201: _job("The job", "Location"),
        },
        problems=(409, 422, *_WITH_BODY),
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
        parameters=("If-Match",),
        answers={200: _job("The job, Suspended")},
        problems=(404, 409, 412),
        examples=shown.SUSPEND,
    ),
    Route(
        method="POST",
        path="jobs/{id}/resume",
        name="resume_job",
        says="Dispatch a job again; may be repeated",
        parameters=("If-Match",),
        answers={200: _job("The job, Enabled")},
        problems=(404, 409, 412),
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
        parameters=("pageSize", "continuation"),
        answers={200: Answer(says="A page of runs", schema="Runs")},
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
        path="bulk/jobs",
        name="bulk_jobs",
        says=f"Operations on many jobs, one in each of up to {MAX_LINES:,} JSON lines",
        body=Body(schema="BulkLine", media_type=LINES, required=False),
        answers={200: Answer(says="What came of each line, in order", schema="BulkAnswer", media_type=LINES)},
        problems=_WITH_BODY,
        examples=shown.BULK,
    ),
    Route(
        method="POST",
        path="CreateTimerJob",
        name="create_timer_job",
        says="A job, by the request of the Logic Apps template",
        parameters=("unique",),
        body=Body(schema="TimerJobRequest"),
        answers={
            201: _text("When it fires first", "Location", "ETag"),
            400: _text("The input is wrong"),
            409: _text("There is nothing to run, or a job has this timerjobid"),
        },
        problems=_WITH_BODY,
        examples=shown.TEMPLATE,
    ),
    *HOST_ROUTES,
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
