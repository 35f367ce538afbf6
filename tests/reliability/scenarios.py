"""What may be struck at any storage request, and what must have come of it when all has recovered.

A call is named `job occurrence:action`, an occurrence as in an idempotency key.
"""

import asyncio
import json
import random
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from aiohttp import web

from shared.jobs.times import key_text
from shared.storage.tickets import Ticket
from tests.engine import test_steps
from tests.engine.test_steps import wait
from tests.harness import NOON, SAYS_START, Bench, Hit, http_job
from tests.wire import Killed

AT_NOON = key_text(NOON)
Step = Callable[[Bench, str], Awaitable[Any]]


@dataclass(frozen=True)
class Scenario:
    """`act` is what is struck, after `prepare`; both are given a bench and the target's address.

    `outcomes`: the sets of calls, one of which must have been made at the end. `per_key`: how many calls one
    key may have without any crash. `answer` is the target's, given after so many `seconds`. `in_order`: calls are
    first made in text order.
    """

    name: str
    prepare: Step
    act: Step
    outcomes: list[set[str]]
    per_key: int = 1
    answer: Callable[[Hit, int], web.Response] = lambda hit, number: web.Response()
    seconds: float = 0
    in_order: bool = False
    env: dict[str, str] = field(default_factory=dict)


def call(url: str, after: dict[str, list[str]] | None = None, **inputs: Any) -> dict[str, Any]:
    """A step that calls, and says when its run started."""
    return test_steps.call(url, after, body=SAYS_START, **inputs)


def hourly(url: str, **more: Any) -> dict[str, Any]:
    """A job due at noon and then each hour."""
    return http_job(url, every=3600, start=NOON, **more)


def large(url: str) -> dict[str, Any]:
    """Likewise, its definition more than one property of a row holds."""
    letters = b64encode(random.Random(1).randbytes(70_000)).decode()
    return hourly(url, parameters={"large": letters})


def later(url: str, runs: int | None = None) -> dict[str, Any]:
    """A job that is not due before one o'clock."""
    job = http_job(url, every=3600, start=NOON + timedelta(hours=1))
    if runs:
        job["trigger"]["runtimeConfiguration"] = {"concurrency": {"runs": runs, "maximumWaitingRuns": 5}}
    return job


def once(actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A job that is due at once, one time."""
    return {"trigger": {"type": "Once"}, "actions": actions} | more


async def nothing(at: Bench, url: str) -> None:
    """Prepares nothing."""


def creating(make: Callable[[str], dict[str, Any]], *ids: str) -> Step:
    """Creates jobs."""

    async def create(at: Bench, url: str) -> None:
        for job_id in ids or ("a",):
            await at.create(id=job_id, **make(url))

    return create


def asking(operation: str, make: Callable[[str], Any] | None = None) -> Step:
    """An operation on job `a`, or its run 1; what it answers is not looked at, since it may be cut off."""
    of = "runs" if operation in ("run_now", "cancel", "resubmit") else "jobs"

    async def ask(at: Bench, url: str) -> None:
        await at.call(operation, of, id="a", seq="1", body=make(url) if make else None)

    return ask


def steps(*parts: Step) -> Step:
    """One after the other."""

    async def all_of(at: Bench, url: str) -> None:
        for part in parts:
            await part(at, url)

    return all_of


def passing(**by: float) -> Step:
    """Lets time pass."""

    async def wait_for(at: Bench, url: str) -> None:
        at.clock.advance(**by)

    return wait_for


async def dispatch(at: Bench, url: str) -> None:
    """Passes over all partitions."""
    await at.dispatch()


async def take_runs(at: Bench, url: str) -> None:
    """Picks up what is unlocked."""
    await at.take_runs()


async def dispatch_without_slots(at: Bench, url: str) -> None:
    """Passes of a process that has no slot free."""
    with at.full():
        await at.dispatch()


async def carry_out(at: Bench, url: str) -> None:
    """A ticket, by a pass that goes on after it has fired."""
    await at.app.dispatcher.carry_out(Ticket(at.partitions[0], at.clock()))


async def carry_out_alone(at: Bench, url: str) -> None:
    """A ticket whose invocation has to return while its runs are under way."""
    invocations = at.app.dispatcher._line.invocations
    invocations._last = 0.0
    await carry_out(at, url)
    await asyncio.gather(*invocations._passes)


async def detect(at: Bench, url: str) -> None:
    """A cycle of detection."""
    await at.app.detector.tick()


async def create(at: Bench, url: str) -> None:
    """CreateTimerJob."""
    await at.call("create", body=hourly(url) | {"id": "a"})


async def bulk(at: Bench, url: str) -> None:
    """POST /bulk/jobs: new jobs, and among them one that exists."""
    jobs = [hourly(url) | {"id": job_id} for job_id in ("b", "a", "c")]
    lines = [json.dumps({"op": "put", "job": job}) for job in jobs]
    try:
        await at.call("carry_out", "bulk", raw="\n".join(lines).encode())
    except BaseExceptionGroup as deaths:
        raise Killed from deaths


async def keyed(at: Bench, url: str) -> None:
    """CreateTimerJob with an idempotency key, and again by who got no answer."""
    for _ in range(2):
        await at.call("create", body=hourly(url) | {"id": "a"}, headers={"idempotency-key": "k"})


def retrying(url: str) -> dict[str, Any]:
    """A job whose action is attempted again after ten seconds."""
    policy = {"type": "fixed", "count": 2, "interval": "PT10S"}
    return once({"Action": call(url, retryPolicy=policy)})


def sliding(url: str) -> dict[str, Any]:
    """A job two windows behind, one at a time."""
    job = http_job(url)
    job["trigger"] = {
        "type": "SlidingWindow",
        "recurrence": {"frequency": "Hour", "interval": 1, "startTime": "2026-09-08T11:00:00Z"},
        "runtimeConfiguration": {"concurrency": {"runs": 1}},
    }
    return job


def busy(url: str) -> dict[str, Any]:
    """An hourly job of one run at a time, where nothing may wait."""
    job = hourly(url)
    job["trigger"]["runtimeConfiguration"] = {"concurrency": {"runs": 1, "maximumWaitingRuns": 0}}
    return job


def unforgiving(url: str) -> dict[str, Any]:
    """An hourly job that is too late at once."""
    job = hourly(url)
    job["trigger"]["maxLateness"] = "PT0S"
    return job


RUN = asking("run_now")
BULK = [f"j{number:02d}" for number in range(5)]
NOW = {f"a {AT_NOON}:Action"}
NONE: set[str] = set()
THREE = {f"{job} {AT_NOON}:Action" for job in BULK[:3]}

SCENARIOS = [
    Scenario("create", nothing, create, [NOW, NONE]),
    Scenario("create once", nothing, keyed, [NOW, NONE]),
    Scenario("bulk", creating(hourly), bulk, [NOW, NOW | {f"{job} {AT_NOON}:Action" for job in "bc"}]),
    Scenario("put", nothing, asking("put", make=hourly), [NOW, NONE]),
    Scenario("fire", creating(hourly), dispatch, [NOW]),
    Scenario("fire a large definition", creating(large), dispatch, [NOW]),
    Scenario(
        "put a small one over a large one", creating(large), steps(asking("put", make=hourly), dispatch), [NOW]
    ),
    Scenario("fire in bulk", creating(hourly, *BULK), dispatch, [{f"{job} {AT_NOON}:Action" for job in BULK}]),
    Scenario("miss", steps(creating(unforgiving), passing(minutes=1)), dispatch, [NONE]),
    Scenario("hand-over", creating(hourly), steps(dispatch_without_slots, take_runs), [NOW]),
    Scenario(
        "some handed over",
        creating(hourly, *BULK),
        steps(dispatch, take_runs),
        [{f"{job} {AT_NOON}:Action" for job in BULK}],
        env={"MAX_EXECUTING": "2"},
    ),
    Scenario(
        "too late when there is a slot",
        creating(hourly),
        steps(dispatch_without_slots, passing(seconds=31), take_runs),
        [NONE],
        env={"DEFAULT_MAX_LATENESS": "PT30S"},
    ),
    Scenario("runs after firing", creating(hourly, *BULK[:3]), carry_out, [THREE], seconds=0.05),
    Scenario("runs without an invocation", creating(hourly, *BULK[:3]), carry_out_alone, [THREE], seconds=0.05),
    Scenario("complete", creating(lambda url: once({"Action": call(url)}, deleteAfter="PT1H")), dispatch, [NOW]),
    Scenario(
        "fail, told by an event",
        creating(hourly),
        dispatch,
        [NOW],
        answer=lambda hit, number: web.Response(status=400),
        env={"EVENTS_QUEUE": "told"},
    ),
    Scenario(
        "step",
        creating(
            lambda url: once(
                {
                    "A": call(url),
                    "B": call(url, {"A": ["Succeeded"]}),
                    "C": call(url, {"B": ["Succeeded"]}),
                }
            )
        ),
        dispatch,
        [{f"a {AT_NOON}:{name}" for name in "ABC"}],
    ),
    Scenario(
        "wait",
        creating(
            lambda url: once(
                {
                    "A": call(url),
                    "Pause": wait(30, {"A": ["Succeeded"]}),
                    "B": call(url, {"Pause": ["Succeeded"]}),
                }
            )
        ),
        steps(dispatch, passing(seconds=30), dispatch),
        [{f"a {AT_NOON}:{name}" for name in "AB"}],
    ),
    Scenario(
        "retry",
        creating(retrying),
        steps(dispatch, passing(seconds=10), dispatch),
        [NOW],
        per_key=2,
        answer=lambda hit, number: web.Response(status=500 if number == 0 else 200),
    ),
    Scenario("run now", creating(later), RUN, [{"a run-1:Action"}, NONE]),
    Scenario(
        "run now, the gate full",
        steps(creating(lambda url: later(url, 1)), RUN),
        RUN,
        [{"a run-1:Action"}, {"a run-1:Action", "a run-2:Action"}],
    ),
    Scenario("suspend", creating(hourly), asking("suspend"), [NOW, NONE]),
    Scenario("resume", steps(creating(hourly), asking("suspend"), passing(minutes=1)), asking("resume"), [NONE]),
    Scenario("update", creating(hourly), asking("put", make=lambda url: hourly(url, description="b")), [NOW]),
    Scenario(
        "update the trigger",
        steps(creating(hourly), dispatch, passing(minutes=1)),
        asking("put", make=lambda url: http_job(url, every=1800, start=NOON)),
        [NOW],
    ),
    Scenario(
        "shorten the history",
        steps(creating(hourly), dispatch, passing(hours=1), dispatch),
        asking("put", make=lambda url: hourly(url, historyLimit=1)),
        [NOW | {f"a {key_text(NOON + timedelta(hours=1))}:Action"}],
    ),
    Scenario("delete", steps(creating(hourly), RUN), asking("delete"), [NOW | {"a run-1:Action"}, NONE]),
    Scenario(
        "sliding catch-up",
        creating(sliding),
        dispatch,
        [{f"a {key_text(NOON - timedelta(hours=back))}:Action" for back in range(2)}],
        in_order=True,
    ),
    Scenario(
        "gate full",
        steps(creating(lambda url: later(url, 1)), RUN, RUN, RUN),
        take_runs,
        [{f"a run-{seq}:Action" for seq in (1, 2, 3)}],
    ),
    Scenario(
        "gate opened, few slots",
        steps(creating(lambda url: later(url, 1)), RUN, RUN, RUN, asking("put", make=lambda url: later(url, 3))),
        take_runs,
        [{f"a run-{seq}:Action" for seq in (1, 2, 3)}],
        env={"MAX_EXECUTING": "2"},
    ),
    Scenario("skip", steps(creating(busy), RUN), dispatch, [{"a run-1:Action"}, NOW | {"a run-1:Action"}]),
    Scenario("cancel", steps(creating(later), RUN), asking("cancel"), [{"a run-1:Action"}, NONE]),
    Scenario(
        "resubmit",
        steps(creating(hourly), dispatch),
        asking("resubmit"),
        [NOW, NOW | {"a run-2:Action"}],
    ),
    Scenario("detect", creating(hourly), detect, [NOW]),
    Scenario(
        "remove",
        steps(
            creating(lambda url: once({"Action": call(url)}, deleteAfter="PT1H")),
            dispatch,
            passing(hours=1, seconds=1),
        ),
        dispatch,
        [NOW],
    ),
]
