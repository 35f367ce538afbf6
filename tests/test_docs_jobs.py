"""docs/jobs.md: each example is a job that is accepted and runs, and what runs leave is what is shown there."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiohttp import web
from azure.core.exceptions import ResourceExistsError
from azure.storage.queue import TextBase64DecodePolicy
from azure.storage.queue.aio import QueueClient

from tests.audit import audit
from tests.harness import Bench, Hit, Receiver, bench, receiving

DOC = Path(__file__).parents[1] / "docs" / "jobs.md"
QUEUE = "orders"
STAMP = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
TICKET_LATE = timedelta(milliseconds=240)
WAKE_LATE = timedelta(milliseconds=150)


class Example(NamedTuple):
    """A JSON example: `kind` is what stands behind `json` in its fence, nothing for a whole job."""

    kind: str
    text: str

    @property
    def value(self) -> Any:
        """The JSON it is; of a fragment, the object of its members."""
        return json.loads(self.text if self.text.startswith(("{", "[")) else f"{{{self.text}}}")

    @property
    def is_job(self) -> bool:
        return self.kind in ("", *FRAGMENTS)

    @property
    def job(self) -> dict[str, Any]:
        """The job it is, or is made part of."""
        job: dict[str, Any] = self.value
        return FRAGMENTS[self.kind](job) if self.kind else job


ONCE = {"type": "Once"}
MINUTELY = {"type": "Recurrence", "recurrence": {"frequency": "Minute", "interval": 1}}
INPUTS = {"method": "POST", "uri": "https://reports.example.org/fragment"}
CALL = {"type": "Http", "inputs": INPUTS}
FRAGMENTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "action": lambda members: {"trigger": ONCE, "action": CALL | members},
    "inputs": lambda members: {"trigger": ONCE, "action": CALL | {"inputs": INPUTS | members}},
    "wait": lambda members: {"trigger": ONCE, "action": {"type": "Wait"} | members},
    "trigger": lambda members: {"trigger": MINUTELY | members, "action": CALL},
}


def read_examples() -> list[Example]:
    fenced = re.findall(r"^```json(.*)\n((?:.*\n)*?)```$", DOC.read_text(), re.MULTILINE)
    return [Example(kind.strip(), text) for kind, text in fenced]


EXAMPLES = read_examples()
JOBS = [example for example in EXAMPLES if example.is_job]


def job_named(name: str) -> dict[str, Any]:
    (job,) = [example.job for example in EXAMPLES if not example.kind and example.value["id"] == name]
    return job


def shown(kind: str) -> Any:
    (example,) = [example for example in EXAMPLES if example.kind == kind]
    return example.value


def here(job: dict[str, Any], target: Receiver) -> dict[str, Any]:
    """The job, calling this machine's receiver instead of the hosts of the examples."""
    text = re.sub(r"https://[a-z.]*example\.org", target.url, json.dumps(job))
    local: dict[str, Any] = json.loads(text)
    return local


def same_text(one: Any, other: Any) -> bool:
    """Whether both are the same JSON, names in the same order, but for the random part of a stamp."""
    left, right = (STAMP.sub("stamp", json.dumps(value, indent=1)) for value in (one, other))
    assert left == right
    return True


class Queues:
    """Storage queues that a test reads."""

    def __init__(self, connection: str) -> None:
        self._connection = connection

    def client(self, name: str) -> QueueClient:
        decode = TextBase64DecodePolicy()
        return QueueClient.from_connection_string(self._connection, name, message_decode_policy=decode)

    async def empty(self, name: str) -> None:
        """Makes it, or takes off what an earlier test has left."""
        async with self.client(name) as client:
            with suppress(ResourceExistsError):
                await client.create_queue()
        await self.take(name)

    async def take(self, name: str) -> list[Any]:
        """All messages, taken off."""
        found = []
        async with self.client(name) as client:
            async for message in client.receive_messages():
                found.append(json.loads(message.content))
                await client.delete_message(message)
        return found


@pytest.fixture
def queues(storage: str) -> Queues:
    return Queues(storage)


@pytest.fixture
async def at(storage: str, queues: Queues) -> AsyncIterator[Bench]:
    """A bench with the settings that the page shows, for this machine instead of the hosts there."""
    settings = {
        example.kind.removeprefix("setting "): re.sub(r"[a-z]+\.example\.org", "127.0.0.1", example.text)
        for example in EXAMPLES
        if example.kind.startswith("setting ")
    }
    assert json.loads(settings["QUEUE_TARGETS"]) == [QUEUE]
    settings["EVENTS_QUEUE"] = QUEUE
    await queues.empty(QUEUE)
    async with bench(storage, None, **settings) as made:
        yield made
        assert await audit(made.app.store) == []


@pytest.fixture(autouse=True)
async def credentials(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A platform that gives the app's identity tokens, and the app setting that an example names."""
    async with receiving() as platform:

        async def give(hit: Hit) -> web.Response:
            expires = str(int(datetime.now().astimezone().timestamp()) + 3600)
            token = {"access_token": "a-token", "expires_on": expires, "token_type": "Bearer"}
            return web.json_response(token | {"resource": "api://reports"})

        platform.answer = give
        monkeypatch.setenv("IDENTITY_ENDPOINT", platform.url)
        monkeypatch.setenv("IDENTITY_HEADER", "x")
        monkeypatch.setenv("SECRET_REPORTS", "Key a-secret")
        yield


@pytest.fixture
def served(at: Bench, target: Receiver) -> Receiver:
    """A receiver that answers as the targets of the page do, each after its time."""
    bodies: dict[str, Any] = {"/hook/report": {"rows": 1204}}
    times = {"/hook/report": 380, "/hook/report/current": 95}

    async def answer(hit: Hit) -> web.Response:
        headers = {"Date": format_datetime(at.clock(), usegmt=True), "Server": "example", "Connection": "close"}
        at.clock.advance(milliseconds=times.get(hit.path, 0))
        if hit.path in bodies:
            return web.json_response(bodies[hit.path], headers=headers)
        return web.Response(status=204, headers=headers)

    target.answer = answer
    return target


async def begin(at: Bench, job_id: str) -> None:
    """Moves the clock to the job's next occurrence, a ticket's way later, and dispatches it."""
    answer = await at.call("occurrences", id=job_id, query={"count": "1"})
    (occurrence,) = answer.body["value"]
    at.clock.now = max(at.clock.now, datetime.fromisoformat(occurrence["dueTime"])) + TICKET_LATE
    await work(at)


async def work(at: Bench) -> None:
    """What is due, and runs handed off."""
    await at.dispatch()
    await at.take_runs()


async def to_its_end(at: Bench, job_id: str) -> list[Any]:
    """The job's runs, newest first, when none of them sleeps any more."""
    for _ in range(20):
        runs = await at.runs(job_id)
        wakes = [run["reason"].removeprefix("goes on at ") for run in runs if run["status"] == "Waiting"]
        if not wakes:
            return runs
        at.clock.now = datetime.fromisoformat(min(wakes)) + WAKE_LATE
        await work(at)
    raise AssertionError("it never ends")


def test_every_example_has_a_use_here() -> None:
    kinds = [example.kind for example in EXAMPLES if not example.is_job]
    assert sorted(kinds) == [
        *("bulk", "bulk-answer"),
        *("event failed", "event occurrence", "logic-app", "record missed", "record nightly"),
        *("setting IDENTITY_TARGETS", "setting QUEUE_TARGETS", "setting SECRET_HOSTS", "setting TEMPLATE_ACTION"),
        "timer",
    ]
    assert len(JOBS) > 10


def test_links_within_the_docs_lead_somewhere() -> None:
    for path, anchor in re.findall(r"\]\(([a-z./A-Z]*)#?([a-z-]*)\)", DOC.read_text()):
        page = DOC.parent / path if path else DOC
        if page.name == "recurrence.md" and not page.exists():
            continue
        heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
        assert not anchor or anchor in [re.sub(r"[^a-z -]", "", head.lower()).replace(" ", "-") for head in heads]


@pytest.mark.parametrize("example", JOBS, ids=lambda e: e.value.get("id") or f"{e.kind}-{next(iter(e.value))}")
async def test_every_job_of_the_page_is_accepted_and_runs(
    at: Bench, served: Receiver, queues: Queues, example: Example
) -> None:
    job = here(example.job, served)
    made = await at.create(**job)
    if made["state"] == "Suspended":
        assert (await at.call("resume", id=made["id"])).status == 200
    await begin(at, made["id"])
    run = (await to_its_end(at, made["id"]))[-1]
    assert (run["seq"], run["status"]) == (1, "Succeeded")
    called = {hit.path for hit in served.hits if hit.job == made["id"]}
    for name, action in made["actions"].items():
        done = run["actions"][name]["status"] == "Succeeded"
        if action["type"] == "Http":
            assert done is (action["inputs"]["uri"].removeprefix(served.url.removesuffix("/hook")) in called)
        if action["type"] == "Queue":
            assert await queues.take(QUEUE) == [{"due": run["scheduledTime"]}]
    assert called or not any(action["type"] == "Http" for action in made["actions"].values())


async def test_credentials_are_sent(at: Bench, served: Receiver) -> None:
    sent = []
    for example in JOBS:
        if example.kind == "inputs" and "authentication" in example.value:
            made = await at.create(**here(example.job, served))
            await begin(at, made["id"])
            sent.append(served.hits[-1].headers["Authorization"])
    assert sent == ["Bearer a-token", "Key a-secret"]


async def test_the_nightly_job_leaves_the_records_shown(at: Bench, served: Receiver) -> None:
    job = await at.create(**here(job_named("cust-42.nightly-report"), served))
    await begin(at, job["id"])
    (run,) = await to_its_end(at, job["id"])
    assert same_text(run, shown("record nightly"))
    assert json.loads(served.hits[0].body) == {"day": "2026-09-09T09:30:00Z", "top": 10}
    at.clock.now = datetime.fromisoformat("2026-09-12T09:30:00Z") + TICKET_LATE
    await work(at)
    latest, missed, first = await to_its_end(at, job["id"])
    assert (latest["seq"], latest["status"], first) == (3, "Succeeded", run)
    assert same_text(missed, shown("record missed"))


async def test_the_trigger_is_the_event_shown(at: Bench, served: Receiver) -> None:
    job = here(job_named("cust-42.nightly-report"), served)
    job["actions"]["Build"]["inputs"]["body"] = "@trigger()"
    await at.create(**job)
    await begin(at, job["id"])
    assert same_text(json.loads(served.hits[0].body), shown("event occurrence"))


async def test_windows_are_caught_up_with_in_order(at: Bench, served: Receiver) -> None:
    job = await at.create(**here(job_named("hourly-usage"), served))
    await begin(at, job["id"])
    bounds = [json.loads(hit.body) for hit in served.hits]
    assert bounds == [
        {"from": f"2026-09-08T{hour:02}:00:00Z", "until": f"2026-09-08T{hour + 1:02}:00:00Z"}
        for hour in range(6, 12)
    ]


async def test_run_now_has_no_window(at: Bench, served: Receiver) -> None:
    job = here(job_named("hourly-usage"), served)
    job["action"]["inputs"]["body"] = {"from": "@trigger().outputs?.windowStartTime"}
    await at.create(**job)
    at.clock.advance(seconds=7)
    assert (await at.call("run_now", "runs", id=job["id"])).status == 202
    await at.take_runs()
    assert json.loads(served.hits[-1].body) == {"from": None}


async def refuse(hit: Hit) -> web.Response:
    return web.Response(status=200 if "alerts" in hit.path else 404)


async def test_a_failure_that_is_handled_or_followed_by_skipped_actions_is_a_success(
    at: Bench, target: Receiver
) -> None:
    target.answer = refuse
    found = {}
    for name in ("price-import", "cust-42.nightly-report"):
        await at.create(**here(job_named(name), target))
        await begin(at, name)
        (run,) = await to_its_end(at, name)
        found[name] = [run["status"], *(action["status"] for action in run["actions"].values())]
    assert found["price-import"] == ["Succeeded", "Failed", "Succeeded"]
    assert found["cust-42.nightly-report"] == ["Succeeded", "Failed", "Skipped", "Skipped"]


async def test_a_failed_run_sends_the_event_shown(at: Bench, target: Receiver, queues: Queues) -> None:
    target.answer = refuse
    job = await at.create(**here(job_named("invoice-1042.reminder"), target))
    await begin(at, job["id"])
    completed, failed = sorted(await queues.take(QUEUE), key=lambda event: str(event["type"]))
    assert same_text(failed, shown("event failed"))
    assert completed["type"] == "timerjobs.job.completed"


def test_the_job_is_the_logic_app_but_for_what_the_page_says() -> None:
    app, job = shown("logic-app")["definition"], job_named("warm-up")
    replaced = json.loads(json.dumps(app["actions"]).replace("@utcNow()", "@trigger().startTime"))
    assert (job["triggers"], job["actions"]) == (app["triggers"], replaced)
    assert job["parameters"] == {name: of["defaultValue"] for name, of in app["parameters"].items()}


async def test_a_logic_app_is_changed_over_without_running_twice(at: Bench, served: Receiver) -> None:
    await at.create(**here(job_named("warm-up"), served))
    assert (await at.call("run_now", "runs", id="warm-up")).status == 202
    await at.take_runs()
    await to_its_end(at, "warm-up")
    at.clock.advance(hours=1)
    resumed = await at.call("resume", id="warm-up")
    assert datetime.fromisoformat(resumed.body["nextOccurrence"]) == at.clock().replace(microsecond=0)
    await begin(at, "warm-up")
    runs = await to_its_end(at, "warm-up")
    assert [run["status"] for run in runs] == ["Succeeded", "Succeeded"]
    assert len({hit.key for hit in served.hits}) == len(served.hits) == 4


async def test_the_answer_warns_of_an_initial_run(at: Bench, served: Receiver) -> None:
    job = await at.create(**here(job_named("price-import"), served))
    assert job["warnings"] == [{"code": "InitialRun", "at": "2026-09-08T12:00:00Z"}]


async def test_the_lines_shown_are_answered_as_shown(at: Bench, served: Receiver) -> None:
    for name in ("hourly-usage", "price-import"):
        await at.create(**here(job_named(name), served))
    lines, wanted = (next(e.text for e in EXAMPLES if e.kind == kind) for kind in ("bulk", "bulk-answer"))
    answer = await at.call("carry_out", "bulk", raw=lines.encode())
    answers = answer.content().decode().splitlines()
    assert [json.loads(line)["status"] for line in answers] == [201, 201, 200, 200, 202, 404]
    first, last = map(json.loads, wanted.splitlines())
    assert same_text(json.loads(answers[0]), first)
    assert same_text(json.loads(answers[5]), last)


async def test_the_timer_shown_is_taken(at: Bench) -> None:
    made = await at.call("create", "template", body=shown("timer"))
    assert made.content() == b"Next execution time will be at 2026-09-30T06:15:50.0000000Z"
    job = await at.call("get", id=made.headers["Location"].rpartition("/")[2])
    assert job.body["actions"] == {"Action": shown("setting TEMPLATE_ACTION")}


async def test_secured_outputs_are_not_recorded(at: Bench, served: Receiver) -> None:
    (example,) = [example for example in JOBS if example.kind == "action"]
    job = await at.create(**here(example.job, served))
    await begin(at, job["id"])
    (run,) = await at.runs(job["id"])
    assert run["status"] == "Succeeded"
    assert run["actions"]["Action"]["response"] == {"statusCode": 204}


async def test_a_resubmitted_run_has_its_window(at: Bench, served: Receiver) -> None:
    job = await at.create(**here(job_named("hourly-usage"), served))
    await begin(at, job["id"])
    assert (await at.call("resubmit", "runs", id=job["id"], seq="1")).status == 202
    await at.take_runs()
    assert served.hits[-1].body == served.hits[0].body
