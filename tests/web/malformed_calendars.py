"""Jobs with wrong recurrences: at least one for each rule of validation."""

from typing import Any

from tests.web.malformed import LONG, RECURRENCE, SCHEDULE, Bad, at_path
from tests.web.support import daily, left_out, put_in


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
