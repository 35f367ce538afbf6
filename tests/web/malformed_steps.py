"""Jobs of several actions that are wrong in their order, and actions that wait or send messages wrongly."""

from typing import Any

from tests.web.malformed import INPUTS, LONG, Bad, at_path
from tests.web.support import put_in, valid

CALL = valid()["action"]
MINUTE = {"count": 1, "unit": "Minute"}
PAUSE = {"type": "Wait", "inputs": {"interval": MINUTE}}
SEND = {"type": "Queue", "inputs": {"queue": "orders", "message": "go"}}
DONE = ["Succeeded"]


def steps(name: str, field: str, among: Any = False, **actions: Any) -> Bad:
    return Bad(f"steps-{name}", f"actions.{field}", valid(action=None, actions=actions), among=among)


def after(*names: str, **statuses: Any) -> dict[str, Any]:
    """A call that runs after these."""
    return {**CALL, "runAfter": dict.fromkeys(names, DONE) | statuses}


ORDER = [
    steps("unknown-name", "B.runAfter.C", A=CALL, B=after("C")),
    steps("unknown-name-beside-a-known-one", "B.runAfter.C", A=CALL, B=after("A", "C")),
    steps("name-in-other-case", "B.runAfter.a", A=CALL, B=after("a")),
    steps("name-empty", 'B.runAfter.""', A=CALL, B=after("")),
    steps("name-too-long", "B.runAfter." + "x" * 80 + "…", A=CALL, B=after(LONG)),
    steps("itself", "A.runAfter", A=after("A")),
    steps("two-in-a-circle", "A.runAfter", A=after("B"), B=after("A")),
    steps("three-in-a-circle", "B.runAfter", A=CALL, B=after("A", "D"), C=after("B"), D=after("C"), E=after("D")),
    steps("another-circle", "C.runAfter", True, A=after("B"), B=after("A"), C=after("D"), D=after("C")),
    steps("circle-of-a-hundred", "A0.runAfter", **{f"A{n}": after(f"A{(n + 1) % 100}") for n in range(100)}),
    steps("statuses-empty", "B.runAfter.A", A=CALL, B=after(A=[])),
    steps("statuses-text", "B.runAfter.A", A=CALL, B=after(A="Succeeded")),
    steps("statuses-null", "B.runAfter.A", A=CALL, B=after(A=None)),
    steps("statuses-object", "B.runAfter.A", A=CALL, B=after(A={"Succeeded": True})),
    steps("status-unknown", "B.runAfter.A.0", A=CALL, B=after(A=["Cancelled"])),
    steps("status-in-lower-case", "B.runAfter.A.0", A=CALL, B=after(A=["succeeded"])),
    steps("status-number", "B.runAfter.A.0", A=CALL, B=after(A=[1])),
    steps("status-wrong-beside-a-right-one", "B.runAfter.A.1", A=CALL, B=after(A=["Failed", "Missed"])),
    steps("after-a-list", "B.runAfter", A=CALL, B=CALL | {"runAfter": ["A"]}),
    steps("after-a-text", "B.runAfter", A=CALL, B=CALL | {"runAfter": "A"}),
    steps("after-too-many", "B.runAfter", True, B=after(*(f"A{n}" for n in range(101)))),
    Bad("actions-too-many", "actions", valid(action=None, actions={f"A{n}": CALL for n in range(101)})),
    Bad("action-after-another", "action.runAfter.Call", put_in("action.runAfter", {"Call": DONE})),
    Bad("action-after-itself", "action.runAfter", put_in("action.runAfter", {"Action": DONE})),
    steps("second-type-unknown", "B.type", A=CALL, B={"type": "If", "expression": {}}),
    steps("fault-in-the-second", "B.inputs.uri", A=CALL, B=CALL | {"inputs": {"method": "GET", "uri": "x"}}),
    steps("wait-with-an-option", "P.operationOptions", P=PAUSE | {"operationOptions": "DisableAsyncPattern"}),
    steps("queue-with-an-option", "Q.operationOptions", Q=SEND | {"operationOptions": "DisableAsyncPattern"}),
    steps("wait-with-a-uri", "P.inputs.uri", P=PAUSE | {"inputs": {"interval": MINUTE, "uri": "https://x"}}),
    steps("wait-with-a-limit", "P.limit.timeout", P=PAUSE | {"limit": {"timeout": "PT6M"}}),
    *at_path(
        "action.operationOptions",
        unknown="Asynchronous",
        first_letter="disableAsyncPattern",
        of_triggers="SingleInstance",
        one_of_two="DisableAsyncPattern,Other",
        empty="",
        number=1,
        list=["DisableAsyncPattern"],
    ),
    *at_path("action.runtimeConfiguration", text="secure", list=[]),
    Bad(
        "configuration-of-triggers",
        "action.runtimeConfiguration.concurrency",
        put_in("action.runtimeConfiguration", {"concurrency": {"runs": 1}}),
    ),
    Bad(
        "secureData-text",
        "action.runtimeConfiguration.secureData",
        put_in("action.runtimeConfiguration", {"secureData": "inputs"}),
    ),
    *[
        Bad(
            f"secureData-{name}",
            f"action.runtimeConfiguration.secureData.{field}",
            put_in("action.runtimeConfiguration", {"secureData": secured}),
        )
        for name, field, secured in (
            ("empty", "properties", {}),
            ("none", "properties", {"properties": []}),
            ("text", "properties", {"properties": "inputs"}),
            ("unknown", "properties.0", {"properties": ["body"]}),
            ("three", "properties", {"properties": ["inputs", "outputs", "inputs"]}),
            ("more", "headers", {"properties": ["inputs"], "headers": ["x"]}),
        )
    ],
]


def waits(field: str, **inputs: Any) -> list[Bad]:
    """Inputs of a Wait that are wrong at a field of them, which may be themselves."""
    path = f"{INPUTS}.{field}" if field else INPUTS
    return [
        Bad(f"wait-{field}-{name.replace('_', '-')}", path, valid(action={"type": "Wait", "inputs": given}))
        for name, given in inputs.items()
    ]


def intervals(field: str, unit: Any = "Minute", **counts: Any) -> list[Bad]:
    return waits(field, **{name: {"interval": {"count": count, "unit": unit}} for name, count in counts.items()})


def units(**wrong: Any) -> list[Bad]:
    return waits("interval.unit", **{n: {"interval": {"count": 1, "unit": unit}} for n, unit in wrong.items()})


def moments(**timestamps: Any) -> list[Bad]:
    return waits("until.timestamp", **{n: {"until": {"timestamp": text}} for n, text in timestamps.items()})


WAIT = [
    *waits("", neither={}, null={"interval": None, "until": None}),
    *waits("", both={"interval": MINUTE, "until": {"timestamp": "2026-10-01T08:00:00Z"}}),
    *waits("delay", unknown={"interval": MINUTE, "delay": "PT1M"}),
    *waits("interval", text={"interval": "PT1M"}, list={"interval": [1, "Minute"]}, number={"interval": 60}),
    *waits("interval.seconds", unknown={"interval": MINUTE | {"seconds": 5}}),
    *waits("interval.count", absent={"interval": {"unit": "Minute"}}),
    *waits("interval.unit", absent={"interval": {"count": 1}}),
    *intervals("interval.count", negative=-1, float=1.5, text="5", boolean=True, null=None, list=[1]),
    *intervals("interval.count", unknown_parameter="@parameters('missing')", function="@add(1, 2)"),
    *units(plural="Minutes", year="Year", unknown="Fortnight", number=1, null=None, empty="", list=["Day"]),
    *units(unknown_parameter="@{parameters('missing')}"),
    *intervals("interval", "Second", beyond_90_days_in_seconds=90 * 86400 + 1, huge=10**900),
    *intervals("interval", "Day", beyond_90_days=91),
    *intervals("interval", "Week", beyond_90_days_in_weeks=13, huge_weeks=2**62),
    *intervals("interval", "Month", beyond_90_days_in_months=4, many_months=120_000, huge_months=10**900),
    *waits("until", text={"until": "2026-10-01T08:00:00Z"}, list={"until": []}),
    *waits("until.timestamp", absent={"until": {}}),
    *waits("until.timeZone", unknown={"until": {"timestamp": "2026-10-01T08:00:00Z", "timeZone": "UTC"}}),
    *moments(
        number=1_790_000_000,
        null=None,
        empty="",
        words="tomorrow",
        date_only="2026-10-01",
        without_Z="2026-10-01T08:00:00",
        offset="2026-10-01T08:00:00+02:00",
        zero_offset="2026-10-01T08:00:00+00:00",
        lower_case="2026-10-01t08:00:00z",
        no_such_day="2026-09-31T08:00:00Z",
        beyond_90_days="2026-12-07T12:00:01Z",
        end_of_time="9999-12-31T23:59:59.9Z",
        unknown_function="@addDays(trigger().scheduledTime, 1)",
        unknown_parameter="@parameters('missing')",
    ),
    steps(
        "wait-negative",
        "P.inputs.interval.count",
        A=CALL,
        P=PAUSE | {"inputs": {"interval": MINUTE | {"count": -1}}},
    ),
]


def queues(**names: Any) -> list[Bad]:
    return [
        Bad(
            f"queue-{each.replace('_', '-')}",
            f"{INPUTS}.queue",
            valid(action={"type": "Queue", "inputs": {"queue": name, "message": "go"}}),
        )
        for each, name in names.items()
    ]


def messages(field: str, **inputs: Any) -> list[Bad]:
    return [
        Bad(f"message-{name.replace('_', '-')}", f"{INPUTS}.{field}", valid(action=SEND | {"inputs": given}))
        for name, given in inputs.items()
    ]


# The bench that these are sent to lets jobs write to the queue `orders`; its own is `own-tickets`.
QUEUE = [
    *messages("queue", to_no_queue={"message": "go"}),
    *messages("message", absent={"queue": "orders"}, null={"queue": "orders", "message": None}),
    *messages("visibility", unknown={"queue": "orders", "message": "go", "visibility": "PT1M"}),
    *messages("message", function={"queue": "orders", "message": "@utcNow()"}),
    *messages("message.a.1", parameter={"queue": "orders", "message": {"a": [0, "@parameters('missing')"]}}),
    *queues(
        number=5, null=None, list=["orders"], empty="", capital="Orders", underscore="my_orders", dot="my.orders"
    ),
    *queues(
        short="ab", long="a" * 64, long_with_hyphens="a-" * 39 + "a", slash="orders/messages", line_end="orders\n"
    ),
    *queues(hyphen_first="-orders", hyphen_last="orders-", two_hyphens="my--orders", not_ascii="örders"),
    *queues(
        expression="@parameters('n')", not_allowed="invoices", own="own-tickets", own_poison="own-tickets-poison"
    ),
    *queues(poison_of_an_allowed_one="orders-poison", url="https://account.queue.core.windows.net/orders"),
    steps(
        "queue-not-allowed",
        "Q.inputs.queue",
        A=CALL,
        Q={"type": "Queue", "inputs": {"queue": "abc", "message": 1}},
    ),
]
