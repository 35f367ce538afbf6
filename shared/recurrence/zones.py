"""Zone names, and wall time against instants.

Names are Windows ids or IANA ids (Z7). Rules come from the PyPI package `tzdata` alone: `ZoneInfo(name)`
would prefer what the operating system has, which differs from host to host.
"""

import difflib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from io import BytesIO
from types import MappingProxyType
from zoneinfo import ZoneInfo

import tzdata
from tzlocal.windows_tz import win_tz

from shared.errors import Fault, InvalidInput
from shared.recurrence.instants import DAY, NEVER
from shared.recurrence.tzif import read_changes

# The version of the time zone data, such as 2026f (L8).
TZDATA_VERSION: str = tzdata.IANA_VERSION

_NEAR_YEAR, _FAR_YEAR = 2100, 9999
_LONGEST_SHOWN = 64


def first_wall(change: int, before: int, after: int) -> int:
    """The gap and fold policy (D1 to D5): the wall reading from which offset `after` is used.

    `change` is the instant at which the offset becomes `after`. Until then the wall shows `before`.

    - Gap (`after` is greater): readings the clocks jump over keep `before`, so 02:30 becomes 03:30 (D1).
    - Fold (`after` is smaller): readings the clocks show twice keep `before`, so the first pass counts (D2).

    Both are `fold=0` of PEP 495 (D3). Nothing else in this package knows what happens at a change.
    """
    return change + max(before, after)


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """A zone as stretches of one offset each, in seconds; stretch i lies between changes i - 1 and i.

    `walls[i]` is the first wall reading of stretch i, `begins[i]` and `ends[i]` bound the instants its wall
    readings stand for. After a gap these overlap: the end of stretch i reaches beyond `begins[i + 1]`.
    One stretch that holds nothing closes `walls` and `begins`. Nothing here is right after `horizon`.
    """

    key: str
    changes: list[int]
    offsets: list[int]
    walls: list[int]
    begins: list[int]
    ends: list[int]
    horizon: int

    def __eq__(self, other: object) -> bool:
        """Zones of the same offsets throughout are equal, whatever their names: links, old names, UTC and none. So
        schedules can be compared however they are written (L4)."""
        if not isinstance(other, Zone):
            return False
        return self.key == other.key or (self.changes, self.offsets) == (other.changes, other.offsets)

    def __hash__(self) -> int:
        return hash((len(self.changes), self.offsets[-1]))

    def reaching(self, instant: int) -> "Zone":
        """The same zone, right at `instant` and before."""
        return self if instant < self.horizon else load_far_zone(self.key)

    def wall_of(self, instant: int) -> int:
        """What the clocks show at `instant`."""
        known = self.reaching(instant)
        return instant + known.offsets[bisect_right(known.changes, instant)]

    def instant_of(self, wall: int) -> int:
        """The instant a wall reading stands for; in a gap or a fold as `first_wall` says."""
        known = self.reaching(wall)
        return wall - known.offsets[bisect_right(known.walls, wall) - 1]


@lru_cache(maxsize=1024)
def load_zone(key: str) -> Zone:
    """The zone with IANA id `key`, its changes known up to the year 2100."""
    return _build(key, _NEAR_YEAR)


@lru_cache(maxsize=4)
def load_far_zone(key: str) -> Zone:
    """The same up to the year 9999: large, and slow to build."""
    return _build(key, _FAR_YEAR)


def _build(key: str, last_year: int) -> Zone:
    changes, offsets, cut = read_changes(_data(key), last_year)
    walls = [first_wall(*step) for step in zip(changes, offsets, offsets[1:], strict=False)]
    walls = [-NEVER, *walls, NEVER]
    begins = [wall - offset for wall, offset in zip(walls, offsets, strict=False)]
    ends = [wall - offset for wall, offset in zip(walls[1:], offsets, strict=True)]
    horizon = changes[-1] - 2 * DAY if cut and last_year < _FAR_YEAR else NEVER * 2
    return Zone(key, changes, offsets, walls, [*begins, NEVER * 2], ends, horizon)


@lru_cache(maxsize=1024)
def zone_info(key: str) -> ZoneInfo:
    """The same zone for `datetime`, for display."""
    return ZoneInfo.from_file(BytesIO(_data(key)), key)


def resolve_zone(name: object, field: str = "timeZone") -> tuple[str, ZoneInfo]:
    """The name as it is properly written (Windows or IANA, whichever was given) and the zone (Z7).

    Raises InvalidInput on `field`, with the nearest known names, if there is no such zone.
    """
    canonical, key = resolve_name(name, field)
    return canonical, zone_info(key)


def resolve_name(name: object, field: str = "timeZone") -> tuple[str, str]:
    """The name as it is properly written, and the IANA id of its rules."""
    found = _names().get(name.lower()) if isinstance(name, str) else None
    if found is None:
        raise InvalidInput([Fault(field, _unknown(name))])
    return found


def _unknown(name: object) -> str:
    if not isinstance(name, str):
        return "must be the name of a time zone, as text"
    shown = name[:_LONGEST_SHOWN]
    near = [zone for zone in win_tz if _initials(zone) == shown.upper()][:3]  # PST for Pacific Standard Time
    near = near or [_names()[match][0] for match in difflib.get_close_matches(shown.lower(), _names(), n=3)]
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"{shown!r} is neither a Windows nor an IANA time zone name{hint}"


def _initials(name: str) -> str:
    return "".join(word[0] for word in name.split()).upper()


@lru_cache(maxsize=1)
def _names() -> Mapping[str, tuple[str, str]]:
    iana = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    names = {name.lower(): (name, name) for name in iana}
    names |= {name.lower(): (name, key) for name, key in win_tz.items()}  # Windows first (Z7)
    return MappingProxyType(names)


def _data(key: str) -> bytes:
    return resources.files("tzdata").joinpath("zoneinfo", *key.split("/")).read_bytes()
