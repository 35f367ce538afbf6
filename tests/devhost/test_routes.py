"""Route templates and the paths that fit them."""

from __future__ import annotations

import pytest

from devhost.errors import DevhostError
from devhost.functions import HttpFunction
from devhost.routes import RouteTable, decode_path


def table(*routes: str, prefix: str = "api") -> RouteTable:
    return RouteTable([HttpFunction(route, lambda: None, "req", route) for route in routes], prefix)


def first(routes: RouteTable, path: str) -> tuple[str, dict[str, str]] | None:
    matches = routes.match(path)
    return (matches[0].function.route, matches[0].parameters) if matches else None


@pytest.mark.parametrize(
    ("route", "path", "parameters"),
    [
        ("jobs", "/api/jobs", {}),
        ("/jobs/", "/api/jobs/", {}),
        ("jobs", "/API/Jobs", {}),
        ("jobs", "/api/jobs/x", None),
        ("", "/api", {}),
        ("jobs", "/jobs", None),
        ("jobs/{id}", "/api/jobs/a.b-c~d", {"id": "a.b-c~d"}),
        ("jobs/{id}", "/api/jobs", None),
        ("jobs/{id}", "/api/jobs/a/b", None),
        ("jobs/{id}/runs/{seq:int}", "/api/jobs/a/runs/12", {"id": "a", "seq": "12"}),
        ("jobs/{id}/runs/{seq:int}", "/api/jobs/a/runs/12x", None),
        ("items/{id?}", "/api/items", {}),
        ("items/{id?}", "/api/items/5", {"id": "5"}),
        ("items/{id:int?}", "/api/items/five", None),
        ("items/{id=7}", "/api/items", {"id": "7"}),
        ("items/{id=7}", "/api/items/8", {"id": "8"}),
        ("files/{*rest}", "/api/files/a/b/c", {"rest": "a/b/c"}),
        ("files/{*rest}", "/api/files", {}),
        ("files/{name}.{kind}", "/api/files/a.b.json", {"name": "a.b", "kind": "json"}),
        ("flags/{on:bool}", "/api/flags/True", {"on": "True"}),
        ("by/{id:guid}", "/api/by/0f8fad5b-d9cb-469f-a165-70867728950e",
         {"id": "0f8fad5b-d9cb-469f-a165-70867728950e"}),
        ("by/{id:guid}", "/api/by/0f8fad5b", None),
        ("by/{word:alpha}", "/api/by/a1", None),
        ("at/{x:decimal}", "/api/at/-1.5", {"x": "-1.5"}),
    ],
)  # fmt: skip
def test_a_path_fits_a_route_or_not(route: str, path: str, parameters: dict[str, str] | None) -> None:
    assert first(table(route), path) == (None if parameters is None else (route, parameters))


def test_the_prefix_may_be_empty_or_long() -> None:
    assert first(table("jobs", prefix=""), "/jobs") == ("jobs", {})
    assert first(table("jobs", prefix="a/b"), "/a/b/jobs") == ("jobs", {})


@pytest.mark.parametrize("order", [1, -1])
def test_the_most_specific_route_wins_in_whatever_order_they_are_declared(order: int) -> None:
    routes = table(*["jobs/{*rest}", "jobs/{id}", "jobs/{id:int}", "jobs/preview"][::order])
    assert [first(routes, f"/api/jobs/{last}") for last in ("preview", "7", "x", "x/y")] == [
        ("jobs/preview", {}),
        ("jobs/{id:int}", {"id": "7"}),
        ("jobs/{id}", {"id": "x"}),
        ("jobs/{*rest}", {"rest": "x/y"}),
    ]


def test_parameters_are_decoded_once_and_an_encoded_slash_stays() -> None:
    assert first(table("jobs/{id}"), "/api/jobs/a%20b%2Fc%252Fd%C3%A9") == (
        "jobs/{id}",
        {"id": "a b%2Fc%2Fdé"},
    )
    assert decode_path("/a%2fb") == "/a%2fb"


@pytest.mark.parametrize("route", ["a/{", "a/{b", "a/b}", "a/{b:colour}", "a/{1b}"])
def test_a_route_that_is_not_understood_is_an_error(route: str) -> None:
    with pytest.raises(DevhostError, match="route api/a/"):
        table(route)
