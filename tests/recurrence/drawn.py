"""Hypothesis strategies: recurrences, creation times, instants. Everything drawn is valid."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from tests.recurrence.oracle import WEEKDAYS, changes_of, distinct_zone_names

FREQUENCIES = ["Second", "Minute", "Hour", "Day", "Week", "Month"]
LONGEST = {"Second": 9_999_999, "Minute": 72_000, "Hour": 12_000, "Day": 500, "Week": 71, "Month": 16}
AWKWARD = [
    "America/Chicago",
    "Europe/London",
    "Europe/Dublin",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "Africa/Casablanca",
    "America/Nuuk",
    "America/Havana",
    "Africa/Cairo",
    "Asia/Gaza",
    "Antarctica/Troll",
    "Pacific/Chatham",
    "America/Sao_Paulo",
]

zones = st.sampled_from(AWKWARD) | st.sampled_from(distinct_zone_names())


def moments(first: int = 1975, last: int = 2060) -> st.SearchStrategy[datetime]:
    """Wall readings without zone."""
    seconds = st.integers(0, (last - first) * 31_556_952)
    return seconds.map(lambda since: datetime(first, 1, 1) + timedelta(seconds=since))  # noqa: DTZ001


@st.composite
def instants(draw: st.DrawFn, zone: str) -> datetime:
    """Instants, half of them within two days of a change of the zone's offset."""
    changes = changes_of(zone)
    if not changes or draw(st.booleans()):
        return draw(moments()).replace(tzinfo=UTC)
    change = draw(st.sampled_from(changes))
    return change + timedelta(seconds=draw(st.integers(-2 * 86_400, 2 * 86_400)))


def some(items: st.SearchStrategy[Any], most: int = 4) -> st.SearchStrategy[Any]:
    """A scalar or a list."""
    return items | st.lists(items, min_size=1, max_size=most)


occurrence = st.fixed_dictionaries(
    {"day": st.sampled_from(WEEKDAYS)},
    optional={"occurrence": st.integers(1, 5) | st.integers(-5, -1)},
)
month_day = st.integers(1, 31) | st.integers(-31, -1)
times = {"hours": some(st.integers(0, 23), 24), "minutes": some(st.integers(0, 59))}
schedules: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "Day": st.fixed_dictionaries({}, optional=times),
    "Week": st.fixed_dictionaries({}, optional=times | {"weekDays": some(st.sampled_from(WEEKDAYS))}),
    "Month": st.fixed_dictionaries({}, optional=times | {"monthDays": some(month_day)})
    | st.fixed_dictionaries({"monthlyOccurrences": st.lists(occurrence, min_size=1, max_size=3)}, optional=times),
}


@st.composite
def recurrences(draw: st.DrawFn, zone: str, frequencies: list[str] = FREQUENCIES) -> dict[str, Any]:
    """A recurrence in `zone`, or in UTC by a start with Z, or in either from creation on."""
    frequency = draw(st.sampled_from(frequencies))
    interval = draw(st.integers(1, 4) | st.integers(1, LONGEST[frequency]))
    recurrence: dict[str, Any] = {"frequency": frequency, "interval": interval}
    if draw(st.booleans()):
        recurrence["timeZone"] = zone
    form = draw(st.sampled_from(["none", "wall", "utc"]))
    if form != "none":
        recurrence["startTime"] = draw(starts(zone)).isoformat()
        if form == "utc" or "timeZone" not in recurrence:
            recurrence["startTime"] += "Z"
    if frequency in schedules and draw(st.booleans()):
        recurrence["schedule"] = draw(schedules[frequency])
    return recurrence


@st.composite
def starts(draw: st.DrawFn, zone: str) -> datetime:
    """Wall readings for a start, half of them near a change, inside gaps and folds too."""
    near = draw(instants(zone))
    return near.replace(tzinfo=None) if near.year >= 1971 else near.replace(year=1971, month=3, day=1, tzinfo=None)
