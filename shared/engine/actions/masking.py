"""Takes what must not be kept out of what a target answered."""

import html
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

MASK = "***"


class Mask:
    """Replaces each of some secrets by `***`, also where JSON, a URL or HTML writes it with escapes.

    A secret is the value of an Authorization header; the part behind its scheme is one by itself.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets for part in _parts(secret) for form in _written(part)}
        self._forms = sorted(forms, key=len, reverse=True)  # the longest first: it may hold another

    def __bool__(self) -> bool:
        """Whether there is anything to hide."""
        return bool(self._forms)

    def text(self, text: str) -> str:
        """The text without the secrets."""
        for form in self._forms:
            text = text.replace(form, MASK)
        return text

    def data(self, data: bytes) -> bytes:
        """The bytes without the secrets."""
        for form in self._forms:
            data = data.replace(form.encode(), MASK.encode())
        return data

    def value(self, value: Any) -> Any:
        """The JSON value, its strings and names without the secrets."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.value(each) for name, each in value.items()}
        return [self.value(each) for each in value] if isinstance(value, list) else value

    def cut_text(self, text: str) -> str:
        """The text without the secrets and without the beginning of one at its end, where it was cut."""
        text = self.text(text)
        return text[: len(text) - max((_begun(text, form) for form in self._forms), default=0)]

    def cut_data(self, data: bytes) -> bytes:
        """The bytes without the secrets and without the beginning of one at their end, where they were cut."""
        data = self.data(data)
        return data[: len(data) - max((_begun(data, form.encode()) for form in self._forms), default=0)]


def _parts(secret: str) -> set[str]:
    return {secret, secret.partition(" ")[2].strip() or secret} - {""}


def _written(text: str) -> set[str]:
    in_json = json.dumps(text)[1:-1]
    escaped = {in_json, in_json.replace("/", "\\/"), quote(text, safe=""), quote(text), html.escape(text)}
    return {text} | escaped


def _begun(text: Any, form: Any) -> int:
    """How many characters at the end of `text` may be the beginning of `form`."""
    longest = min(len(form) - 1, len(text))
    return next((length for length in range(longest, 0, -1) if text.endswith(form[:length])), 0)
