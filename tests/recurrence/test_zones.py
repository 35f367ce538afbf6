"""Zone data and zone names (Z7)."""

import random
import zoneinfo
from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import pairwise
from pathlib import Path

import pytest
from tzlocal.windows_tz import win_tz

from shared.errors import InvalidInput
from shared.recurrence import resolve_zone
from shared.recurrence.instants import EPOCH, floor_second
from shared.recurrence.tzif import read_changes
from shared.recurrence.zones import load_far_zone, load_zone, zone_info
from tests.recurrence.oracle import changes_of, distinct_zone_names, instant_of, zone_names, zone_of

SECOND = timedelta(seconds=1)


def seconds(wall: datetime) -> int:
    return floor_second(wall.replace(tzinfo=UTC))


def agree_at(name: str, instant: datetime) -> None:
    zone, truth = load_zone(name), zone_of(name)
    wall = instant.astimezone(truth).replace(tzinfo=None, fold=0)
    assert zone.wall_of(floor_second(instant)) == seconds(wall), (name, instant)
    assert zone.instant_of(seconds(wall)) == floor_second(instant_of(wall, truth)), (name, wall)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.soak) for part in range(1, 4))])
def test_offsets_are_those_of_zoneinfo_around_every_change(part: int) -> None:
    for name in sorted(distinct_zone_names())[part::4]:
        for change in changes_of(name):
            for hours in (-24, -0.5, 0, 0.5, 24):
                agree_at(name, change + timedelta(hours=hours))
                agree_at(name, change + timedelta(hours=hours) - SECOND)


def test_offsets_are_those_of_zoneinfo_until_the_year_2100() -> None:
    draw = random.Random(1)
    for name in zone_names():
        for _ in range(100):
            agree_at(name, EPOCH + timedelta(seconds=draw.randrange(131 * 31_556_952)))


@pytest.mark.parametrize("name", ["America/Chicago", "Australia/Lord_Howe", "Europe/Dublin", "Asia/Tokyo"])
def test_offsets_are_those_of_zoneinfo_until_the_year_9999(name: str) -> None:
    draw = random.Random(name)
    for _ in range(2000):
        agree_at(name, EPOCH + timedelta(seconds=draw.randrange(8029 * 31_556_952)))


def test_stretches_are_in_order_and_overlap_only_with_the_next() -> None:
    for name in distinct_zone_names():
        zone = load_zone(name)
        for bounds in (zone.changes, zone.walls, zone.begins, zone.ends):
            assert all(a < b for a, b in pairwise(bounds)), name
        assert all(end < begin for end, begin in zip(zone.ends, zone.begins[2:], strict=False)), name


def test_the_far_zone_continues_the_near_one() -> None:
    near, far = load_zone("America/Chicago"), load_far_zone("America/Chicago")
    assert far.changes[: len(near.changes)] == near.changes
    assert len(far.changes) > 15_000


def test_a_rule_by_day_of_year_is_read() -> None:
    # J60 is 1 March in every year; 59, counted from 0 with the leap day, is 29 February in this one.
    for rule, day in (("J60", 1), ("59", 0)):
        data = _tzif(f"<-03>3<-02>2,{rule}/0,J365/0")
        instants = read_changes(data, 1972).instants
        leap = [EPOCH + timedelta(seconds=instant) for instant in instants][4]
        assert leap == datetime(1972, 2, 29, 3, tzinfo=UTC) + timedelta(days=day)


def _tzif(footer: str) -> bytes:
    counts = [0, 0, 0, 0, 1, 1]
    block = b"TZif2" + bytes(15) + b"".join(count.to_bytes(4) for count in counts) + bytes(6) + b"\0"
    return block * 2 + b"\n" + footer.encode() + b"\n"


def test_data_come_from_the_package_and_not_from_the_system(tmp_path: Path) -> None:
    instant = datetime(2024, 7, 1, tzinfo=UTC)
    tokyo = resources.files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").read_bytes()
    (tmp_path / "Asia").mkdir()
    (tmp_path / "Asia" / "Calcutta").write_bytes(tokyo)
    zoneinfo.reset_tzpath(to=[tmp_path])
    zone_info.cache_clear()
    load_zone.cache_clear()
    try:
        misled = instant.astimezone(zoneinfo.ZoneInfo.no_cache("Asia/Calcutta"))
        assert misled.utcoffset() == timedelta(hours=9)
        ours = resolve_zone("Asia/Calcutta")[1]
        assert instant.astimezone(ours).utcoffset() == timedelta(hours=5, minutes=30)
        assert load_zone("Asia/Calcutta").wall_of(0) == 19_800
    finally:
        zoneinfo.reset_tzpath()


def test_every_windows_name_resolves_to_its_iana_zone() -> None:
    for name, key in win_tz.items():
        assert resolve_zone(name)[0] == name
        assert resolve_zone(name)[1].key == key


def test_every_iana_name_resolves_whatever_its_case() -> None:
    for name in zone_names():
        canonical, zone = resolve_zone(name.upper())
        assert canonical == name
        assert zone.key in (name, win_tz.get(name))


def test_windows_names_come_before_iana_names() -> None:
    name, zone = resolve_zone("utc")
    assert (name, zone.key) == ("UTC", "Etc/UTC")


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("Pacific Standart Time", "Pacific Standard Time"),
        ("America/New York", "America/New_York"),
        ("europe/berln", "Europe/Berlin"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest_ones(wrong: str, meant: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        resolve_zone(wrong)
    (fault,) = refused.value.faults
    assert fault.field == "timeZone"
    assert meant in fault.reason


def test_a_name_of_any_length_is_refused_in_a_few_words() -> None:
    with pytest.raises(InvalidInput) as refused:
        resolve_zone("Pacific Standard Time" * 10_000)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    "name",
    [
        "PST",  # an abbreviation
        "(UTC-08:00) Pacific Time (US & Canada)",  # a display name
        "UTC+01:00",
        "+01:00",
        "",
        " UTC",
        "../../etc/passwd",
        "America",
        5,
        None,
    ],
)
def test_what_is_no_zone_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput):
        resolve_zone(name)


def test_an_abbreviation_leads_to_the_windows_names_it_stands_for() -> None:
    with pytest.raises(InvalidInput) as raised:
        resolve_zone("PST")
    assert "'Pacific Standard Time'" in raised.value.faults[0].reason
