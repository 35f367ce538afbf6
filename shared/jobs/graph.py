"""The order of a job's actions: what runs after what, without circles."""

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Any

from shared.errors import MAX_TOLD, Fault
from shared.jobs.faults import step_name
from shared.jobs.request import MAX_ACTIONS


def order_faults(actions: Any) -> list[Fault]:
    """What is wrong with the actions' `runAfter`: unknown names, as far as they are told, and circles.

    `actions` is as a request has it; of what has not its shape, and of too many, nothing is said.
    """
    if not isinstance(actions, dict) or len(actions) > MAX_ACTIONS:
        return []
    after = {name: _before(action) for name, action in actions.items()}
    unknown = (
        Fault(f"actions.{step_name(name)}.runAfter.{step_name(before)}", "is no action of this job")
        for name, names in after.items()
        for before in names
        if before not in actions
    )
    faults = list(islice(unknown, MAX_TOLD))
    after = {name: [before for before in names if before in actions] for name, names in after.items()}
    for circle in _circles(after):
        reason = f"runs in a circle: {' after '.join(map(step_name, circle))}"
        faults.append(Fault(f"actions.{step_name(circle[0])}.runAfter", reason))
    return faults


def _before(action: Any) -> list[str]:
    given = action.get("runAfter") if isinstance(action, dict) else None
    return list(given) if isinstance(given, dict) else []


def _circles(after: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Circles that share no action, each by its names, one that is given first standing at both ends."""
    while True:
        try:
            TopologicalSorter(after).prepare()
        except CycleError as error:
            members = error.args[1][:0:-1]
            first = min(members, key=list(after).index)
            start = members.index(first)
            yield [*members[start:], *members[:start], first]
            after = {name: names for name, names in after.items() if name not in members}
        else:
            return
