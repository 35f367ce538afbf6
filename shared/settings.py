"""App settings, read once from the environment into one frozen object."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar
from urllib.parse import urlsplit

from shared.errors import Fault, Misconfigured
from shared.jobs.fields import QUEUE_NAME
from shared.jobs.times import duration_text
from shared.recurrence import parse_duration

T = TypeVar("T")

TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")
ACCOUNT_NAME = re.compile(r"[a-z0-9]{3,24}")
GUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
STORAGE = "AzureWebJobsStorage"
ACCOUNT, CREDENTIAL, CLIENT_ID = f"{STORAGE}__accountName", f"{STORAGE}__credential", f"{STORAGE}__clientId"
SERVICES = ("blob", "queue", "table")
MAX_BODY = 256 * 1024
"""Bytes of a job's definition as it is sent, at most."""
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The storage account: either its connection string, or where its services are and who asks them.

    `managed` says that the platform's managed identity asks, the user-assigned one of `client_id` if there is
    one; else whoever is signed in, as azure-identity's DefaultAzureCredential finds out.
    """

    connection: str = field(default="", repr=False)
    queues: str = ""
    tables: str = ""
    managed: bool = False
    client_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the operator can set. Durations are ISO 8601 in the environment; README has the table."""

    account: Account
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
    max_executing_per_job: int
    max_waiting_per_job: int
    max_connections_per_host: int
    default_max_lateness: timedelta
    events_queue: str
    queue_targets: str
    identity_targets: str
    secret_hosts: str
    template_action: str
    min_interval: timedelta
    max_body: int
    max_actions: int
    outbound_allow: str
    outbound_deny: str
    health_key: str
    health_max_detection_age: timedelta
    health_max_overdue: timedelta


def read_settings(env: Mapping[str, str]) -> Settings:
    """Settings from `env` (usually os.environ).

    Raises Misconfigured naming every setting that is missing or out of its bounds.
    """
    faults: list[Fault] = []

    def read(name: str, default: str, parse: Callable[[str], T]) -> T:
        try:
            return parse(env.get(name) or default)
        except ValueError as error:
            faults.append(Fault(name, str(error)))
            return None  # type: ignore[return-value]  # never seen: the faults are raised below

    settings = Settings(
        account=_account(env, faults),
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
        max_executing_per_job=read("MAX_EXECUTING_PER_JOB", "50", _integer(1, 10_000)),
        max_waiting_per_job=read("MAX_WAITING_PER_JOB", "100", _integer(1, 1000)),
        max_connections_per_host=read("MAX_CONNECTIONS_PER_HOST", "50", _integer(1, 10_000)),
        default_max_lateness=read("DEFAULT_MAX_LATENESS", "PT1H", _duration(timedelta(0), 366 * DAY)),
        events_queue=read("EVENTS_QUEUE", "", lambda text: text and _name(QUEUE_NAME, "a queue")(text)),
        queue_targets=read("QUEUE_TARGETS", "", str),
        identity_targets=read("IDENTITY_TARGETS", "", str),
        secret_hosts=read("SECRET_HOSTS", "", str),
        template_action=read("TEMPLATE_ACTION", "", str),
        min_interval=read("MIN_INTERVAL", "PT1S", _duration(SECOND, DAY)),
        max_body=read("MAX_BODY", "262144", lambda text: min(MAX_BODY, _integer(1024, 16 * 1024 * 1024)(text))),
        max_actions=read("MAX_ACTIONS", "100", _integer(1, 100)),
        outbound_allow=read("OUTBOUND_ALLOW", "", str),
        outbound_deny=read("OUTBOUND_DENY", "", str),
        health_key=read("HEALTH_KEY", "", str),
        health_max_detection_age=read("HEALTH_MAX_DETECTION_AGE", "PT5M", _duration(SECOND, DAY)),
        health_max_overdue=read("HEALTH_MAX_OVERDUE", "PT5M", _duration(SECOND, DAY)),
    )
    faults += _faults_between(settings) if not faults else []
    if faults:
        raise Misconfigured(faults)
    return settings


def _faults_between(settings: Settings) -> Iterator[Fault]:
    """What is wrong of settings that are right each by itself."""
    period = duration_text(settings.detection_period)
    for name, at_least, why in (
        ("HORIZON", settings.horizon, "what falls due between two detections would come late"),
        (
            "HEALTH_MAX_DETECTION_AGE",
            settings.health_max_detection_age,
            "health would fail between two detections",
        ),
    ):
        if at_least < settings.detection_period:
            reason = (
                f"must not be shorter than DETECTION_PERIOD ({period}), but is {duration_text(at_least)}: {why}"
            )
            yield Fault(name, reason)


def _account(env: Mapping[str, str], faults: list[Fault]) -> Account:
    """The account that AzureWebJobsStorage names, or the settings that the Functions host reads in its place."""
    connection, name = env.get(STORAGE, ""), env.get(ACCOUNT, "")
    uris = {service: env.get(f"{STORAGE}__{service}ServiceUri", "") for service in SERVICES}
    credential, client_id = env.get(CREDENTIAL, ""), env.get(CLIENT_ID, "")
    by_identity = any((name, *uris.values(), credential, client_id))
    if connection and by_identity:
        faults.append(Fault(STORAGE, f"must not be set beside {STORAGE}__…: it is one or the other"))
    if connection:
        return Account(connection=connection)
    if not by_identity:
        faults.append(Fault(STORAGE, f"must be set, or {ACCOUNT} to use an identity"))
    else:
        faults.extend(_address_faults(name, uris))
    if credential.lower() not in ("", "managedidentity"):
        faults.append(
            Fault(f"{STORAGE}__credential", f"must be managedidentity or absent, not {credential[:80]!r}")
        )
    if client_id and not GUID.fullmatch(client_id):
        faults.append(
            Fault(f"{STORAGE}__clientId", "must be a user-assigned identity's client id, which is a GUID")
        )
    return Account(
        queues=uris["queue"] or f"https://{name}.queue.core.windows.net",
        tables=uris["table"] or f"https://{name}.table.core.windows.net",
        managed=credential != "",
        client_id=client_id,
    )


def _address_faults(name: str, uris: Mapping[str, str]) -> Iterator[Fault]:
    if name and any(uris.values()):
        reason = f"must not be set beside {STORAGE}__…ServiceUri: both say where the account is"
        yield Fault(ACCOUNT, reason)
    elif name and not ACCOUNT_NAME.fullmatch(name):
        reason = f"must be the name of a storage account, which {name[:80]!r} cannot be"
        yield Fault(ACCOUNT, reason)
    elif not name:
        for service, uri in uris.items():
            if not _is_service_uri(uri):  # not quoted, since it may hold a signature
                reason = f"must be the https address of the account's {service} service"
                yield Fault(f"{STORAGE}__{service}ServiceUri", reason)


def _is_service_uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme == "https" and bool(parts.hostname) and not (parts.query or parts.username)
    except ValueError:
        return False


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
            raise ValueError(f"must last from {duration_text(low)} to {duration_text(high)}, not {text!r}")
        return duration

    return parse
