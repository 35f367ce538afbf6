"""Routes in the Functions syntax: `jobs/{id}`, `{id:int}`, `{name?}`, `{name=default}`, `{*rest}`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

from devhost.errors import DevhostError
from devhost.functions import HttpFunction

PARAMETER = re.compile(
    r"\{(?P<star>\*{0,2})(?P<name>[A-Za-z_][\w-]*)(?::(?P<constraint>\w+))?"
    r"(?:=(?P<default>[^{}?]*))?(?P<optional>\?)?\}"
)
ANYTHING = "[^/]+"
CONSTRAINTS = {
    "int": r"[+-]?[0-9]{1,10}",
    "long": r"[+-]?[0-9]{1,19}",
    "decimal": r"[+-]?[0-9]+(?:\.[0-9]+)?",
    "double": r"[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?",
    "float": r"[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?",
    "bool": r"true|false",
    "guid": r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32}",
    "alpha": r"[a-z]+",
}
# Where several routes fit a path, the one with the lowest ranks wins, compared from left to right.
LITERAL, PARTIAL, PLAIN, REST = range(4)


@dataclass(frozen=True)
class Match:
    """A function whose route fits a path, and the values of the route's parameters."""

    function: HttpFunction
    parameters: dict[str, str]


class RouteTable:
    """The routes of an app, under the prefix from host.json."""

    def __init__(self, functions: Iterable[HttpFunction], prefix: str) -> None:
        """Raises DevhostError for a route that is not understood."""
        self._routes = [(_Route(f"{prefix}/{each.route}"), each) for each in functions]
        self._routes.sort(key=lambda entry: entry[0].ranks)

    def match(self, raw_path: str) -> list[Match]:
        """All functions whose route fits this path (percent-encoded, no query), the most specific first."""
        path = decode_path(raw_path)
        fits = ((function, route.match(path)) for route, function in self._routes)
        return [Match(function, parameters) for function, parameters in fits if parameters is not None]


def decode_path(raw_path: str) -> str:
    """Decode a path once, except for `%2F`: an encoded slash separates nothing and is handed on as it is."""
    return "".join(
        part if part.upper() == "%2F" else unquote(part) for part in re.split("(%2F)", raw_path, flags=re.I)
    )


class _Route:
    """One route as a regular expression, in which the parameters are groups, in the order of their names."""

    def __init__(self, template: str) -> None:
        segments = [segment for segment in template.split("/") if segment]
        parsed = [_segment(segment, template) for segment in segments]
        self.ranks = tuple(rank for rank, _ in parsed)
        self._pattern = re.compile("".join(pattern for _, pattern in parsed) + "/?", re.I | re.DOTALL)
        parameters = list(PARAMETER.finditer(template))
        self._names = [each["name"] for each in parameters]
        self._defaults = {each["name"]: each["default"] for each in parameters if each["default"] is not None}

    def match(self, path: str) -> dict[str, str] | None:
        """The values of the parameters, without those that are absent; None if the path does not fit."""
        found = self._pattern.fullmatch(path)
        if found is None:
            return None
        given = {name: value for name, value in zip(self._names, found.groups(), strict=True) if value}
        return self._defaults | given


def _segment(segment: str, template: str) -> tuple[int, str]:
    """The rank of a segment, and the regular expression for it with the slash before it."""
    literals = PARAMETER.sub("\0", segment).split("\0")
    constraints = [each["constraint"] for each in PARAMETER.finditer(segment)]
    if any(brace in literal for literal in literals for brace in "{}"):
        raise DevhostError(f"route {template}: {segment} is not understood")
    for constraint in constraints:
        if constraint and constraint not in CONSTRAINTS:
            raise DevhostError(f"route {template}: the constraint {constraint} is not known to this host")
    groups = [f"({CONSTRAINTS[each] if each else ANYTHING})" for each in constraints]
    if not groups:
        return LITERAL, "/" + re.escape(segment)
    whole = PARAMETER.fullmatch(segment)
    if whole is None:
        pieces = zip(literals, [*groups, ""], strict=True)
        return PARTIAL, "/" + "".join(re.escape(literal) + group for literal, group in pieces)
    if whole["star"]:
        return REST, "(?:/(.*))?"
    can_be_absent = whole["optional"] or whole["default"] is not None
    return PARTIAL if whole["constraint"] else PLAIN, f"(?:/{groups[0]})?" if can_be_absent else f"/{groups[0]}"
