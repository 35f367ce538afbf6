"""A run as an instance of a service type: who may run it, where its host is activated, what it saved. Pure."""

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from shared.errors import Fault, InvalidInput, TooLarge
from shared.jobs.definition import pack, unpack
from shared.jobs.fields import plain_uri
from shared.jobs.model import TIMER_JOB, Run
from shared.jobs.progress import MAX_STATE, Step, unpack_steps

ANY = "Any"
WAS = "WAS"
MAX_RESULT = 32 * 1024
SERVICE_TYPE = re.compile(r"(?=.{1,128}$)[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*")
PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]{0,1024}")


def check_service_type(name: str) -> str:
    """The service type of a job, or of a host other than the generic one. Raises ValueError."""
    if not SERVICE_TYPE.fullmatch(name):
        raise ValueError("must be 1 to 128 of A-Z a-z 0-9 . _ ~ - with single slashes between them")
    for known in (TIMER_JOB, ANY):
        if name.lower() == known.lower() and name != known:
            raise ValueError(f"differs from {known} by case alone")
    if name == ANY:
        raise ValueError(f"must not be {ANY}, which stands for generic hosts")
    return name


def read_activation(text: str) -> "Activation":
    """The activation parameters that a row holds."""
    return Activation.of(json.loads(text))


def is_service_type(name: str) -> bool:
    """Whether a job may be of this service type."""
    try:
        return check_service_type(name) == name
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """Where a host of a service type is activated: a site (its base URL, or a host name, which means https), the
    application's path there, and the service's path in the application."""

    site: str
    application_path: str = ""
    service_path: str = ""

    @property
    def endpoint(self) -> str:
        """The address the three name. Raises ValueError if they name none."""
        base = self.site if "://" in self.site else f"https://{self.site}"
        if "?" in base or "#" in base:
            raise ValueError("must be a base URL or a host name, without query or fragment")
        for path in (self.application_path, self.service_path):
            if not PATH.fullmatch(path) or ".." in path.split("/"):
                raise ValueError("has a path with characters that a path cannot have")
        parts = [base, self.application_path, self.service_path]
        return plain_uri("/".join(part.strip("/") for part in parts if part.strip("/")))

    @classmethod
    def of(cls, plain: Mapping[str, str]) -> Self:
        """The parameters in the names of the API: `site`, `applicationPath`, `servicePath`."""
        return cls(
            site=plain["site"],
            application_path=plain.get("applicationPath", ""),
            service_path=plain.get("servicePath", ""),
        )

    def view(self) -> dict[str, str]:
        """The parameters in the names of the API."""
        return {
            "site": self.site,
            "applicationPath": self.application_path,
            "servicePath": self.service_path,
        }


def pack_state(state: Any) -> bytes:
    """What an instance saved, for its row. Raises TooLarge over 256 KiB packed, InvalidInput if it is not JSON."""
    packed = _packed("state", state)
    if len(packed) > MAX_STATE:
        raise TooLarge(f"the state takes {len(packed)} bytes compressed; the limit is {MAX_STATE}")
    return packed


def unpack_state(packed: bytes) -> Any:
    """What an instance saved; None before its first save."""
    return unpack(packed)["state"] if packed else None


def check_result(result: Any) -> Any:
    """What a run may leave in its record. Raises TooLarge over 32 KiB packed, InvalidInput if it is not JSON."""
    size = len(_packed("result", result))
    if size > MAX_RESULT:
        raise TooLarge(f"the result takes {size} bytes compressed; the limit is {MAX_RESULT}")
    return result


def _packed(name: str, value: Any) -> bytes:
    try:
        json.dumps(value, allow_nan=False)
        return pack({name: value})
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput([Fault(name, f"is not JSON: {error}")]) from None


def steps_of(run: Run) -> dict[str, Step]:
    """The steps of a run's actions; an instance of another service type has none."""
    return unpack_steps(run.state) if run.service_type == TIMER_JOB else {}


def readable_state(run: Run) -> Any:
    """What an instance saved, for an answer. Raises ValueError where its row cannot be read."""
    try:
        return unpack_state(run.state)
    except (KeyError, TypeError, zlib.error) as error:
        raise ValueError(f"the state cannot be read: {type(error).__name__}: {error}") from error
