"""Every case of the case file, through the public interface."""

import json
from pathlib import Path
from typing import Any

import pytest

from shared.errors import InvalidInput
from shared.recurrence import Schedule
from tests.recurrence.support import SHAPE, at, compiled, first, occurrences

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))
RIGHT = [case for case in CASES if isinstance(case["expected"], list)]
WRONG = [case for case in CASES if isinstance(case["expected"], dict)]
KINDS = {"recurrence": "Recurrence", "slidingWindow": "SlidingWindow"}


def compile_case(case: dict[str, Any]) -> Schedule:
    return compiled(
        case["recurrence"],
        case["created_at"],
        kind=KINDS[case["trigger"]],
        parameters=case.get("parameters"),
        inputs=case.get("inputs"),
        **case.get("options", {}),
    )


def named(case: dict[str, Any]) -> str:
    return str(case["id"])


@pytest.mark.parametrize("case", RIGHT, ids=named)
def test_case_fires_when_expected(case: dict[str, Any]) -> None:
    schedule = compile_case(case)
    assert first(schedule, case["count"]) == case["expected"]


@pytest.mark.parametrize("case", [case for case in RIGHT if "windows" in case], ids=named)
def test_case_has_its_windows_and_due_times(case: dict[str, Any]) -> None:
    schedule = compile_case(case)
    scheduled = [at(text) for text in case["expected"]]
    windows = [schedule.window(instant) for instant in scheduled]
    assert [[f"{bound:{SHAPE}}" for bound in window or ()] for window in windows] == case["windows"]
    assert [f"{schedule.due(instant):{SHAPE}}" for instant in scheduled] == case["due"]


@pytest.mark.parametrize("case", RIGHT, ids=named)
def test_case_reads_the_same_backwards_and_counts_itself(case: dict[str, Any]) -> None:
    schedule = compile_case(case)
    forwards = [at(text) for text in case["expected"]]
    backwards = [forwards[-1]]
    while (before := schedule.last_until(backwards[-1] - (forwards[0].resolution))) is not None:
        backwards.append(before)
        if len(backwards) == len(forwards):
            break
    assert backwards[::-1] == forwards
    assert schedule.count_between(forwards[0], forwards[-1]) == len(forwards)


@pytest.mark.parametrize("case", WRONG, ids=named)
def test_case_is_refused_naming_the_first_fault(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        compile_case(case)
    field = case["expected"]["error"]
    path = {"parameters": "parameters", "delay": "inputs.delay"}.get(field, f"recurrence.{field}")
    assert refused.value.faults[0].field == path


def test_no_case_is_left_out() -> None:
    assert len(RIGHT) + len(WRONG) == len(CASES) == 289


def test_enumeration_ends_where_the_expected_list_is_short() -> None:
    short = [case for case in RIGHT if len(case["expected"]) < case["count"]]
    ended = [case for case in short if "count" not in case["recurrence"]]
    assert ended
    for case in ended:
        assert len(list(occurrences(compile_case(case)))) == len(case["expected"])
