"""How one attempt at an action went."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.jobs.model import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`status` is Succeeded, Failed or TimedOut; `response` what history keeps of the target's answer."""

    status: Status
    reason: str = ""
    response: Mapping[str, Any] | None = None
