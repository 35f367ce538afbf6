"""Whatever is asked, no more than so much is done between two turns of the event loop."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import Phase, given, settings, target
from hypothesis import strategies as st

from devhost.azurite import Azurite
from shared import giving_way
from shared.errors import InvalidInput
from shared.expressions import evaluate
from shared.jobs.context import RunContext
from shared.jobs.spec import parse_job
from tests.harness import NOON, Bench, bench
from tests.web.support import ask, swept
from tests.web.test_pages import pages, recorded
from tests.worst import PARTS, counting, filled

pytestmark = pytest.mark.asyncio(loop_scope="module")

MOST_STEPS = 1_200_000
"""Calls of functions, those of the language itself counted too: about a tenth of a second."""
MOST_BYTES = 4 * 1024 * 1024
"""Of JSON read and written, and of what is compressed."""

mixtures = st.lists(st.tuples(st.sampled_from(sorted(PARTS)), st.integers(1, 100)), min_size=1, max_size=3)


def cases(count: int) -> settings:
    phases = [Phase.explicit, Phase.generate, Phase.target]
    return settings(max_examples=count, deadline=None, database=None, phases=phases)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_bench(azurite: Azurite) -> AsyncIterator[Bench]:
    """One app for all, which no target is called from."""
    async with bench(azurite.connection_string, PARTITIONS="1") as at:
        yield at
        await swept(at)


async def check(at: Bench, route: str, raw: bytes, **more: Any) -> None:
    """Asks, and holds what was done between two turns to the bounds."""
    with counting() as work:
        if route == "bulk":
            response = await at.call("carry_out", "bulk", raw=raw)
        else:
            response = await ask(at, route, raw=raw, **more)
    assert response.status < 500, response.body
    target(float(work.steps), label=f"steps of {route}")
    target(float(work.bytes), label=f"bytes of {route}")
    assert work.steps <= MOST_STEPS
    assert work.bytes <= MOST_BYTES


async def ask_all(at: Bench, mixture: list[tuple[str, int]]) -> None:
    """A body in all the requests that may hold one."""
    body = filled(mixture)
    raw = json.dumps(body).encode()
    if len(raw) > 256 * 1024:
        return
    await check(at, "put", raw, job="any")
    preview = {"trigger": body["trigger"], "parameters": body.get("parameters", {}), "count": 1000}
    await check(at, "preview", json.dumps(preview).encode())
    body["description"] = f"{len(raw)}"  # no definition is remembered from before
    lines = [{"op": "put", "id": f"any-{n}", "job": body | {"tags": {"n": f"{n}"}}} for n in range(6)]
    await check(at, "bulk", b"\n".join(json.dumps(line).encode() for line in lines))


@cases(15)
@given(mixture=mixtures)
async def test_no_body_holds_the_loop(shared_bench: Bench, mixture: list[tuple[str, int]]) -> None:
    await ask_all(shared_bench, mixture)


@pytest.mark.soak
@cases(400)
@given(mixture=mixtures)
async def test_no_body_of_many_holds_the_loop(shared_bench: Bench, mixture: list[tuple[str, int]]) -> None:
    await ask_all(shared_bench, mixture)


@pytest.mark.parametrize("part", sorted(PARTS))
async def test_what_an_accepted_action_evaluates_is_bounded(part: str) -> None:
    try:
        asked = parse_job(filled([(part, 1)]), NOON)
    except InvalidInput:
        return
    run = RunContext(
        job_id="a",
        seq=1,
        stamp="s",
        scheduled=NOON,
        started=NOON,
        window=None,
        parameters=asked.definition.get("parameters", {}),
    )
    with counting() as work:
        evaluate(asked.definition["actions"]["Call"]["inputs"], run.functions(), "inputs")
    assert work.steps <= MOST_STEPS
    assert work.bytes <= MOST_BYTES


async def test_history_is_read_a_record_at_a_time(shared_bench: Bench) -> None:
    at = shared_bench
    await recorded(at, "past", range(1, 41), letters=5000)
    with counting() as work:
        found = await pages(at, "runs", job="past", pageSize="20")
    assert [len(page) for page in found] == [20, 20]
    assert work.turns > 80
    assert work.bytes <= MOST_BYTES


async def test_whoever_works_gives_way_only_when_a_turn_has_lasted_long(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, is_over = 0, False

    def turn() -> None:
        nonlocal turns
        turns += 1
        if not is_over:
            loop.call_soon(turn)

    async def taken(times: int) -> int:
        before = turns
        for _ in range(times):
            await giving_way.give_way()
        return turns - before

    loop = asyncio.get_running_loop()
    loop.call_soon(turn)
    monkeypatch.setattr(giving_way, "WORKING", timedelta(days=1).total_seconds())
    assert await taken(100) == 0
    monkeypatch.setattr(giving_way, "WORKING", 0)
    assert await taken(100) >= 99
    pieces = await asyncio.gather(*(taken(10) for _ in range(5)))
    assert max(pieces) >= 49  # whoever shares a turn with others waits for the next one
    is_over = True
