"""What is wrong in a query, in a path, in a header, and in what is to be previewed."""

import base64
import json
from typing import Any

from tests.web.malformed import LONG, RECURRENCE, Bad
from tests.web.support import daily, valid


def continuation(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


def queries(
    name: str, *values: str, route: str = "list", job: str | None = None, seq: str | None = None
) -> list[Bad]:
    return [
        Bad(f"{route}-{name}-{value[:40]!r}", name, route=route, job=job, seq=seq, query={name: value})
        for value in values
    ]


OF_JOBS = ("get", "delete", "suspend", "resume", "occurrences", "runs", "run_now")
OF_RUNS = ("run", "cancel", "resubmit")

QUERIES = [
    *queries("pageSize", "0", "-1", "1001", "1.5", "ten", "", "1e3", " 5", "٣", "9" * 5000),
    *queries("state", "enabled", "Deleting", "Disabled", ""),
    *queries("tag", "team", ""),
    *queries("prefix", "a b", "a/b", "a'b", "a:", "ä", "\0", "a" * 129),
    *queries(
        "continuation",
        "",
        "nonsense",
        "ä",
        "AAAA",
        continuation("ab"),
        continuation({"a": 0, "b": ""}),
        continuation([0]),
        continuation([0, "", ""]),
        continuation([1, ""]),
        continuation([-1, ""]),
        continuation([True, ""]),
        continuation(["0", ""]),
        continuation([0, 5]),
        continuation([0, None]),
        continuation([0, ["job:a"]]),
        continuation([0, {"a": "b"}]),
        continuation([0, "a"]),
        continuation([0, "timer:a"]),
        continuation([0, "job:"]),
        continuation([0, "job:a' or PartitionKey ne '"]),
        base64.urlsafe_b64encode(b"[" * 50_000).decode(),
        base64.urlsafe_b64encode(b"[" + b"9" * 5000 + b', ""]').decode(),
    ),
    *queries("pagesize", "5"),
    *queries("unknown", "x"),
    *queries("x" * 70, "x"),
    *queries("prefix", "a", route="get", job="a"),
    *queries("force", "true", route="delete", job="a"),
    *[bad for route in OF_JOBS for bad in queries("x", "1", route=route, job="a")],
    *[bad for route in OF_RUNS for bad in queries("x", "1", route=route, job="a", seq="1")],
    *queries("count", "5", route="runs", job="a"),
    *queries(
        "count", "0", "-1", "1001", "1.5", "ten", "", "1e3", " 5", "٣", "9" * 5000, route="occurrences", job="a"
    ),
    *[
        Bad(f"put-resetState-{value!r}", "resetState", valid(), route="put", job="a", query={"resetState": value})
        for value in ("", "True", "FALSE", "1", "yes", "true ", "null")
    ],
    Bad("create-resetState", "resetState", valid(), query={"resetState": "true"}),
    Bad("suspend-resetState", "resetState", route="suspend", job="a", query={"resetState": "true"}),
    Bad("create-unknown-query", "x", valid(), query={"x": "1"}),
    Bad("put-unknown-query", "x", valid(), route="put", job="a", query={"x": "1"}),
    Bad("preview-unknown-query", "count", {"trigger": {"type": "Once"}}, route="preview", query={"count": "1"}),
]

PATHS = [
    Bad(
        f"{route}-id-{name}",
        "id",
        valid() if route == "put" else None,
        route=route,
        job=job,
        seq="1" if route in OF_RUNS else None,
    )
    for route in ("put", *OF_JOBS, *OF_RUNS)
    for name, job in {
        "two-dots": "..",
        "space": "a b",
        "slash": "a%2Fb",
        "colon": "a:b",
        "quote": "a' or 'a' eq 'a",
        "not-ascii": "ä",
        "line-end": "a\n",
        "too-long": "a" * 129,
    }.items()
]
PATHS += [
    Bad(f"{route}-seq-{seq!r}", "seq", route=route, job="a", seq=seq)
    for route in OF_RUNS
    for seq in ("", "x", "-1", "+1", "1.5", "1e3", " 1", "0x1", "٣", "²", "1\n", "1" * 11, "9" * 5000)
]
PATHS += [
    Bad("put-id-differs", "id", valid(id="b"), route="put", job="a"),
    Bad("put-id-differs-in-case", "id", valid(id="A"), route="put", job="a"),
    *[
        Bad(
            f"put-if-none-match-{value!r}",
            "If-None-Match",
            valid(),
            route="put",
            job="a",
            headers={"If-None-Match": value},
        )
        for value in ('"x"', "", "**", '*, "x"', "W/*")
    ],
]


def previews(field: str, *values: Any) -> list[Bad]:
    return [
        Bad(
            f"preview-{field}-{json.dumps(value)[:40]}",
            field,
            {"trigger": {"type": "Once"}, field: value},
            route="preview",
        )
        for value in values
    ]


PREVIEWS = [
    Bad("preview-empty", "body", raw=b"", route="preview"),
    Bad("preview-list", "body", [], route="preview"),
    Bad("preview-null", "body", raw=b"null", route="preview"),
    Bad("preview-too-large", "body", raw=b" " * (256 * 1024 + 1), route="preview", status=413),
    Bad("preview-form", "Content-Type", {}, route="preview", headers={"content-type": "text/plain"}, status=415),
    Bad("preview-no-trigger", "trigger", {}, route="preview"),
    *previews("trigger", None, "Once", [], 5),
    *previews("action", {}),
    *previews("count", 0, -1, 1001, 1.0, "5", True, [], 10**900),
    *previews("parameters", [], "x"),
    *previews(
        "createdAt",
        5,
        "",
        "now",
        "2026-09-08",
        "2026-09-08T12:00:00",
        "2026-09-08T12:00:00+00:00",
        "2026-09-08T12:00:00z",
        "20260908T120000Z",
        "2026-W37-2T12:00:00Z",
        "2026-02-30T12:00:00Z",
        "1969-12-31T23:59:59Z",
        "3000-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "٢٠٢٦-09-08T12:00:00Z",
        LONG,
    ),
    Bad("preview-trigger-type", "trigger.type", {"trigger": {"type": "x"}}, route="preview"),
    Bad("preview-trigger-unknown", "trigger.x", {"trigger": {"type": "Once", "x": 1}}, route="preview"),
    Bad("preview-run-at", "trigger.runAt", {"trigger": {"type": "Once", "runAt": "x"}}, route="preview"),
    Bad(
        "preview-interval", f"{RECURRENCE}.interval", {"trigger": daily(interval=501)["trigger"]}, route="preview"
    ),
    Bad(
        "preview-parameter-unknown",
        "parameters",
        {"trigger": daily(interval="@parameters('n')")["trigger"]},
        route="preview",
    ),
]
