"""How much of the scheduler one job may take: the operator's limits, beside those that every job has."""

from dataclasses import dataclass
from datetime import timedelta

from shared.errors import Fault
from shared.jobs.request import MAX_ACTIONS
from shared.jobs.spec import JobBody
from shared.jobs.times import SECOND, duration_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`min_interval` is the shortest time from one occurrence to the next, `max_actions` a job's most actions."""

    min_interval: timedelta = SECOND
    max_actions: int = MAX_ACTIONS

    def faults(self, asked: JobBody) -> list[Fault]:
        """What of a valid request goes beyond."""
        faults = []
        if len(asked.definition.get("actions", {})) > self.max_actions:
            faults.append(Fault("actions", f"has too many members: the limit is {self.max_actions}"))
        gap = asked.schedule.least_gap() if self.min_interval > SECOND else None
        if gap is not None and gap[0] < self.min_interval:
            least = duration_text(self.min_interval)
            reason = f"lets it fire again after {duration_text(gap[0])}; at least {least} must lie between"
            faults.append(Fault(f"{asked.trigger_at}.recurrence.{gap[1]}", reason))
        return faults
