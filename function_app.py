"""The functions of the app: bindings only, each body is one call. Routes: docs/design.md and README.md."""

import azure.functions as func

from shared import wiring

CONNECTION = "AzureWebJobsStorage"

api = func.Blueprint()  # type: ignore[no-untyped-call]
engine = func.Blueprint()  # type: ignore[no-untyped-call]


@api.route("jobs", methods=["POST"])
async def create_job(req: func.HttpRequest) -> func.HttpResponse:
    """CreateTimerJob."""
    return await wiring.answer(req, lambda to: to.jobs.create)


@api.route("jobs", methods=["GET"])
async def list_jobs(req: func.HttpRequest) -> func.HttpResponse:
    """A page of jobs."""
    return await wiring.answer(req, lambda to: to.jobs.list)


@api.route("jobs/{id}", methods=["PUT"])
async def put_job(req: func.HttpRequest) -> func.HttpResponse:
    """Create or replace a job."""
    return await wiring.answer(req, lambda to: to.jobs.put)


@api.route("jobs/{id}", methods=["GET"])
async def get_job(req: func.HttpRequest) -> func.HttpResponse:
    """A job."""
    return await wiring.answer(req, lambda to: to.jobs.get)


@api.route("jobs/{id}", methods=["DELETE"])
async def delete_job(req: func.HttpRequest) -> func.HttpResponse:
    """Delete a job."""
    return await wiring.answer(req, lambda to: to.jobs.delete)


@api.route("jobs/{id}/runs", methods=["GET"])
async def list_runs(req: func.HttpRequest) -> func.HttpResponse:
    """A job's runs, newest first."""
    return await wiring.answer(req, lambda to: to.jobs.runs)


@api.route("preview", methods=["POST"])
async def preview(req: func.HttpRequest) -> func.HttpResponse:
    """What a trigger would do."""
    return await wiring.answer(req, lambda to: to.preview.preview)


@api.route("health", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
async def health(req: func.HttpRequest) -> func.HttpResponse:
    """Whether the scheduler does its work."""
    return await wiring.answer(req, lambda to: to.health.health, without_app=wiring.UNHEALTHY)


@engine.queue_trigger("msg", queue_name="%QUEUE_NAME%", connection=CONNECTION)
async def dispatch(msg: func.QueueMessage) -> None:
    """Carries out a ticket."""
    await wiring.carry_out(msg)


@engine.queue_trigger("msg", queue_name="%QUEUE_NAME%-poison", connection=CONNECTION)
async def poison(msg: func.QueueMessage) -> None:
    """Drops a ticket that failed again and again."""
    await wiring.drop_poison(msg)


@engine.timer_trigger("timer", schedule="%DETECTION_SCHEDULE%", use_monitor=False)
async def detect(timer: func.TimerRequest) -> None:
    """The detection period."""
    await wiring.detect()


app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)
app.register_functions(api)
app.register_functions(engine)
