"""What the app counts and measures, by OpenTelemetry's API: at no cost where nothing collects it.

docs/observability.md has the table of these, and how to export them. No attribute grows with the jobs.
"""

from opentelemetry.metrics import get_meter

from shared.jobs.model import Counters, Status

_meter = get_meter("timerjobs")

_fired = _meter.create_counter("timerjobs.fired", "{occurrence}")
_missed = _meter.create_counter("timerjobs.missed", "{occurrence}")
_skipped = _meter.create_counter("timerjobs.skipped", "{occurrence}")
_succeeded = _meter.create_counter("timerjobs.succeeded", "{run}")
_failed = _meter.create_counter("timerjobs.failed", "{run}")
_cancelled = _meter.create_counter("timerjobs.cancelled", "{run}")
faults = _meter.create_counter("timerjobs.faults", "{fault}")
storage_requests = _meter.create_counter("timerjobs.storage_requests", "{request}")

_SECONDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 3600]
lateness = _meter.create_histogram("timerjobs.lateness", "s", explicit_bucket_boundaries_advisory=_SECONDS)
detection_duration = _meter.create_histogram(
    "timerjobs.detection_duration", "s", explicit_bucket_boundaries_advisory=_SECONDS
)
overdue_age = _meter.create_gauge("timerjobs.overdue_age", "s")
newer_rows = _meter.create_gauge("timerjobs.newer_rows", "{row}")
slots_taken = _meter.create_gauge("timerjobs.slots_taken", "{slot}")
runs_without_slot = _meter.create_counter("timerjobs.runs_without_slot", "{run}")

_BY_OUTCOME = {
    Status.SUCCEEDED: _succeeded,
    Status.FAILED: _failed,
    Status.TIMED_OUT: _failed,
    Status.CANCELLED: _cancelled,
}


def count_occurrences(counters: Counters) -> None:
    """Counts what one commit fired, missed and skipped."""
    for counter, number in ((_fired, counters.fired), (_missed, counters.missed), (_skipped, counters.skipped)):
        if number > 0:
            counter.add(number)


def count_ended(status: Status) -> None:
    """Counts a run whose end was committed."""
    if status is Status.MISSED:
        _missed.add(1)
    elif status in _BY_OUTCOME:
        _BY_OUTCOME[status].add(1, {"outcome": str(status)})
