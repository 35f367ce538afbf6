"""What the Functions host reads besides the code: host.json, local settings, `%SETTING%` and connections."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from devhost.azurite import STANDARD_PORTS, Ports, connection_string
from devhost.errors import DevhostError

DEVELOPMENT_STORAGE = "UseDevelopmentStorage=true"
FUNCTION_TIMEOUT = timedelta(minutes=30)  # the default of the Flex Consumption plan
SETTINGS_FILES = ("local.settings.json", "local.settings.sample.json")


@dataclass(frozen=True)
class QueueOptions:
    """`extensions.queues` of host.json; what is absent has the platform's default."""

    batch_size: int = 16
    new_batch_threshold: int = 8
    max_polling_interval: timedelta = timedelta(minutes=1)
    visibility_timeout: timedelta = timedelta(0)
    max_dequeue_count: int = 5
    message_encoding: str = "base64"

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> QueueOptions:
        """Read and check the section. Raises DevhostError that names the wrong key."""
        batch_size = _integer(raw, "batchSize", 1, 32, cls.batch_size)
        encoding = raw.get("messageEncoding", cls.message_encoding)
        if encoding not in ("base64", "none"):
            raise DevhostError(f"host.json: messageEncoding is base64 or none, not {encoding!r}")
        longest = _duration(raw, "maxPollingInterval", cls.max_polling_interval)
        if longest < timedelta(milliseconds=100):
            raise DevhostError(f"host.json: maxPollingInterval is at least 100 ms, not {longest}")
        return cls(
            batch_size=batch_size,
            new_batch_threshold=_integer(raw, "newBatchThreshold", 0, 1000, batch_size // 2),
            max_polling_interval=longest,
            visibility_timeout=_duration(raw, "visibilityTimeout", cls.visibility_timeout),
            max_dequeue_count=_integer(raw, "maxDequeueCount", 1, 1000, cls.max_dequeue_count),
            message_encoding=encoding,
        )


@dataclass(frozen=True)
class HostConfig:
    """What this host takes from host.json."""

    route_prefix: str = "api"
    queues: QueueOptions = field(default_factory=QueueOptions)
    function_timeout: timedelta | None = FUNCTION_TIMEOUT  # None: unbounded

    @classmethod
    def read(cls, app_dir: Path) -> HostConfig:
        """Read the host.json of an app. Raises DevhostError if it is missing or wrong."""
        content = _read_json(app_dir / "host.json")
        extensions = _section(content, "extensions", "host.json")
        prefix = _section(extensions, "http", "host.json").get("routePrefix", cls.route_prefix)
        if not isinstance(prefix, str):
            raise DevhostError(f"host.json: routePrefix is text, not {prefix!r}")
        queues = QueueOptions.of(_section(extensions, "queues", "host.json"))
        return cls(prefix.strip("/"), queues, cls._timeout(content))

    @staticmethod
    def _timeout(content: Mapping[str, Any]) -> timedelta | None:
        if str(content.get("functionTimeout")) == "-1":
            return None
        timeout = _duration(content, "functionTimeout", FUNCTION_TIMEOUT)
        if not timeout:
            raise DevhostError("host.json: functionTimeout is longer than 0, or -1 for none")
        return timeout


def load_settings(app_dir: Path) -> str | None:
    """Put the app's local settings into the environment, where that does not have them already.

    Returns the name of the file that was read, the sample where there is no other; None if there is neither.
    """
    for name in SETTINGS_FILES:
        path = app_dir / name
        if not path.exists():
            continue
        content = _read_json(path)
        if content.get("IsEncrypted"):
            raise DevhostError(f"{name} is encrypted: run `func settings decrypt`")
        for key, value in _section(content, "Values", name).items():
            if not isinstance(value, str | int | float) or "\0" in str(value) or not re.fullmatch(r"[^=\0]+", key):
                raise DevhostError(f"{name}: setting {key!r} must have a name without '=', and a plain value")
            os.environ.setdefault(key, str(value))
        return name
    return None


def point_development_storage_at(ports: Ports) -> None:
    """Make `UseDevelopmentStorage=true` mean these ports, for the app too, which reads the environment."""
    if ports == STANDARD_PORTS:
        return
    for key, value in os.environ.items():
        if _is_development_storage(value):
            os.environ[key] = connection_string(ports)


def storage_connection(setting: str) -> str:
    """The storage connection string a trigger names. Raises DevhostError if there is no such setting."""
    value = os.environ.get(setting)
    if not value:
        raise DevhostError(f"setting {setting} is missing: add a storage connection string to {SETTINGS_FILES[0]}")
    return connection_string(STANDARD_PORTS) if _is_development_storage(value) else value


def resolve(text: str, where: str) -> str:
    """Replace each `%SETTING%`. Raises DevhostError, which says `where`, if a setting is missing."""

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            raise DevhostError(f"setting {match[1]}, named by {where}, is missing: add it to {SETTINGS_FILES[0]}")
        return found

    return re.sub(r"%([^%]+)%", value, text)


def parse_duration(text: str) -> timedelta:
    """Read `[d.]hh:mm:ss[.fff]`. Raises ValueError for anything else."""
    match = re.fullmatch(r"(?:(\d+)\.)?(\d{1,2}):([0-5]?\d):([0-5]?\d)(\.\d{1,7})?", text, re.ASCII)
    if match is None or int(match[2]) > 23:
        raise ValueError(f"{text!r} is not hh:mm:ss")
    days, hours, minutes, seconds, fraction = match.groups()
    whole = timedelta(days=int(days or 0), hours=int(hours), minutes=int(minutes), seconds=int(seconds))
    return whole + timedelta(seconds=float(fraction or 0))


def _is_development_storage(value: str) -> bool:
    return value.strip().rstrip(";").lower() == DEVELOPMENT_STORAGE.lower()


def _integer(raw: Mapping[str, Any], key: str, least: int, most: int, default: int) -> int:
    value = raw.get(key, default)
    if type(value) is not int or not least <= value <= most:
        raise DevhostError(f"host.json: {key} is a whole number from {least} to {most}, not {value!r}")
    return value


def _duration(raw: Mapping[str, Any], key: str, default: timedelta) -> timedelta:
    if key not in raw:
        return default
    try:
        return parse_duration(str(raw[key]))
    except ValueError as error:
        raise DevhostError(f"host.json: {key}: {error}") from None


def _section(content: Mapping[str, Any], name: str, file: str) -> Mapping[str, Any]:
    """A member that is an object, or absent. Raises DevhostError for any other."""
    section = content.get(name, {})
    if not isinstance(section, dict):
        raise DevhostError(f"{file}: {name} is an object, not {section!r}")
    return section


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise DevhostError(f"there is no {path.name} in {path.parent}") from None
    except (ValueError, RecursionError) as error:
        raise DevhostError(f"{path.name} is not JSON: {error}") from None
    except OSError as error:
        raise DevhostError(f"{path.name} cannot be read: {error.strerror}") from None
    if not isinstance(content, dict):
        raise DevhostError(f"{path.name} does not hold a JSON object")
    return content
