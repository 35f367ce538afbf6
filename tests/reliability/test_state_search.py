"""Every state of the model of a run that may wait for an executor: none is wrong, and each rule is needed."""

from collections.abc import Callable

import pytest

from tests.reliability.waiting_model import (
    CRASH,
    DETECTION,
    DOUBLE,
    DRAIN,
    EXPIRED,
    FAIL,
    LAST,
    LOCKED,
    LOSE,
    RELIEVED,
    RULES,
    STALL,
    UNBEGUN,
    VERSION,
    search,
)

Tell = Callable[[str, int], None]

FAULTS = [
    (),
    (LOSE, DOUBLE),
    (CRASH,),
    (CRASH, FAIL),
    (FAIL, FAIL),
    (FAIL, LOSE),
    (DRAIN,),
    (DRAIN, LAST),
    (STALL, DOUBLE),
]


@pytest.mark.parametrize("faults", FAULTS, ids=lambda faults: " and ".join(faults) or "nothing")
def test_nothing_is_wrong_in_any_state(faults: tuple[str, ...], tell: Tell) -> None:
    found = search(faults)
    assert not found.wrong, "\n".join([found.wrong, *found.way])
    tell("states of the model searched", found.states)


BROKEN = [
    (VERSION, (DOUBLE,), "its end is recorded twice"),
    (LOCKED, (DOUBLE,), "it is executed by two at once"),
    (EXPIRED, (DOUBLE,), "it is executed by two at once"),
    (UNBEGUN, (CRASH,), "it is called and missed"),
    (RELIEVED, (), "no invocation is open although something is under way"),
    (DETECTION, (LOSE,), "no good end can be reached"),
]


@pytest.mark.parametrize(("rule", "faults", "wrong"), BROKEN)
def test_a_broken_rule_is_found(rule: str, faults: tuple[str, ...], wrong: str) -> None:
    assert search(faults, RULES - {rule}).wrong == wrong
