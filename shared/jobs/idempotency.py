"""Idempotency keys of requests that make jobs: the id that a key gives, and what tells a repeat from others."""

import hashlib
import json
import re

from shared.errors import Fault, InvalidInput
from shared.jobs.model import State
from shared.jobs.spec import JobBody

_KEY = re.compile(r"[!-~]{1,255}")


def check_key(key: str) -> str:
    """The value of an Idempotency-Key header, which is taken as it is. Raises InvalidInput."""
    if not _KEY.fullmatch(key):
        raise InvalidInput([Fault("Idempotency-Key", "must be 1 to 255 visible ASCII characters")])
    return key


def id_of_key(key: str) -> str:
    """The id of the job that a request with this key and no id makes."""
    return f"key-{_hash(key)}"


def request_text(key: str, asked: JobBody) -> str:
    """The key and what was asked, as hashes: equal where the same is asked again.

    The same is asked where the definition is the same once short forms are resolved and nulls left out, in
    whatever order, and so is the state.
    """
    asks = json.dumps([asked.definition, asked.state or State.ENABLED], sort_keys=True, separators=(",", ":"))
    return f"{_hash(key)}:{_hash(asks)}"


def has_key(request: str, key: str) -> bool:
    """Whether a `request_text` ('': none) is of a request with this key."""
    return request.startswith(f"{_hash(key)}:")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
