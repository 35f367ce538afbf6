"""Checks of inputs at run time, where an expression may have given what creation could not foresee."""

import re
from collections.abc import Mapping
from typing import Any

from yarl import URL

from shared.errors import Fault
from shared.jobs.fields import plain_uri

HOST_PATTERN = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*|[0-9a-f.]*:[0-9a-f:.]*")
"""A host, or `*.` and a domain for all below it, in lower case."""


class BadInput(ValueError):
    """An input is not what the action takes; `fault` names it, its path relative to the action's inputs."""

    def __init__(self, field: str, reason: str) -> None:
        self.fault = Fault(field, reason)
        super().__init__(f"{field} {reason}")


def member(inputs: Mapping[str, Any], name: str) -> Any:
    """The input of this name. Raises BadInput where there is none."""
    if inputs.get(name) is None:
        raise BadInput(name, "is required")
    return inputs[name]


def mapping(value: Any, field: str) -> Mapping[str, Any]:
    """An object, absent being an empty one. Raises BadInput."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadInput(field, "must be an object")
    return value


def check_uri(text: Any) -> URL:
    """The URL that a text is, to be requested just as it is written, without its fragment.

    Raises ValueError, whose text says what it must be, for all but an absolute http or https URI without
    credentials.
    """
    if not isinstance(text, str):
        raise ValueError("must be text")
    try:
        url = URL(plain_uri(text), encoded=True).with_fragment(None)
    except ValueError as error:
        raise ValueError(str(error)) from None
    if not url.raw_host or "@" in url.raw_authority:
        raise ValueError("must be an absolute http or https URI without credentials")
    return url


def host_of(url: URL) -> str:
    """The host that a request to this URL goes to, as patterns name it: lower case, no final dot."""
    return (url.raw_host or "").lower().removesuffix(".")


def host_matches(host: str, pattern: str) -> bool:
    """Whether a host, as host_of gives it, is what a pattern stands for."""
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern
