"""Slots: the rule by which jobs share them, and waiting for some."""

import asyncio
import random
import time
from collections import Counter

import pytest

from shared.engine.slots import LOOK, Slots
from tests.harness import until


def filled(slots: Slots, jobs: list[str]) -> Counter[str]:
    """What jobs get that ask by turns until none gets any more."""
    got: Counter[str] = Counter()
    while some := [job for job in jobs if slots.take(job)]:
        got.update(some)
    return got


@pytest.mark.parametrize(
    ("jobs", "each", "left"),
    [(1, {50}, 150), (10, {9, 10}, 109), (50, {1, 2}, 101), (100, {1}, 100), (200, {1}, 0)],
)
def test_half_of_the_slots_is_left_to_jobs_that_have_none(jobs: int, each: set[int], left: int) -> None:
    slots = Slots(200, per_job=200)
    got = filled(slots, [f"j{n}" for n in range(jobs)])
    assert (set(got.values()), slots.free) == (each, left)


def test_who_comes_after_greedy_ones_gets_several_too() -> None:
    slots = Slots(200, per_job=200)
    filled(slots, [f"j{n}" for n in range(10)])
    assert filled(slots, ["late"])["late"] == 5


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 40])
def test_the_first_slot_of_a_job_is_any_that_is_free(limit: int) -> None:
    slots = Slots(limit, per_job=50)
    assert [slots.take(f"j{n}") for n in range(limit + 1)] == [True] * limit + [False]


def test_a_setting_bounds_each_job_besides() -> None:
    assert filled(Slots(200, per_job=3), ["a"])["a"] == 3


def test_what_a_run_has_already_is_counted_whatever_the_rule_says() -> None:
    slots = Slots(2, per_job=1)
    for _ in range(3):
        slots.add("a")
    assert (slots.taken, slots.free, slots.take("b")) == (3, 0, False)
    for _ in range(3):
        slots.give("a")
    assert (slots.taken, slots.take("b")) == (0, True)


@pytest.mark.parametrize("seed", range(5))
def test_the_slots_in_use_are_those_taken_and_not_given_back(seed: int) -> None:
    dice = random.Random(seed)
    slots, held = Slots(40, per_job=10), list[str]()
    for _ in range(1000):
        if held and dice.random() < 0.45:
            slots.give(held.pop(dice.randrange(len(held))))
        else:
            job = f"j{dice.randrange(30)}"
            if slots.take(job):
                held.append(job)
        assert (slots.taken, slots.free) == (len(held), 40 - len(held))


def test_what_is_reserved_and_not_started_is_given_back() -> None:
    slots = Slots(200, per_job=50)
    with slots.reserving() as reserved:
        assert [reserved.take(job) for job in ("a", "a", "b")] == [True] * 3
        reserved.started("a")
    assert slots.taken == 1


async def test_who_waits_for_several_gets_them_in_order() -> None:
    slots, order = Slots(4, per_job=4, patience=100_000), list[str]()
    for n in range(4):
        slots.add(f"j{n}")

    async def waits(name: str) -> None:
        assert await slots.room(2) == 2
        order.append(name)
        slots.add(f"{name}1")
        slots.add(f"{name}2")

    waiting = []
    for name in ("first", "second"):
        waiting.append(asyncio.create_task(waits(name)))
        await asyncio.sleep(0)
    for n in range(4):
        slots.give(f"j{n}")
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert order == ["first", "second"]


async def test_nobody_waits_for_slots_that_hang() -> None:
    slots = Slots(2, per_job=1, patience=2)
    slots.add("a")
    slots.add("b")
    assert await asyncio.gather(*(slots.room(25) for _ in range(10))) == [0] * 10


async def test_what_has_slots_does_not_hang_while_the_loop_is_busy() -> None:
    slots = Slots(1, per_job=1, patience=5)
    slots.add("a")
    waiting = asyncio.create_task(slots.room(1))
    for _ in range(3):
        time.sleep(6 * LOOK)  # noqa: ASYNC251  the loop is busy for longer than all looks take
        await asyncio.sleep(0)
    slots.give("a")
    assert await waiting == 1


async def test_what_is_still_being_started_does_not_hang() -> None:
    slots = Slots(1, per_job=1, patience=2)
    with slots.reserving() as reserved:
        reserved.take("a")
        waiting = asyncio.create_task(slots.room(1))
        await asyncio.sleep(6 * LOOK)
        assert not waiting.done()
    assert await waiting == 1


async def test_what_a_run_does_beside_may_hang() -> None:
    slots = Slots(2, per_job=2, patience=2)
    slots.add("a")
    with slots.holding() as beside:
        beside.add("a")
        assert await slots.room(1, 60) == 0
    assert slots.taken == 1


async def test_looks_while_slots_are_free_are_not_in_vain() -> None:
    slots = Slots(3, per_job=1, patience=2)
    slots.add("a")
    assert await slots.room(25) == 2
    slots.add("b")
    slots.add("c")
    waiting = asyncio.create_task(slots.room(1))
    await asyncio.sleep(0)
    assert not waiting.done()
    slots.give("b")
    assert await waiting == 1


async def test_who_is_first_in_line_goes_on_with_fewer() -> None:
    slots = Slots(3, per_job=1, patience=2)
    slots.add("a")
    assert await slots.room(25) == 2


async def test_a_job_is_waited_for_until_it_may_have_a_slot() -> None:
    slots = Slots(4, per_job=1)
    slots.add("a")
    waiting = asyncio.create_task(slots.open_to({"a"}))
    slots.add("b")
    slots.give("b")
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    slots.give("a")
    await until(waiting.done)
