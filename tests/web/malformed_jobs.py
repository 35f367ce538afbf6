"""Jobs with unknown properties, with wrong ones of their own, and with wrong triggers."""

from tests.web.malformed import INPUTS, RECURRENCE, SCHEDULE, Bad, at_path
from tests.web.support import left_out, put_in, valid

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
