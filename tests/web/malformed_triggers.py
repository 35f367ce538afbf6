"""Jobs with wrong windows, wrong bounds on their runs, wrong jitter, states and ends."""

from typing import Any

from tests.web.malformed import Bad, at_path
from tests.web.support import daily, put_in, valid

BOUND = "trigger.runtimeConfiguration.concurrency"


def bounds(field: str, **values: Any) -> list[Bad]:
    """A concurrency that is wrong at one of its properties."""
    return [
        Bad(
            f"concurrency-{field}-{name.replace('_', '-')}",
            f"{BOUND}.{field}",
            put_in("trigger.runtimeConfiguration", {"concurrency": {"runs": 1} | {field: value}}),
        )
        for name, value in values.items()
    ]


def windows(name: str, field: str, **trigger: Any) -> Bad:
    """A sliding window that is wrong at a field of its trigger."""
    given = {"type": "SlidingWindow", "recurrence": {"frequency": "Hour", "interval": 1}} | trigger
    return Bad(f"window-{name.replace('_', '-')}", f"trigger.{field}", valid(trigger=given))


def delays(**values: Any) -> list[Bad]:
    return [windows(f"delay-{name}", "inputs.delay", inputs={"delay": value}) for name, value in values.items()]


SINGLE = {"operationOptions": "SingleInstance", "runtimeConfiguration": {"concurrency": {"runs": 1}}}

TRIGGER = [
    *at_path("trigger.runtimeConfiguration", text="parallel", list=[], number=1),
    Bad("concurrency-text", BOUND, put_in("trigger.runtimeConfiguration", {"concurrency": "one"})),
    Bad("concurrency-number", BOUND, put_in("trigger.runtimeConfiguration", {"concurrency": 1})),
    Bad("concurrency-empty", f"{BOUND}.runs", put_in("trigger.runtimeConfiguration", {"concurrency": {}})),
    Bad(
        "configuration-unknown",
        "trigger.runtimeConfiguration.secureData",
        put_in("trigger.runtimeConfiguration", {"secureData": {"properties": ["inputs"]}}),
    ),
    *bounds("runs", zero=0, negative=-1, over=51, float=1.0, text="1", boolean=True, null=None, huge=10**900),
    *bounds("maximumWaitingRuns", negative=-1, over=101, float=1.5, text="3", boolean=False, list=[1]),
    *bounds("repetitions", unknown=1),
    *at_path(
        "trigger.operationOptions",
        unknown="Sequential",
        lower_case="singleinstance",
        of_actions="DisableAsyncPattern",
        one_of_two="SingleInstance,Other",
        empty="",
        number=1,
        list=["SingleInstance"],
    ),
    Bad("single-beside-bounds", "trigger.operationOptions", valid(trigger=valid()["trigger"] | SINGLE)),
    Bad(
        "single-beside-no-bounds",
        "trigger.operationOptions",
        valid(trigger=valid()["trigger"] | SINGLE | {"runtimeConfiguration": {}}),
    ),
    Bad(
        "single-beside-bounds-by-its-long-name",
        "triggers.T.operationOptions",
        valid(trigger=None, triggers={"T": valid()["trigger"] | SINGLE}),
    ),
    *at_path(
        "trigger.jitter",
        number=60,
        boolean=True,
        negative="-PT1M",
        over="PT24H1S",
        over_in_days="P1DT1S",
        months="P1M",
        fraction="PT0.5S",
        words="1 minute",
        empty="",
        expression="@parameters('n')",
    ),
    *at_path("trigger.inputs", text="PT1H", list=[], unknown_kind=5),
    Bad("recurrence-with-a-delay", "trigger.inputs.delay", put_in("trigger.inputs", {"delay": "PT1H"})),
    Bad("recurrence-with-an-input", "trigger.inputs.x", put_in("trigger.inputs", {"x": 1})),
    Bad("once-with-a-delay", "trigger.inputs.delay", valid(trigger={"type": "Once", "inputs": {"delay": "PT1H"}})),
    Bad("once-with-a-jitter", "trigger.jitter", valid(trigger={"type": "Once", "jitter": "P2D"})),
    *delays(
        number=60, boolean=True, list=["PT1H"], negative="-PT1H", months="P1M", years="P1Y", fraction="PT0.5S"
    ),
    *delays(words="1 hour", empty="", bare="PT", huge="PT" + "9" * 5000 + "H", expression="@parameters('n')"),
    windows("inputs-text", "inputs", inputs="PT1H"),
    windows("inputs-unknown", "inputs.offset", inputs={"delay": "PT1H", "offset": "PT1H"}),
    windows("max_lateness", "maxLateness", maxLateness="PT1H"),
    windows("max_lateness_wrong", "maxLateness", maxLateness=5),
    windows("run_at", "runAt", runAt="2026-10-01T08:00:00Z"),
    windows("without_recurrence", "recurrence", recurrence=None),
    windows("frequency", "recurrence.frequency", recurrence={"frequency": "Year", "interval": 1}),
    windows("start", "recurrence.startTime", recurrence={"frequency": "Day", "interval": 1, "startTime": "x"}),
    windows(
        "schedule",
        "recurrence.schedule",
        recurrence={"frequency": "Day", "interval": 1, "schedule": {"hours": [1]}},
    ),
    windows(
        "too_many_runs",
        "runtimeConfiguration.concurrency.runs",
        runtimeConfiguration={"concurrency": {"runs": 51}},
    ),
    Bad(
        "window-by-its-long-name",
        "triggers.T.inputs.delay",
        valid(trigger=None, triggers={"T": daily()["trigger"] | {"inputs": {"delay": "PT1H"}}}),
    ),
]

JOB_FIELDS = [
    *at_path("state", missed="Missed", suspended_in_lower_case="suspended", disabled_in_lower_case="disabled"),
    *at_path("state", empty="", paused="Paused", number=1, object={"value": "Enabled"}),
    *at_path(
        "deleteAfter",
        zero="PT0S",
        number=7,
        boolean=True,
        negative="-P7D",
        over="P3660DT1S",
        months="P1M",
        fraction="PT1.5S",
        words="a week",
        empty="",
        list=["P7D"],
        huge="P" + "9" * 5000 + "D",
    ),
    *at_path("serviceType", generic="Any", lower_case="timerjob", colon="a:b", empty_part="a//b", blank="a b"),
]
