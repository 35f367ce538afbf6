"""Requests that are wrong, each in one way: a 4xx that names the field as its caller wrote it, nothing stored."""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from shared.web.exchange import Response
from tests.harness import Bench, bench
from tests.web.support import ask, daily, fields, left_out, put_in, swept, valid

pytestmark = pytest.mark.asyncio(loop_scope="module")

RECURRENCE = "trigger.recurrence"
SCHEDULE = f"{RECURRENCE}.schedule"
INPUTS = "action.inputs"
DEFLATES_BADLY = base64.b64encode(b"".join(n.to_bytes(4) for n in range(0, 1 << 32, 99_991))).decode()
LONG = "x" * 5000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_bench(azurite: Any) -> AsyncIterator[Bench]:
    """One app for all requests of this module: none of them may leave anything in its table."""
    async with bench(azurite.connection_string, PARTITIONS="1") as made:
        yield made


@dataclass(frozen=True)
class Bad:
    """A wrong request and the field that its answer must name. `raw` is a body that is no JSON value."""

    name: str
    field: str
    body: Any = None
    raw: bytes | None = None
    headers: Mapping[str, str] | None = None
    query: Mapping[str, str] | None = None
    route: str = "create"
    job: str | None = None
    status: int = 400


def at_path(field: str, **values: Any) -> list[Bad]:
    """Values that are wrong at a path of the body, which the answer must name."""
    return [
        Bad(f"{field}-{name.replace('_', '-')}", field, put_in(field, value)) for name, value in values.items()
    ]


def bodies(**raw: bytes) -> list[Bad]:
    return [Bad(f"body-{name.replace('_', '-')}", "body", raw=value) for name, value in raw.items()]


def with_text(text: str) -> bytes:
    """A valid body but for what stands as a value of its parameters, written by hand."""
    return json.dumps(valid(parameters={"n": "HERE"})).replace('"HERE"', text).encode()


NOT_JSON = [
    *bodies(
        empty=b"",
        blank=b" \n\t ",
        text=b"hello",
        cut_off=json.dumps(valid()).encode()[:-1],
        followed_by_more=json.dumps(valid()).encode() + b"{}",
        trailing_comma=b'{"id": "a",}',
        single_quotes=b"{'id': 'a'}",
        names_without_quotes=b'{id: "a"}',
        comment=b"{} // no",
        raw_control_character=with_text('"a\nb"'),
        raw_nul=with_text('"a\0b"'),
        nul_behind=json.dumps(valid()).encode() + b"\0",
        leading_zero=with_text("01"),
        hexadecimal=with_text("0x1f"),
        plus_sign=with_text("+1"),
        NaN=with_text("NaN"),
        Infinity=with_text("Infinity"),
        minus_Infinity=with_text("-Infinity"),
        float_beyond_all=with_text("1e999"),
        float_below_all=with_text("-1e999"),
        integer_of_5000_digits=with_text("7" * 5000),
        negative_integer_of_5000_digits=with_text("-" + "7" * 5000),
        lone_surrogate=with_text(r'"\ud800"'),
        lone_low_surrogate_as_name=with_text(r'{"\udc00": 1}'),
        not_utf8=with_text('"é"').replace("é".encode(), b"\xe9"),
        overlong_utf8=with_text('"é"').replace("é".encode(), b"\xc0\xaf"),
        surrogate_in_utf8=with_text('"é"').replace("é".encode(), b"\xed\xa0\x80"),
        utf16=json.dumps(valid()).encode("utf-16"),
        byte_order_mark=b"\xef\xbb\xbf" + json.dumps(valid()).encode(),
        name_twice=b'{"id": "a", "id": "a"}',
        name_twice_deep_inside=with_text('{"a": [{"b": 1, "b": 2}]}'),
        name_twice_among_many=b"{" + b",".join(b'"%x":1' % n for n in range(25_000)) + b',"61a7":1}',
        nested_51_levels=with_text("[" * 50 + "]" * 50),
        nested_40000_lists=b"[" * 40_000 + b"]" * 40_000,
        nested_40000_objects=b'{"a":' * 40_000 + b"1" + b"}" * 40_000,
        brackets_never_closed=b"[" * 100_000,
    ),
    *[
        Bad(f"body-{name}", "body", raw=raw)
        for name, raw in {
            "list": b"[]",
            "list-of-a-job": json.dumps([valid()]).encode(),
            "string": b'"job"',
            "number": b"5",
            "float": b"1.5",
            "true": b"true",
            "null": b"null",
        }.items()
    ],
    Bad("body-over-256-KiB", "body", valid(description="x" * (256 * 1024)), status=413),
    Bad("body-of-8-MiB", "body", raw=b" " * (8 * 1024 * 1024), status=413),
    Bad("body-over-60-KiB-compressed", "body", put_in(f"{INPUTS}.body", DEFLATES_BADLY), status=413),
    *[
        Bad(f"content-type-{name or 'empty'}", "Content-Type", valid(), headers={"content-type": name}, status=415)
        for name in (
            "",
            "text/plain",
            "text/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/xml",
            "application/jsonp",
            "application/json, text/plain",
            "nonsense",
            "\udc80",
            LONG,
        )
    ],
]

UNKNOWN = [
    Bad(f"unknown-{path}", path, put_in(path, {"a": 1}))
    for path in (
        "unknown",
        "Trigger",
        "schedule",
        "trigger.unknown",
        "trigger.startTime",
        f"{RECURRENCE}.unknown",
        f"{RECURRENCE}.timezone",
        f"{RECURRENCE}.weekDays",
        f"{SCHEDULE}.unknown",
        f"{SCHEDULE}.weekdays",
        "action.unknown",
        "action.uri",
        f"{INPUTS}.unknown",
        f"{INPUTS}.url",
        f"{INPUTS}.retryPolicy.unknown",
        "action.limit.unknown",
    )
]
UNKNOWN += [Bad("unknown-null", "unknown", put_in("unknown", None))]
UNKNOWN += [Bad("unknown-null-inside", f"{INPUTS}.unknown", put_in(f"{INPUTS}.unknown", None))]
UNKNOWN += [Bad("unknown-empty-name", 'trigger.""', put_in("trigger.", 1))]

NOT_YET = [
    *at_path("trigger.type", sliding_window="SlidingWindow"),
    *at_path("trigger.inputs", delay={"delay": "PT1H"}),
    *at_path("trigger.jitter", given="PT1M"),
    *at_path("trigger.runtimeConfiguration", given={"concurrency": {"runs": 1}}),
    *at_path("trigger.operationOptions", given="SingleInstance"),
    *at_path("state", suspended="Suspended", disabled="Disabled"),
    *at_path("deleteAfter", given="P7D"),
    *at_path("serviceType", other="OtherService", lower_case="timerjob"),
    *at_path("action.type", wait="Wait", queue="Queue"),
    *at_path("action.runAfter", given={}),
    *at_path("action.operationOptions", given="DisableAsyncPattern"),
    *at_path(f"{INPUTS}.authentication", given={"type": "ManagedServiceIdentity", "audience": "x"}),
    *at_path(f"{INPUTS}.retryPolicy.type", exponential="exponential", fixed="fixed", capital="None"),
    *at_path(f"{INPUTS}.uri", expression="@parameters('uri')"),
    *at_path(f"{INPUTS}.method", expression="@parameters('method')"),
    *at_path(f"{INPUTS}.headers.x-a", expression="@{parameters('n')}"),
    *at_path(f"{INPUTS}.queries.q", expression="@trigger().scheduledTime"),
    Bad("expression-as-body", f"{INPUTS}.body", put_in(f"{INPUTS}.body", "@trigger()")),
    Bad("expression-deep-in-body", f"{INPUTS}.body.a.1.b", put_in(f"{INPUTS}.body", {"a": [0, {"b": "x@{1}"}]})),
]

JOB = [
    *at_path(
        "id",
        empty="",
        dot=".",
        two_dots="..",
        too_long="a" * 129,
        slash="a/b",
        backslash="a\\b",
        space="a b",
        colon="a:b",
        semicolon="a;b",
        quote="a'b",
        percent="a%20b",
        not_ascii="ä",
        other_digits="٣",
        line_end="a\n",
        nul="a\0b",
        number=5,
        boolean=True,
        list=["a"],
        object={"a": "b"},
    ),
    *at_path("description", number=5, boolean=False, list=["a"], too_long="x" * 4097),
    *at_path("tags", text="a:b", list=["a"], too_many={str(n): "x" for n in range(51)}),
    *at_path("tags.team", number=5, null=None, object={"a": "b"}, too_long="x" * 257),
    Bad("tags-name-too-long", "tags." + "n" * 80 + "…", valid(tags={"n" * 129: "x"})),
    Bad("tags-name-empty", 'tags.""', valid(tags={"": "x"})),
    *at_path("state", unknown="Running", lower_case="enabled", deleting="Deleting", boolean=True, list=[]),
    *at_path("parameters", list=[1], text="n", number=1),
    *at_path("serviceType", number=1, empty=""),
    *at_path(
        "historyLimit",
        zero=0,
        negative=-1,
        too_many=1001,
        float=10.0,
        text="10",
        boolean=True,
        huge=10**900,
        list=[10],
    ),
    Bad("trigger-absent", "trigger", left_out("trigger")),
    *at_path("trigger", null=None, text="Recurrence", list=[], number=1),
    Bad("trigger-empty", "trigger.type", put_in("trigger", {})),
    Bad("trigger-type-absent", "trigger.type", left_out("trigger.type")),
    *at_path("trigger.type", unknown="Timer", lower_case="recurrence", number=1, null=None, list=["Once"]),
    Bad("triggers-empty", "triggers", valid(trigger=None, triggers={})),
    Bad("triggers-two", "triggers", valid(trigger=None, triggers={"a": {"type": "Once"}, "b": {"type": "Once"}})),
    Bad("triggers-list", "triggers", valid(trigger=None, triggers=[{"type": "Once"}])),
    Bad("triggers-text", "triggers", valid(trigger=None, triggers="Once")),
    Bad("triggers-beside-trigger", "triggers", valid(triggers={"a": {"type": "Once"}})),
    Bad("triggers-member-null", "triggers.a", valid(trigger=None, triggers={"a": None})),
    Bad("triggers-member-text", "triggers.a", valid(trigger=None, triggers={"a": "Once"})),
    Bad("triggers-type", "triggers.Every_day.type", valid(trigger=None, triggers={"Every_day": {"type": "x"}})),
    Bad("triggers-unknown", "triggers.a.x", valid(trigger=None, triggers={"a": {"type": "Once", "x": 1}})),
    Bad(
        "triggers-interval",
        "triggers.a.recurrence.interval",
        valid(
            trigger=None, triggers={"a": {"type": "Recurrence", "recurrence": {"frequency": "Day", "interval": 0}}}
        ),
    ),
    *at_path("trigger.skipInitialRun", text="true", number=1, list=[]),
    *at_path(
        "trigger.maxLateness",
        number=3600,
        negative="-PT1H",
        fraction="PT0.5S",
        months="P1M",
        years="P1Y",
        clock="01:00:00",
        empty="",
        bare="P",
        lower_case="pt1h",
        too_long="P3661D",
        huge="PT" + "9" * 5000 + "S",
    ),
    *at_path("trigger.runAt", with_recurrence="2026-10-01T08:00:00Z"),
]

ONCE = [
    Bad(f"runAt-{name}", "trigger.runAt", valid(trigger={"type": "Once", "runAt": value}))
    for name, value in {
        "number": 1_790_000_000,
        "boolean": True,
        "list": ["2026-10-01T08:00:00Z"],
        "empty": "",
        "words": "tomorrow",
        "without-Z": "2026-10-01T08:00:00",
        "offset": "2026-10-01T08:00:00+02:00",
        "zero-offset": "2026-10-01T08:00:00+00:00",
        "date-only": "2026-10-01",
        "lower-case": "2026-10-01t08:00:00z",
        "space": "2026-10-01 08:00:00Z",
        "hour-24": "2026-10-01T24:00:00Z",
        "second-60": "2026-10-01T08:00:60Z",
        "no-such-day": "2026-02-30T08:00:00Z",
        "before-1970": "1969-12-31T23:59:59Z",
        "over-49-years": "2075-09-08T12:00:01Z",
        "eight-digits": "2026-10-01T08:00:00.12345678Z",
        "long": "2026-10-01T08:00:00." + "1" * 5000 + "Z",
    }.items()
]
ONCE += [
    Bad(f"once-with-{name}", f"trigger.{name}", valid(trigger={"type": "Once", name: value}))
    for name, value in {"maxLateness": "PT1H", "recurrence": {"frequency": "Day", "interval": 1}}.items()
]

ACTION = [
    Bad("action-absent", "actions", left_out("action")),
    *at_path("action", text="Http", list=[], number=1),
    Bad("action-null", "actions", put_in("action", None)),
    Bad("action-empty", "action.type", put_in("action", {})),
    Bad("action-type-absent", "action.type", left_out("action.type")),
    *at_path("action.type", lower_case="http", null=None, number=1, list=["Http"]),
    Bad("actions-empty", "actions", valid(action=None, actions={})),
    Bad("actions-two", "actions", valid(action=None, actions={n: valid()["action"] for n in ("a", "b")})),
    Bad("actions-list", "actions", valid(action=None, actions=[valid()["action"]])),
    Bad("actions-text", "actions", valid(action=None, actions="Http")),
    Bad("actions-beside-action", "actions", valid(actions={"a": valid()["action"]})),
    Bad("actions-member-text", "actions.Call", valid(action=None, actions={"Call": "Http"})),
    Bad("actions-member-null", "actions.Call", valid(action=None, actions={"Call": None})),
    Bad(
        "actions-member-named-Action",
        "actions.Action.inputs",
        valid(action=None, actions={"Action": {"type": "Http"}}),
    ),
    *[
        Bad(f"actions-name-{name}", f"actions.{path}", valid(action=None, actions={given: valid()["action"]}))
        for name, given, path in (
            ("empty", "", '""'),
            ("space", "a b", "a b"),
            ("slash", "a/b", "a/b"),
            ("not-ascii", "ä", "ä"),
            ("line-end", "a\n", "a\n"),
            ("too-long", "a" * 81, "a" * 80 + "…"),
        )
    ],
    Bad("inputs-absent", INPUTS, left_out(INPUTS)),
    *at_path(INPUTS, null=None, text="GET", list=[]),
    Bad("method-absent", f"{INPUTS}.method", left_out(f"{INPUTS}.method")),
    *at_path(
        f"{INPUTS}.method", lower_case="get", unknown="BREW", connect="CONNECT", line="GET\n", number=1, null=None
    ),
    Bad("uri-absent", f"{INPUTS}.uri", left_out(f"{INPUTS}.uri")),
    *at_path(
        f"{INPUTS}.uri",
        null=None,
        number=1,
        object={"host": "example.org"},
        empty="",
        relative="/report",
        without_scheme="example.org/report",
        without_host="https:///report",
        only_a_port="https://:443/",
        without_slashes="https:example.org",
        ftp="ftp://example.org/",
        file="file:///etc/passwd",
        javascript="javascript:alert(1)",
        user="https://user@example.org/",
        password="https://user:secret@example.org/",
        no_name="https://:@example.org/",
        space="https://example.org/a b",
        space_before=" https://example.org/",
        tab="https://example.org/\t",
        line_end="https://example.org/\r\nHost: evil",
        nul="https://example.org/\0",
        delete="https://example.org/\x7f",
        not_ascii_path="https://example.org/ü",
        not_ascii_host="https://exämple.org/",
        port_zero="https://example.org:0/",
        port_too_high="https://example.org:65536/",
        port_negative="https://example.org:-1/",
        port_words="https://example.org:http/",
        ipv6_not_closed="https://[::1/",
        ipv6_bad="https://[::zz]/",
        ipv6_with_zone="https://[fe80::1%25eth0]/",
        host_angle="https://exa<mple/",
        host_backslash="https://example.org\\@evil/",
        host_percent="https://%65xample.org/",
        host_two_dots="https://example..org/",
        host_dot="https://./",
        host_label_too_long=f"https://{'a' * 64}.org/",
        host_too_long=f"https://{'a.' * 127}org/",
        too_long=f"https://example.org/{'a' * 8192}",
    ),
    *at_path(
        f"{INPUTS}.headers",
        list=[["x-a", "b"]],
        text="x-a: b",
        twice_in_other_case={"X-A": "b", "x-a": "c"},
        too_many={f"x-{n}": "b" for n in range(51)},
    ),
    *at_path(f"{INPUTS}.headers.x-a", number=1, null=None, boolean=True, list=["a"], not_ascii="ü"),
    *at_path(f"{INPUTS}.headers.x-a", line="a\nb", crlf="a\r\nx-b: c", nul="a\0", delete="a\x7f"),
    *[
        Bad(f"header-{path!r}", f"{INPUTS}.headers.{path}", put_in(f"{INPUTS}.headers", {name: "b"}))
        for name, path in (
            *[
                (name, name)
                for name in (
                    "Host",
                    "content-length",
                    "Transfer-Encoding",
                    "Connection",
                    "Expect",
                    "TE",
                    "Upgrade",
                    "Proxy-Authorization",
                    "traceparent",
                    "Idempotency-Key",
                    "x-timerjobs-run",
                    "X-TimerJobs-Anything",
                    "a b",
                    "a:",
                    "a\r\nb",
                    "ä",
                    "(a)",
                )
            ],
            ("", '""'),
            ("a" * 129, "a" * 80 + "…"),
        )
    ],
    *at_path(f"{INPUTS}.queries", list=[1], text="a=b", too_many={str(n): n for n in range(101)}),
    *at_path(f"{INPUTS}.queries.q", null=None, list=[1], object={"a": 1}),
    *at_path(f"{INPUTS}.retryPolicy", text="none", list=[]),
    Bad("retryPolicy-empty", f"{INPUTS}.retryPolicy.type", put_in(f"{INPUTS}.retryPolicy", {})),
    *at_path("action.limit", text="PT1M", number=60),
    Bad("limit-empty", "action.limit.timeout", put_in("action.limit", {})),
    *at_path(
        "action.limit.timeout",
        number=60,
        zero="PT0S",
        negative="-PT1S",
        negative_part="PT-1S",
        too_long="PT5M1S",
        far_too_long="P1D",
        huge="P" + "9" * 30 + "D",
        fraction="PT1.5S",
        months="P1M",
        words="2 minutes",
        clock="00:02:00",
        empty="",
        blank=" PT2M",
        line_end="PT2M\n",
    ),
]


def rule(label: str, field: str, **recurrence: Any) -> Bad:
    """A daily recurrence that breaks a rule of validation; the field without its beginning."""
    return Bad(f"{label}-{field}", f"{RECURRENCE}.{field}", daily(**recurrence))


def rules(label: str, field: str, name: str, frequency: str, **values: Any) -> list[Bad]:
    """Values of one property of a schedule that break a rule."""
    return [
        Bad(
            f"{label}-{name}-{each.replace('_', '-')}",
            f"{RECURRENCE}.{field}",
            daily(frequency=frequency, schedule={name: value}),
        )
        for each, value in values.items()
    ]


FROM_FEBRUARY = {"frequency": "Month", "interval": 12, "startTime": "2027-02-01T00:00:00Z"}

CALENDAR = [
    Bad("V1-recurrence-absent", RECURRENCE, left_out(RECURRENCE)),
    *at_path(RECURRENCE, null=None, text="daily", list=[], expression="@parameters('n')"),
    *at_path(SCHEDULE, text="noon", list=[], number=1),
    Bad("V2-frequency-absent", f"{RECURRENCE}.frequency", left_out(f"{RECURRENCE}.frequency")),
    *at_path(
        f"{RECURRENCE}.frequency", year="Year", unknown="Fortnight", number=1, null=None, list=["Day"], empty=""
    ),
    Bad("V3-interval-absent", f"{RECURRENCE}.interval", left_out(f"{RECURRENCE}.interval")),
    *[
        Bad(
            f"V3-interval-{frequency}-{value}",
            f"{RECURRENCE}.interval",
            daily(frequency=frequency, interval=value),
        )
        for frequency, most in {
            "Second": 9_999_999,
            "Minute": 72_000,
            "Hour": 12_000,
            "Day": 500,
            "Week": 71,
            "Month": 16,
        }.items()
        for value in (0, most + 1)
    ],
    *at_path(
        f"{RECURRENCE}.interval",
        negative=-1,
        float=1.5,
        whole_float=1.0,
        boolean=True,
        null=None,
        words="one",
        float_text="1.0",
        empty="",
        list=[1],
        huge=10**900,
        huge_text="1" + "0" * 900,
        other_digits="٣",
    ),
    *rules(
        "V5",
        "schedule.hours",
        "hours",
        "Day",
        float=1.0,
        boolean=True,
        text="noon",
        range="0-23",
        null_inside=[None],
    ),
    *rules("V5", "schedule.hours", "hours", "Day", over=24, under=-1, one_of_them=[1, 24], object={"a": 1}),
    *rules("V5", "schedule.minutes", "minutes", "Day", over=60, under=-1, one_of_them=[0, "60"]),
    *[rule("V5", "schedule.hours", frequency=f, schedule={"hours": [1]}) for f in ("Second", "Minute", "Hour")],
    rule("V5", "schedule.minutes", frequency="Hour", schedule={"minutes": [1]}),
    *rules("V6", "schedule.weekDays", "weekDays", "Week", short="Mon", number=1, unknown=["Monday", "Noday"]),
    *[rule("V6", "schedule.weekDays", frequency=f, schedule={"weekDays": ["Monday"]}) for f in ("Day", "Month")],
    *rules(
        "V7", "schedule.monthDays", "monthDays", "Month", zero=0, over=32, under=-32, words="last", float=[1.5]
    ),
    rule("V7", "schedule.monthDays", frequency="Week", schedule={"monthDays": [1]}),
    *rules(
        "V8",
        "schedule.monthlyOccurrences",
        "monthlyOccurrences",
        "Month",
        no_list={"day": "Monday"},
        no_day=[{"occurrence": 1}],
        zero=[{"day": "Monday", "occurrence": 0}],
        sixth=[{"day": "Monday", "occurrence": 6}],
        unknown_day=[{"day": "Noday"}],
        unknown_name=[{"day": "Monday", "week": 1}],
        words=["Monday"],
    ),
    rule(
        "V8", "schedule.monthlyOccurrences", frequency="Week", schedule={"monthlyOccurrences": [{"day": "Monday"}]}
    ),
    rule(
        "V9",
        "schedule.monthlyOccurrences",
        frequency="Month",
        schedule={"monthDays": [1], "monthlyOccurrences": [{"day": "Monday"}]},
    ),
    *[
        Bad(
            f"V10-{name}-empty",
            f"{SCHEDULE}.{name}",
            daily(frequency=frequency, schedule={name: []}),
        )
        for name, frequency in {
            "hours": "Day",
            "minutes": "Day",
            "weekDays": "Week",
            "monthDays": "Month",
            "monthlyOccurrences": "Month",
        }.items()
    ],
    rule("V12", "schedule", **FROM_FEBRUARY, schedule={"monthDays": [30]}),
    *at_path(
        f"{RECURRENCE}.timeZone",
        unknown="Atlantis/Capital",
        abbreviation="PST",
        display_name="(UTC-08:00) Pacific Time (US & Canada)",
        offset="+02:00",
        path="../../etc/passwd",
        nul="Europe/Berlin\0",
        number=1,
        list=["UTC"],
        empty="",
        long=LONG,
    ),
    *at_path(
        f"{RECURRENCE}.startTime",
        number=1_790_000_000,
        words="now",
        offset="2026-10-01T08:00:00-04:00",
        date_only="2026-10-01",
        no_such_day="2026-02-30T08:00:00",
        long="T" * 5000,
    ),
    rule("Z3", "startTime", startTime="2026-10-01T08:00:00"),
    rule("Z6", "startTime", startTime="2075-09-08T12:00:01Z"),
    *at_path(f"{RECURRENCE}.endTime", number=1, words="never", before_start="2026-09-30T08:00:00"),
    rule("N1", "endTime", endTime="2026-09-08T11:59:59Z"),
    *at_path(f"{RECURRENCE}.count", zero=0, negative=-1, float=2.0, boolean=True, words="all", list=[1]),
    Bad("X1-parameter-unknown", "parameters", put_in(f"{RECURRENCE}.interval", "@parameters('missing')")),
    Bad("X1-function", f"{RECURRENCE}.interval", put_in(f"{RECURRENCE}.interval", "@add(1, 2)")),
    Bad("X1-in-a-list", f"{SCHEDULE}.hours", put_in(f"{SCHEDULE}.hours", [1, "@utcNow()"])),
    Bad(
        "X1-value-wrong", f"{RECURRENCE}.interval", daily(interval="@parameters('n')") | {"parameters": {"n": "x"}}
    ),
]


def continuation(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


def queries(name: str, *values: str, route: str = "list", job: str | None = None) -> list[Bad]:
    return [
        Bad(f"{route}-{name}-{value[:40]!r}", name, route=route, job=job, query={name: value}) for value in values
    ]


QUERIES = [
    *queries("pageSize", "0", "-1", "1001", "1.5", "ten", "", "1e3", " 5", "٣", "9" * 5000),
    *queries("state", "enabled", "Deleting", "Suspended", ""),
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
    *queries("count", "5", route="runs", job="a"),
    Bad("create-unknown-query", "x", valid(), query={"x": "1"}),
    Bad("put-unknown-query", "x", valid(), route="put", job="a", query={"x": "1"}),
    Bad("preview-unknown-query", "count", {"trigger": {"type": "Once"}}, route="preview", query={"count": "1"}),
]

PATHS = [
    Bad(f"{route}-id-{name}", "id", valid() if route == "put" else None, route=route, job=job)
    for route in ("put", "get", "delete", "runs")
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

IN_BODIES = [*NOT_JSON, *UNKNOWN, *NOT_YET, *JOB, *ONCE, *ACTION, *CALENDAR]
EVERY = [*IN_BODIES, *QUERIES, *PATHS, *PREVIEWS]


def named(bad: Bad) -> str:
    return bad.name.encode("ascii", "backslashreplace").decode()[:90]


@pytest.mark.parametrize("bad", EVERY, ids=named)
async def test_is_refused_naming_the_field(shared_bench: Bench, bad: Bad) -> None:
    await check_refused(shared_bench, bad)


@pytest.mark.parametrize("bad", [bad for bad in IN_BODIES if bad.field != "id"], ids=named)
async def test_is_refused_by_put_as_by_post(shared_bench: Bench, bad: Bad) -> None:
    created = await refusal(shared_bench, bad)
    put = await ask(shared_bench, "put", bad.body, raw=bad.raw, headers=bad.headers, job="a")
    left = await swept(shared_bench)
    assert (put.status, put.body) == (created.status, created.body)
    assert left == []


async def refusal(at: Bench, bad: Bad) -> Response:
    return await ask(at, bad.route, bad.body, raw=bad.raw, headers=bad.headers, query=bad.query, job=bad.job)


async def check_refused(at: Bench, bad: Bad) -> None:
    at.requests.clear()
    response = await refusal(at, bad)
    sent, left = list(at.requests), await swept(at)
    assert response.status == bad.status, response.body
    assert response.headers["Content-Type"] == "application/problem+json"
    assert set(response.body) == {"type", "title", "status", "detail", "errors"}
    assert response.body["status"] == bad.status
    assert bad.field in fields(response), response.body
    for error in response.body["errors"]:
        assert set(error) == {"field", "reason"}
        check_reads_well(error["reason"])
    assert response.body["detail"]
    assert len(response.content()) < 20_000
    assert all(request.startswith("GET ") for request in sent)
    assert left == []


def check_reads_well(reason: str) -> None:
    """No words of the libraries that did the checking."""
    assert reason
    for jargon in (
        "Input ",
        "input should",
        "Value error",
        "validation",
        "dictionary",
        "pattern",
        "instance of",
        "sys.",
    ):
        assert jargon not in reason


async def test_the_body_that_others_are_spoilt_from_is_right(shared_bench: Bench) -> None:
    made = await ask(shared_bench, "create", valid(id="right"))
    assert made.status == 201, made.body
    assert (await ask(shared_bench, "delete", job="right")).status == 204
    assert await swept(shared_bench) == []
