"""App settings, read once from the environment into one frozen object."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from shared.errors import Fault, Misconfigured
from shared.jobs.fields import QUEUE_NAME
from shared.recurrence import parse_duration

T = TypeVar("T")

TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")
STORAGE = "AzureWebJobsStorage"
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the operator can set. Durations are ISO 8601 in the environment; README has the table."""

    storage: str
    table_name: str
    queue_name: str
    partitions: int
    horizon: timedelta
    detection_period: timedelta
    lock_duration: timedelta
    host_lock_renewal_period: timedelta
    instance_completion_action: str
    instance_locked_exception_action: str
    max_executing: int
    default_max_lateness: timedelta
    events_queue: str
    queue_targets: str
    identity_targets: str
    secret_hosts: str
    health_key: str
    health_max_detection_age: timedelta
    health_max_overdue: timedelta


def read_settings(env: Mapping[str, str]) -> Settings:
    """Settings from `env` (usually os.environ).

    Raises Misconfigured naming every setting that is missing or out of its bounds.
    """
    faults: list[Fault] = []

    def read(name: str, default: str | None, parse: Callable[[str], T]) -> T:
        text = env.get(name) or default
        try:
            if text is None:
                raise ValueError("must be set")
            return parse(text)
        except ValueError as error:
            faults.append(Fault(name, str(error)))
            return None  # type: ignore[return-value]  # never seen: the faults are raised below

    settings = Settings(
        storage=read(STORAGE, None, str),
        table_name=read("TABLE_NAME", "timerjobs", _name(TABLE_NAME, "a table")),
        queue_name=read("QUEUE_NAME", "timerjobs-tickets", _name(QUEUE_NAME, "a queue")),
        partitions=read("PARTITIONS", "16", _integer(1, 256)),
        horizon=read("HORIZON", "P6D", _duration(timedelta(minutes=1), 6 * DAY)),
        detection_period=read("DETECTION_PERIOD", "PT1M", _duration(SECOND, timedelta(hours=1))),
        lock_duration=read("LOCK_DURATION", "PT1M", _duration(15 * SECOND, timedelta(hours=1))),
        host_lock_renewal_period=read("HOST_LOCK_RENEWAL_PERIOD", "PT30S", _duration(SECOND, timedelta(hours=1))),
        instance_completion_action=read(
            "INSTANCE_COMPLETION_ACTION", "DeleteNothing", _one_of("DeleteNothing", "DeleteAll")
        ),
        instance_locked_exception_action=read(
            "INSTANCE_LOCKED_EXCEPTION_ACTION", "NoRetry", _one_of("NoRetry", "BasicRetry", "AggressiveRetry")
        ),
        max_executing=read("MAX_EXECUTING", "200", _integer(1, 10_000)),
        default_max_lateness=read("DEFAULT_MAX_LATENESS", "PT1H", _duration(timedelta(0), 366 * DAY)),
        events_queue=read("EVENTS_QUEUE", "", lambda text: text and _name(QUEUE_NAME, "a queue")(text)),
        queue_targets=read("QUEUE_TARGETS", "", str),
        identity_targets=read("IDENTITY_TARGETS", "", str),
        secret_hosts=read("SECRET_HOSTS", "", str),
        health_key=read("HEALTH_KEY", "", str),
        health_max_detection_age=read("HEALTH_MAX_DETECTION_AGE", "PT5M", _duration(SECOND, DAY)),
        health_max_overdue=read("HEALTH_MAX_OVERDUE", "PT5M", _duration(SECOND, DAY)),
    )
    if faults:
        raise Misconfigured(faults)
    return settings


def _name(pattern: re.Pattern[str], thing: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"must be the name of {thing}, which {text!r} cannot be")
        return text

    return parse


def _one_of(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in names:
            raise ValueError(f"must be {' or '.join(names)}, not {text!r}")
        return text

    return parse


def _integer(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise ValueError(f"must be an integer from {low} to {high}, not {text!r}")
        return int(text)

    return parse


def _duration(low: timedelta, high: timedelta) -> Callable[[str], timedelta]:
    def parse(text: str) -> timedelta:
        duration = parse_duration(text)
        if not low <= duration <= high:
            raise ValueError(f"must last from {low} to {high}, not {text!r}")
        return duration

    return parse
