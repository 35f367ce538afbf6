"""The shortest time between two occurrences, against which an operator's MIN_INTERVAL is held."""

from datetime import timedelta
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.recurrence import compile_trigger
from tests.recurrence import drawn
from tests.recurrence.support import at, compiled, occurrences

CREATED = "2026-09-01T00:00:00Z"
START = "2026-09-09T00:00:00Z"
LATE = {"hours": [0, 23], "minutes": [0]}


def hours(number: int) -> timedelta:
    return timedelta(hours=number)


@pytest.mark.parametrize(
    ("recurrence", "least"),
    [
        ({"frequency": "Second", "interval": 90}, timedelta(seconds=90)),
        ({"frequency": "Hour", "interval": 5}, hours(5)),
        ({"frequency": "Day", "interval": 1}, hours(24)),
        ({"frequency": "Day", "interval": 3}, hours(72)),
        ({"frequency": "Day", "interval": 1, "schedule": LATE}, hours(1)),
        ({"frequency": "Day", "interval": 2, "schedule": LATE}, hours(23)),
        ({"frequency": "Week", "interval": 2}, hours(14 * 24)),
        ({"frequency": "Week", "interval": 1, "schedule": LATE | {"weekDays": ["Monday", "Thursday"]}}, hours(23)),
        ({"frequency": "Week", "interval": 1, "schedule": LATE | {"weekDays": ["Monday", "Sunday"]}}, hours(1)),
        ({"frequency": "Week", "interval": 2, "schedule": LATE | {"weekDays": ["Monday", "Sunday"]}}, hours(23)),
        ({"frequency": "Week", "interval": 1, "schedule": {"weekDays": ["Monday", "Thursday"]}}, hours(72)),
        ({"frequency": "Month", "interval": 1}, hours(28 * 24)),
        ({"frequency": "Month", "interval": 1, "schedule": LATE | {"monthDays": [-1, 1]}}, hours(1)),
        ({"frequency": "Month", "interval": 1, "schedule": LATE | {"monthDays": [1, 15]}}, hours(23)),
        ({"frequency": "Month", "interval": 1, "schedule": {"monthDays": [1, 15]}}, hours(14 * 24)),
        ({"frequency": "Month", "interval": 12, "schedule": {"monthDays": [9, -1]}}, hours(21 * 24)),
        (
            {
                "frequency": "Month",
                "interval": 1,
                "schedule": {
                    "monthlyOccurrences": [
                        {"day": "Monday", "occurrence": 5},
                        {"day": "Tuesday", "occurrence": 1},
                    ]
                },
            },
            hours(24),
        ),
    ],
)
def test_it_is_the_shortest_there_is(recurrence: dict[str, Any], least: timedelta) -> None:
    schedule = compiled(recurrence | {"startTime": START}, CREATED)
    found = schedule.least_gap()
    assert found
    assert found[0] == least
    gaps = [later - earlier for earlier, later in pairwise(islice(occurrences(schedule), 300))]
    assert min(gaps) == least


@pytest.mark.parametrize(
    "more",
    [{"count": 1}, {"endTime": "2026-09-09T00:00:30Z"}, {"frequency": "Year"}],
    ids=["count", "end", "once"],
)
def test_there_is_none_where_it_never_fires_again(more: dict[str, Any]) -> None:
    if "frequency" in more:
        assert compile_trigger({"type": "Once"}, at(CREATED), None).least_gap() is None
    else:
        rule = {"frequency": "Minute", "interval": 1, "startTime": START}
        assert compiled(rule | more, CREATED).least_gap() is None


@given(st.data())
def test_no_gap_is_shorter(data: st.DataObject) -> None:
    recurrence = data.draw(drawn.recurrences("UTC"))
    recurrence.pop("timeZone", None)
    if "startTime" in recurrence:
        recurrence["startTime"] = recurrence["startTime"].removesuffix("Z") + "Z"
    schedule = compiled(recurrence, CREATED, skipInitialRun=True)
    found = schedule.least_gap()
    points = list(islice(occurrences(schedule), 200))
    gaps = [later - earlier for earlier, later in pairwise(points)]
    assert (found is None) == (not gaps)
    assert not found or found[0] <= min(gaps)
