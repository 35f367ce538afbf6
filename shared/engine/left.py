"""What came of runs leaving their rows, told as it comes."""

import logging
from dataclasses import dataclass, field
from datetime import datetime

from shared import metrics
from shared.engine.logs import about
from shared.jobs.model import Run
from shared.storage.endings import Ending, Rest

log = logging.getLogger("timerjobs.execute")


@dataclass(slots=True)
class Left:
    """What came of runs leaving.

    The seconds at which resting ones are due, and how many are `stuck`. What was let through a gate: `runs` to be
    started here, each with a slot, if they may start here at all (`starts`); the service types of `others`, for
    somebody else; whether a baton was `put_back` that is due already.
    """

    starts: bool
    dues: list[datetime] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    put_back: bool = False
    stuck: int = 0

    def gone(self, unit: Ending | Rest) -> None:
        """A unit has been committed."""
        if isinstance(unit, Ending):
            metrics.count_ended(unit.ended.status)
        elif unit.due is not None:
            self.dues.append(unit.due)
        else:
            self.others.append(unit.run.service_type)

    def lost(self, run: Run) -> None:
        """A run is somebody else's, or has ended."""
        message = "left by nobody here: it was taken over, cancelled or removed"
        log.warning(message, extra={"action": "complete", **about(run)})

    def at_fault(self, run: Run) -> None:
        """How a run leaves cannot be written."""
        self.stuck += 1
        metrics.faults.add(1)
        log.error("it cannot be recorded, and is left to its lease", extra={"action": "complete", **about(run)})
