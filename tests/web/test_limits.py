"""What the operator's limits refuse: intervals, bodies, actions; and the defaults let through what they did."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from devhost.azurite import Azurite
from tests.harness import Bench, bench
from tests.web.support import ask, daily, fields, swept, valid

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def limited(azurite: Azurite) -> AsyncIterator[Bench]:
    async with bench(azurite.connection_string, MIN_INTERVAL="PT15M", MAX_BODY="2048", MAX_ACTIONS="2") as at:
        yield at


def every(frequency: str, interval: Any, **schedule: Any) -> dict[str, Any]:
    recurrence = {"frequency": frequency, "interval": interval}
    return recurrence | ({"schedule": schedule} if schedule else {})


def job(recurrence: dict[str, Any], kind: str = "Recurrence", **more: Any) -> dict[str, Any]:
    return valid(trigger={"type": kind, "recurrence": recurrence}) | more


INTERVAL = "trigger.recurrence.interval"
MINUTES = "trigger.recurrence.schedule.minutes"
HOURS = "trigger.recurrence.schedule.hours"
TOO_OFTEN = [
    (job(every("Second", 899)), INTERVAL),
    (job(every("Minute", 14)), INTERVAL),
    (job(every("Minute", "14")), INTERVAL),
    (job(every("Minute", 1), "SlidingWindow"), INTERVAL),
    (job(every("Minute", "@parameters('n')")), INTERVAL),
    (job(every("Day", 1, minutes=[0, 14])), MINUTES),
    (job(every("Day", 7, minutes=[0, 14])), MINUTES),
    (job(every("Day", 1, hours=[0, 23], minutes=[0, 50])), MINUTES),
    (job(every("Week", 1, weekDays=["Monday", "Tuesday"], hours=[0, 23], minutes=[0, 50])), MINUTES),
    (job(every("Month", 1, monthDays=[1, -1], hours=[0, 23], minutes=[1, 50])), MINUTES),
    (valid(trigger=None, triggers={"T": job(every("Second", 1))["trigger"]}), "triggers.T.recurrence.interval"),
]
SELDOM_ENOUGH = [
    job(every("Second", 900)),
    job(every("Minute", 15)),
    job(every("Hour", 1), "SlidingWindow"),
    job(every("Day", 1, hours=[0, 1], minutes=[0, 15, 30, 45])),
    job(every("Day", 2, hours=[0, 23], minutes=[0, 50])),
    job(every("Week", 1, weekDays=["Monday"], hours=[0, 23], minutes=[0, 50])),
    job(every("Week", 1, weekDays=["Monday", "Friday"], hours=[0, 23], minutes=[0, 50])),
    job(every("Month", 1, monthDays=[1], hours=[0, 23], minutes=[0, 50])),
    job(every("Month", 1)),
    valid(trigger={"type": "Once"}),
]


@pytest.mark.parametrize(("body", "field"), TOO_OFTEN)
async def test_a_recurrence_that_is_too_often_is_refused(limited: Bench, body: Any, field: str) -> None:
    for route, name in (("create", None), ("put", "a")):
        refused = await ask(limited, route, body, job=name)
        assert (refused.status, fields(refused)) == (400, [field]), refused.body
        assert "at least PT15M must lie between" in refused.body["errors"][0]["reason"]
    assert await swept(limited) == []


@pytest.mark.parametrize("body", SELDOM_ENOUGH)
async def test_a_recurrence_that_is_not_too_often_is_taken(limited: Bench, body: Any) -> None:
    assert (await ask(limited, "put", body, job="a")).status == 201
    assert (await ask(limited, "put", body | {"description": "again"}, job="a")).status == 200
    assert (await ask(limited, "delete", job="a")).status == 204


async def test_a_preview_shows_also_what_would_be_too_often(limited: Bench) -> None:
    shown = await ask(limited, "preview", {"trigger": job(every("Second", 1))["trigger"]})
    assert shown.status == 200


async def test_more_actions_than_allowed_are_refused(limited: Bench) -> None:
    call = {"type": "Http", "inputs": {"method": "GET", "uri": "https://example.org/"}}
    for count, status in ((2, 201), (3, 400)):
        body = daily(interval=1) | {"action": None, "actions": {f"A{n}": call for n in range(count)}}
        answer = await ask(limited, "create", body | {"id": "a"})
        assert answer.status == status
        assert fields(answer) == ([] if status == 201 else ["actions"])
    await ask(limited, "delete", job="a")
    assert await swept(limited) == []


@pytest.mark.parametrize("route", ["create", "put", "preview"])
async def test_a_body_beyond_the_limit_is_refused(limited: Bench, route: str) -> None:
    body = {"trigger": {"type": "Once"}} if route == "preview" else valid(id="a")
    name = "a" if route == "put" else None
    content = json.dumps(body).encode()
    fits = await ask(limited, route, raw=content.ljust(2048), job=name)
    assert fits.status in (200, 201)
    refused = await ask(limited, route, raw=content.ljust(2049), job=name)
    assert (refused.status, fields(refused)) == (413, ["body"])
    assert "2048" in refused.body["detail"]
    await ask(limited, "delete", job="a")
    assert await swept(limited) == []
