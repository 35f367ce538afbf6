"""How fast the calendar answers, beside the schedulers' libraries, in one run on this machine.

    .venv/bin/python -m tests.bench.calendar_bench

Every library answers the same question about the same weekly rule (Monday at 08:30 and 16:30 in Los
Angeles): what comes next after a given instant? Each call gets another instant, drawn from ten years, in
the form its library likes best. First all answers are compared. The best of five rounds counts.
"""

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from croniter import croniter
from cronsim import CronSim
from dateutil import rrule

from shared.recurrence import compile_trigger, resolve_zone

CREATED = datetime(2024, 1, 1, tzinfo=UTC)
LOS_ANGELES = resolve_zone("America/Los_Angeles")[1]
CRON = "30 8,16 * * 1"
WEEKLY = {
    "type": "Recurrence",
    "recurrence": {
        "frequency": "Week",
        "interval": 1,
        "startTime": "2024-01-01T00:00:00",
        "timeZone": "Pacific Standard Time",
        "schedule": {"weekDays": ["Monday"], "hours": [8, 16], "minutes": [30]},
    },
}
FAR_PAST = {
    "type": "Recurrence",
    "recurrence": {"frequency": "Second", "interval": 1, "startTime": "1970-01-01T00:00:00Z"},
}
MONTHLY = {
    "type": "Recurrence",
    "recurrence": {
        "frequency": "Month",
        "interval": 1,
        "timeZone": "Pacific Standard Time",
        "schedule": {"monthlyOccurrences": [{"day": "Tuesday", "occurrence": 2}], "hours": [18], "minutes": [0]},
    },
}
Next = Callable[[datetime], datetime | None]


def main() -> None:
    draw = random.Random(1)
    instants = [CREATED + timedelta(seconds=draw.randrange(10 * 31_556_952)) for _ in range(2000)]
    local = [instant.astimezone(LOS_ANGELES) for instant in instants]
    naive = [instant.replace(tzinfo=None) for instant in local]

    ours = compile_trigger(WEEKLY, CREATED).after
    expected = [ours(instant) for instant in instants]
    base = per_call(ours, instants)
    print("Next occurrence of a weekly rule, a new instant at each call:")
    print(f"  {'timerjobs':<24}{base * 1e6:>10.2f} us{1 / base:>12,.0f} /s")
    for name, answer, given in others(local, naive):
        agree(name, answer, given, expected)
        cost = per_call(answer, given)
        ratio = f"timerjobs is {cost / base:,.1f} times as fast"
        print(f"  {name:<24}{cost * 1e6:>10.2f} us{1 / cost:>12,.0f} /s   {ratio}")
    print("\nOther calls of timerjobs:")
    for name, cost in own_calls(instants):
        print(f"  {name:<58}{cost * 1e6:>10.2f} us")


def others(local: list[datetime], naive: list[datetime]) -> list[tuple[str, Next, list[datetime]]]:
    """Each library's way to answer, and the instants in the form it takes."""
    rule = rrule.rrule(
        rrule.WEEKLY,
        dtstart=CREATED.replace(tzinfo=None),
        byweekday=rrule.MO,
        byhour=(8, 16),
        byminute=30,
        bysecond=0,
    )
    contenders: list[tuple[str, Next, list[datetime]]] = [
        ("cronsim", lambda instant: next(CronSim(CRON, instant)), local),
        ("croniter", lambda instant: croniter(CRON, instant).get_next(datetime), local),
        ("dateutil rrule.after", lambda instant: rule.after(instant), naive[:200]),
    ]
    try:
        cron_trigger: Any = import_module("apscheduler.triggers.cron").CronTrigger
    except ImportError:
        print("(APScheduler is not installed: left out)")
        return contenders
    trigger = cron_trigger(day_of_week="mon", hour="8,16", minute=30, timezone=LOS_ANGELES)
    return [*contenders, ("APScheduler CronTrigger", lambda now: trigger.get_next_fire_time(None, now), local)]


def agree(name: str, answer: Next, given: list[datetime], expected: list[datetime | None]) -> None:
    for instant, right in zip(given, expected, strict=False):
        found = answer(instant)
        assert found is not None, (name, instant)
        aware = found if found.tzinfo else found.replace(tzinfo=LOS_ANGELES)
        assert aware == right, (name, instant, found, right)


def own_calls(instants: list[datetime]) -> list[tuple[str, float]]:
    every_second = compile_trigger(FAR_PAST, CREATED)
    weekly, monthly = compile_trigger(WEEKLY, CREATED), compile_trigger(MONTHLY, CREATED)
    ten_years = CREATED + timedelta(days=3652)
    calls: dict[str, Callable[[datetime], object]] = {
        "after: every second since 1970": every_second.after,
        "after: second Tuesday of the month": monthly.after,
        "last_until: weekly": weekly.last_until,
        "count_between: every second, ten years": lambda _: every_second.count_between(CREATED, ten_years),
        "count_between: weekly, ten years": lambda _: weekly.count_between(CREATED, ten_years),
        "count_between: second Tuesdays, ten years": lambda _: monthly.count_between(CREATED, ten_years),
        "compile_trigger: every second since 1970": lambda now: compile_trigger(FAR_PAST, now),
        "compile_trigger: weekly": lambda now: compile_trigger(WEEKLY, now),
        "compile_trigger: second Tuesday of the month": lambda now: compile_trigger(MONTHLY, now),
    }
    return [(name, per_call(call, instants[:500])) for name, call in calls.items()]


def per_call(call: Callable[[datetime], object], instants: list[datetime]) -> float:
    """Seconds a call, the best of five rounds."""
    rounds = []
    for _ in range(5):
        begun = time.perf_counter()
        for instant in instants:
            call(instant)
        rounds.append((time.perf_counter() - begun) / len(instants))
    return min(rounds)


if __name__ == "__main__":
    main()
