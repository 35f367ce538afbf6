"""Newer time zone data under jobs that have run (L8): no window is left out, nothing runs again or is lost."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.jobs.definition import load_timing
from shared.recurrence import zones
from shared.storage.table import Verb, Write
from tests.harness import Bench, Receiver, bench, http_job


@contextmanager
def older_data(zone: str, like: str) -> Iterator[None]:
    """Time zone data by which a zone has the clocks of another."""

    def read(key: str) -> bytes:
        return real(like if key == zone else key)

    def forget() -> None:
        for cache in (zones.load_zone, zones.load_far_zone, zones.zone_info, load_timing):
            cache.cache_clear()

    real = zones._data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zones, "_data", read)
        forget()
        yield
    forget()


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def live(at: Bench, end: str, step: timedelta) -> None:
    """Time passes, and what falls due is dispatched."""
    while at.clock.now < instant(end):
        await at.dispatch()
        at.clock.advance(seconds=step.total_seconds())


async def mark_as_older(at: Bench) -> None:
    """Has the rows of job a say that other data made them."""
    (timer,) = await at.rows("timer")
    writes = [Write(Verb.MERGE, {"RowKey": key, "tzdata": "2001a"}) for key in (timer["RowKey"], "job:a")]
    await at.app.store.table.commit("00", writes)


async def lived(
    at: Bench, body: dict[str, Any], like: str, days: tuple[str, str, str], step: timedelta, suspends: bool = False
) -> None:
    """A job is created, lives with older data until an upgrade, and with the present ones after it."""
    created, upgraded, end = days
    at.clock.now = instant(created)
    zone = body["trigger"]["recurrence"]["timeZone"]
    with older_data(zone, like):
        await at.create(id="a", **body)
        await live(at, upgraded, step)
    at.clock.now = instant(upgraded)
    await mark_as_older(at)
    if suspends:
        for operation in ("suspend", "resume"):
            assert (await at.call(operation, id="a")).status == 200
    await live(at, end, step)


def job_by(
    target: Receiver, zone: str, start: str, frequency: str = "Day", kind: str = "Recurrence", **trigger: Any
) -> dict[str, Any]:
    """A job of a rule by the clocks of a zone; `schedule` is the rule's, the rest the trigger's."""
    rule = {"frequency": frequency, "interval": 1, "timeZone": zone, "startTime": start}
    if schedule := trigger.pop("schedule", None):
        rule["schedule"] = schedule
    return http_job(target.url) | {"trigger": {"type": kind, "recurrence": rule, **trigger}}


def windows_of(runs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return sorted((run["windowStartTime"], run["windowEndTime"]) for run in runs)


MONTHS = ("2023-02-27T00:00:00", "2023-04-10T00:00:00", "2023-08-10T00:00:00")


@pytest.mark.parametrize("suspends", [False, True])
@pytest.mark.parametrize("rows", ["of this version", "of one that kept no offset"])
async def test_windows_that_newer_data_puts_earlier_are_all_dispatched(
    storage: str, target: Receiver, suspends: bool, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if rows != "of this version":
        monkeypatch.setattr("shared.recurrence.Schedule.offset", lambda *_: None)
    async with bench(storage, PARTITIONS="1") as at:
        body = job_by(target, "Africa/Cairo", "2023-03-01T00:00:00", "Month", "SlidingWindow")
        await lived(at, body, "Etc/GMT-2", MONTHS, timedelta(hours=12), suspends)
        assert windows_of(await at.runs("a")) == [
            ("2023-02-28T22:00:00Z", "2023-03-31T22:00:00Z"),
            ("2023-03-31T22:00:00Z", "2023-04-30T22:00:00Z"),
            ("2023-04-30T22:00:00Z", "2023-05-31T21:00:00Z"),
            ("2023-05-31T21:00:00Z", "2023-06-30T21:00:00Z"),
            ("2023-06-30T21:00:00Z", "2023-07-31T21:00:00Z"),
            ("2023-07-31T21:00:00Z", "2023-08-31T21:00:00Z"),
        ]


@pytest.mark.parametrize("suspends", [False, True])
@pytest.mark.parametrize("frequency", ["Day", "Week"])
@pytest.mark.parametrize("like", ["Etc/GMT-3", "Etc/GMT-1", "Etc/GMT-2"])
async def test_windows_follow_each_other_whatever_becomes_of_the_data(
    storage: str, target: Receiver, suspends: bool, frequency: str, like: str
) -> None:
    days = ("2023-01-02T00:30:00", "2023-01-23T00:30:00", "2023-02-20T00:30:00")
    async with bench(storage, PARTITIONS="1") as at:
        body = job_by(target, "Africa/Cairo", "2023-01-02T00:00:00", frequency, "SlidingWindow")
        await lived(at, body, like, days, timedelta(hours=6), suspends)
        windows = windows_of(await at.runs("a"))
        assert len(windows) == {"Day": 49, "Week": 7}[frequency]
        assert [start for start, _ in windows[1:]] == [end for _, end in windows[:-1]]
        assert len({hit.key for hit in target.hits}) == len(target.hits) == len(windows)


ALMATY = ("2024-02-27T00:00:00", "2024-03-05T02:30:00", "2024-03-08T00:00:00")


@pytest.mark.parametrize("suspends", [False, True])
@pytest.mark.parametrize("lateness", ["PT1M", "P1D"])
async def test_what_was_dispatched_is_neither_run_again_nor_missed(
    storage: str, target: Receiver, lateness: str, suspends: bool
) -> None:
    async with bench(storage, PARTITIONS="1") as at:
        body = job_by(target, "Asia/Almaty", "2024-02-27T08:00:00", maxLateness=lateness)
        await lived(at, body, "Etc/GMT-6", ALMATY, timedelta(minutes=30), suspends)
        assert [hit.scheduled.isoformat()[:16] for hit in target.hits[-3:]] == [
            "2024-03-05T02:00",
            "2024-03-06T03:00",
            "2024-03-07T03:00",
        ]
        assert (await at.call("get", id="a")).body["missed"] == 0


async def test_of_several_times_a_day_the_next_by_the_clocks_comes_next(storage: str, target: Receiver) -> None:
    days = ("2024-03-04T00:00:00", "2024-03-05T03:30:00", "2024-03-06T00:00:00")
    async with bench(storage, PARTITIONS="1") as at:
        hours = {"hours": [8, 9, 10], "minutes": [0]}
        body = job_by(target, "Asia/Almaty", "2024-03-04T00:00:00", schedule=hours, maxLateness="PT1M")
        await lived(at, body, "Etc/GMT-6", days, timedelta(minutes=30))
        assert [hit.scheduled.isoformat()[8:16] for hit in target.hits] == [
            "04T02:00",
            "04T03:00",
            "04T04:00",
            "05T02:00",
            "05T03:00",
            "05T05:00",
        ]
        assert (await at.call("get", id="a")).body["missed"] == 0


@pytest.mark.parametrize("lateness", ["PT0S", "PT10M", "P1D"])
async def test_what_newer_data_puts_earlier_fires_late_once_whatever_its_lateness(
    storage: str, target: Receiver, lateness: str
) -> None:
    days = ("2024-02-27T00:00:00", "2024-03-05T03:30:00", "2024-03-08T00:00:00")
    async with bench(storage, PARTITIONS="1") as at:
        body = job_by(target, "Asia/Almaty", "2024-02-27T08:00:00", maxLateness=lateness)
        await lived(at, body, "Etc/GMT-4", days, timedelta(minutes=30))  # by which it is 04:00, not 03:00
        assert [hit.scheduled.isoformat()[:16] for hit in target.hits[-3:]] == [
            "2024-03-05T03:00",
            "2024-03-06T03:00",
            "2024-03-07T03:00",
        ]
        shown = (await at.call("get", id="a")).body
        assert (shown["fired"], shown["missed"]) == (10, 0)
