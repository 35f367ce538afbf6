"""A request that is wrong in one way, and what its answer must name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.web.support import put_in

RECURRENCE = "trigger.recurrence"
SCHEDULE = f"{RECURRENCE}.schedule"
INPUTS = "action.inputs"
LONG = "x" * 5000


@dataclass(frozen=True)
class Bad:
    """A wrong request and the field that its answer must name, alone unless it is `among` others.

    `raw` is a body that is no JSON value.
    """

    name: str
    field: str
    body: Any = None
    raw: bytes | None = None
    headers: Mapping[str, str] | None = None
    query: Mapping[str, str] | None = None
    route: str = "create"
    job: str | None = None
    seq: str | None = None
    status: int = 400
    among: bool = False


def at_path(field: str, **values: Any) -> list[Bad]:
    """Values that are wrong at a path of the body, which the answer must name."""
    return [
        Bad(f"{field}-{name.replace('_', '-')}", field, put_in(field, value)) for name, value in values.items()
    ]
