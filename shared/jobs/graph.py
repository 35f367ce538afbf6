"""The order of a job's actions: what runs after what, without circles."""

from typing import Any

from shared.errors import Fault


def order_faults(actions: Any) -> list[Fault]:
    """What is wrong with the actions' `runAfter`: unknown names, and circles.

    `actions` is as a request has it; of what has not its shape nothing is said.
    """
    if not isinstance(actions, dict):
        return []
    after = {name: _before(action) for name, action in actions.items()}
    faults = [
        Fault(f"actions.{name}.runAfter.{before}", "is no action of this job")
        for name, names in after.items()
        for before in names
        if before not in actions
    ]
    circle = _circle(after)
    if circle:
        faults.append(Fault(f"actions.{circle[0]}.runAfter", f"runs in a circle: {' after '.join(circle)}"))
    return faults


def _before(action: Any) -> list[str]:
    given = action.get("runAfter") if isinstance(action, dict) else None
    return list(given) if isinstance(given, dict) else []


def _circle(after: dict[str, list[str]]) -> list[str]:
    """The names of a circle, the first of them again at its end; [] if there is none."""
    left = {name: [before for before in names if before in after] for name, names in after.items()}
    while True:  # takes away what runs after nothing that is left
        free = [name for name, names in left.items() if not any(before in left for before in names)]
        if not free:
            break
        for name in free:
            del left[name]
    if not left:
        return []
    walk = [next(iter(left))]
    while walk[-1] not in walk[:-1]:
        walk.append(next(before for before in left[walk[-1]] if before in left))
    return walk[walk.index(walk[-1]) :]
