"""The functions of the app: bindings only, each body is one call. Routes: docs/design.md and README.md."""

import azure.functions as func

import workflows  # noqa: F401  registers them
from shared import entry
from shared.web.openapi import describe

CONNECTION = "AzureWebJobsStorage"

api = func.Blueprint()  # type: ignore[no-untyped-call]
engine = func.Blueprint()  # type: ignore[no-untyped-call]


@api.route("jobs", methods=["POST"])
async def create_job(req: func.HttpRequest) -> func.HttpResponse:
    """CreateTimerJob."""
    return await entry.answer(req, lambda to: to.jobs.create)


@api.route("jobs", methods=["GET"])
async def list_jobs(req: func.HttpRequest) -> func.HttpResponse:
    """A page of jobs."""
    return await entry.answer(req, lambda to: to.jobs.list)


@api.route("jobs/{id}", methods=["PUT"])
async def put_job(req: func.HttpRequest) -> func.HttpResponse:
    """Create or replace a job."""
    return await entry.answer(req, lambda to: to.jobs.put)


@api.route("jobs/{id}", methods=["GET"])
async def get_job(req: func.HttpRequest) -> func.HttpResponse:
    """A job."""
    return await entry.answer(req, lambda to: to.jobs.get)


@api.route("jobs/{id}", methods=["DELETE"])
async def delete_job(req: func.HttpRequest) -> func.HttpResponse:
    """Delete a job."""
    return await entry.answer(req, lambda to: to.jobs.delete)


@api.route("jobs/{id}/suspend", methods=["POST"])
async def suspend_job(req: func.HttpRequest) -> func.HttpResponse:
    """Stop dispatching a job."""
    return await entry.answer(req, lambda to: to.jobs.suspend)


@api.route("jobs/{id}/resume", methods=["POST"])
async def resume_job(req: func.HttpRequest) -> func.HttpResponse:
    """Dispatch a job again."""
    return await entry.answer(req, lambda to: to.jobs.resume)


@api.route("jobs/{id}/occurrences", methods=["GET"])
async def list_occurrences(req: func.HttpRequest) -> func.HttpResponse:
    """A job's next occurrences."""
    return await entry.answer(req, lambda to: to.jobs.occurrences)


@api.route("jobs/{id}/run", methods=["POST"])
async def run_job(req: func.HttpRequest) -> func.HttpResponse:
    """A run beside the schedule."""
    return await entry.answer(req, lambda to: to.runs.run_now)


@api.route("jobs/{id}/runs", methods=["GET"])
async def list_runs(req: func.HttpRequest) -> func.HttpResponse:
    """A job's runs, newest first."""
    return await entry.answer(req, lambda to: to.runs.list)


@api.route("jobs/{id}/runs/{seq}", methods=["GET"])
async def get_run(req: func.HttpRequest) -> func.HttpResponse:
    """A run."""
    return await entry.answer(req, lambda to: to.runs.get)


@api.route("jobs/{id}/runs/{seq}/cancel", methods=["POST"])
async def cancel_run(req: func.HttpRequest) -> func.HttpResponse:
    """End a run."""
    return await entry.answer(req, lambda to: to.runs.cancel)


@api.route("jobs/{id}/runs/{seq}/resubmit", methods=["POST"])
async def resubmit_run(req: func.HttpRequest) -> func.HttpResponse:
    """Repeat a run that has ended."""
    return await entry.answer(req, lambda to: to.runs.resubmit)


@api.route("bulk/jobs", methods=["POST"])
async def bulk_jobs(req: func.HttpRequest) -> func.HttpResponse:
    """Operations on many jobs."""
    return await entry.answer(req, lambda to: to.bulk.carry_out)


@api.route("CreateTimerJob", methods=["POST"])
async def create_timer_job(req: func.HttpRequest) -> func.HttpResponse:
    """A job, by the request of the Logic Apps template."""
    return await entry.answer(req, lambda to: to.template.create)


@api.route("hosts", methods=["POST"])
async def register_host(req: func.HttpRequest) -> func.HttpResponse:
    """A host of service types, with a lease."""
    return await entry.answer(req, lambda to: to.hosts.register)


@api.route("hosts/{host}", methods=["DELETE"])
async def release_host(req: func.HttpRequest) -> func.HttpResponse:
    """End a host's lease."""
    return await entry.answer(req, lambda to: to.hosts.release)


@api.route("hosts/{host}/renew", methods=["POST"])
async def renew_host(req: func.HttpRequest) -> func.HttpResponse:
    """Prolong a host's lease and its locks."""
    return await entry.answer(req, lambda to: to.hosts.renew)


@api.route("hosts/{host}/events", methods=["GET"])
async def host_events(req: func.HttpRequest) -> func.HttpResponse:
    """Wait for a host's events."""
    return await entry.answer(req, lambda to: to.hosts.events)


@api.route("hosts/{host}/tryLoadRunnable", methods=["POST"])
async def try_load_runnable(req: func.HttpRequest) -> func.HttpResponse:
    """Lock and get a runnable instance."""
    return await entry.answer(req, lambda to: to.hosts.try_load)


@api.route("hosts/{host}/load", methods=["POST"])
async def load_instance(req: func.HttpRequest) -> func.HttpResponse:
    """Lock and get this instance."""
    return await entry.answer(req, lambda to: to.hosts.load)


@api.route("hosts/{host}/save", methods=["POST"])
async def save_instance(req: func.HttpRequest) -> func.HttpResponse:
    """Save, unlock or complete an instance."""
    return await entry.answer(req, lambda to: to.hosts.save)


@api.route("hosts/{host}/queryActivatable", methods=["POST"])
async def query_activatable(req: func.HttpRequest) -> func.HttpResponse:
    """The activation parameters of what no host can load."""
    return await entry.answer(req, lambda to: to.hosts.query_activatable)


@api.route("preview", methods=["POST"])
async def preview(req: func.HttpRequest) -> func.HttpResponse:
    """What a trigger would do."""
    return await entry.answer(req, lambda to: to.preview.preview)


@api.route("health", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
async def health(req: func.HttpRequest) -> func.HttpResponse:
    """Whether the scheduler does its work."""
    return await entry.answer(req, lambda to: to.health.health, without_app=entry.UNHEALTHY)


@api.route("openapi.json", methods=["GET"])
async def openapi(req: func.HttpRequest) -> func.HttpResponse:
    """What the API is, as OpenAPI 3.1."""
    return await entry.answer_alone(req, describe)


@engine.queue_trigger("msg", queue_name="%QUEUE_NAME%", connection=CONNECTION)
async def dispatch(msg: func.QueueMessage) -> None:
    """Carries out a ticket."""
    await entry.carry_out(msg)


@engine.queue_trigger("msg", queue_name="%QUEUE_NAME%-poison", connection=CONNECTION)
async def poison(msg: func.QueueMessage) -> None:
    """Drops a ticket that failed again and again."""
    await entry.drop_poison(msg)


@engine.timer_trigger("timer", schedule="%DETECTION_SCHEDULE%", use_monitor=False)
async def detect(timer: func.TimerRequest) -> None:
    """The detection period."""
    await entry.detect()


app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)
app.register_functions(api)
app.register_functions(engine)
