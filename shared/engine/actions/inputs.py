"""Checks of inputs at run time, where an expression may have given what creation could not foresee."""

import re
from collections.abc import Mapping
from typing import Any

from yarl import URL

from shared.errors import Fault

MAX_URI = 8192
_HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*")


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
    if len(text) > MAX_URI:
        raise ValueError(f"must be at most {MAX_URI} characters long")
    if not text.isascii() or any(ord(c) <= 32 or ord(c) == 127 for c in text):
        raise ValueError("must be ASCII without spaces or control characters")
    try:
        url = URL(text, encoded=True).with_fragment(None)
        port = url.explicit_port
    except ValueError:
        raise ValueError("is not a URI") from None
    if url.scheme not in ("http", "https") or not url.raw_host or port == 0:
        raise ValueError("must be an absolute http or https URI")
    if url.raw_user is not None or url.raw_password is not None or "@" in url.raw_authority:
        raise ValueError("must not hold credentials")
    if not _HOST.fullmatch(url.raw_host):
        raise ValueError("names no host that can be called")
    return url


def host_of(url: URL) -> str:
    """The host that a request to this URL goes to, as patterns name it: lower case, no final dot."""
    return (url.raw_host or "").lower().removesuffix(".")
