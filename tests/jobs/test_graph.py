"""What may run after what: names that exist, and no circles."""

from typing import Any

import pytest

from shared.jobs.graph import order_faults


def after(**names: str) -> dict[str, Any]:
    """Actions that run after those named in one letter each."""
    return {name: {"runAfter": {before: ["Succeeded"] for before in given}} for name, given in names.items()}


@pytest.mark.parametrize(
    "actions",
    [
        after(A=""),
        after(A="", B="A", C="AB", D="C"),
        after(D="CA", C="AB", B="A", A=""),
        {"A": {}, "B": {"runAfter": None}, "C": 5, "D": {"runAfter": ["X"]}},
        {f"A{n}": {"runAfter": {f"A{n + 1}": []}} for n in range(1000)},  # told of as too many
        *(None, [], "A", 5),
    ],
)
def test_of_these_nothing_is_said(actions: Any) -> None:
    assert order_faults(actions) == []


@pytest.mark.parametrize(
    ("actions", "circles"),
    [
        (after(A="A"), {"A": "A after A"}),
        (after(A="B", B="A"), {"A": "A after B after A"}),
        (after(B="A", A="B"), {"B": "B after A after B"}),
        (after(A="", B="AD", C="B", D="C", E="D"), {"B": "B after D after C after B"}),
        (after(E="D", D="C", C="B", B="AD", A=""), {"D": "D after C after B after D"}),
        (after(A="A", B="C", C="B", D="B"), {"A": "A after A", "B": "B after C after B"}),
    ],
)
def test_each_circle_is_told_at_its_first_action(actions: Any, circles: dict[str, str]) -> None:
    told = {fault.field: fault.reason for fault in order_faults(actions)}
    assert told == {f"actions.{name}.runAfter": f"runs in a circle: {text}" for name, text in circles.items()}


def test_unknown_names_are_told_each_at_its_place_and_hide_no_circle() -> None:
    told = [fault.field for fault in order_faults(after(A="XB", B="YA"))]
    assert told == ["actions.A.runAfter.X", "actions.B.runAfter.Y", "actions.A.runAfter"]
