"""Sets of instants that answer: the first at or after, the last at or before, how many between.

In whole seconds since 1970; `NEVER` and `-NEVER` mean there is none. No set is walked from its start.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from shared.recurrence.days import Days
from shared.recurrence.instants import DAY, NEVER
from shared.recurrence.zones import Zone


class Points(Protocol):
    def first_from(self, instant: int) -> int: ...
    def last_to(self, instant: int) -> int: ...
    def count(self, first: int, last: int) -> int: ...
    def offset(self, zone: Zone, instant: int) -> int: ...
    def moved(self, zone: Zone, instant: int, offset: int) -> int: ...


@dataclass(frozen=True, slots=True)
class Single:
    """One instant."""

    instant: int

    def first_from(self, instant: int) -> int:
        return self.instant if instant <= self.instant else NEVER

    def last_to(self, instant: int) -> int:
        return self.instant if instant >= self.instant else -NEVER

    def count(self, first: int, last: int) -> int:
        return int(first <= self.instant <= last)

    def offset(self, zone: Zone, instant: int) -> int:
        return 0

    def moved(self, zone: Zone, instant: int, offset: int) -> int:
        return instant


@dataclass(frozen=True, slots=True)
class Elapsed:
    """start + k x step for every whole k (E1, E2)."""

    start: int
    step: int

    def first_from(self, instant: int) -> int:
        return instant + (self.start - instant) % self.step

    def last_to(self, instant: int) -> int:
        return instant - (instant - self.start) % self.step

    def count(self, first: int, last: int) -> int:
        if last < first:
            return 0
        return (last - self.start) // self.step - (first - 1 - self.start) // self.step

    def offset(self, zone: Zone, instant: int) -> int:
        """That of the start, from which time elapses."""
        return zone.wall_of(self.start) - self.start

    def moved(self, zone: Zone, instant: int, offset: int) -> int:
        """Where an instant lies by this zone's data that lay at `instant` when the start had that offset."""
        return instant + offset - self.offset(zone, instant)


@dataclass(frozen=True, slots=True)
class Calendar:
    """Wall readings, `times` (sorted seconds of the day) on `days`, as instants of `zone` (K1).

    Each stretch of one offset maps its readings in order; only at a gap do two stretches overlap, and there
    instants may come out of order or coincide (D4). So a search looks at one stretch, and at the next only
    while that may hold something better.
    """

    days: Days
    times: tuple[int, ...]
    zone: Zone

    def first_from(self, instant: int) -> int:
        found = self._first_in(self.zone, instant)
        if found >= self.zone.horizon:
            return self._first_in(self.zone.reaching(found), instant)
        return found

    def offset(self, zone: Zone, instant: int) -> int:
        """That by which the reading of this instant is turned into it: in a gap, the one before (D1)."""
        known = zone.reaching(instant)
        last = bisect_right(known.begins, instant) - 1
        for stretch in range(last, max(last - 2, -1), -1):
            wall = instant + known.offsets[stretch]
            if known.walls[stretch] <= wall < known.walls[stretch + 1] and self._wall_from(wall) == wall:
                return known.offsets[stretch]
        return zone.wall_of(instant) - instant

    def moved(self, zone: Zone, instant: int, offset: int) -> int:
        """Where a reading lies by this zone's data that lay at `instant` with that offset."""
        return zone.instant_of(instant + offset)

    def _first_in(self, zone: Zone, instant: int) -> int:
        walls, begins = zone.walls, zone.begins
        stretch = bisect_right(zone.ends, instant)
        best = NEVER
        while begins[stretch] < best:
            offset = zone.offsets[stretch]
            wall = self._wall_from(max(walls[stretch], instant + offset))
            if wall < walls[stretch + 1]:
                best = min(best, wall - offset)
                stretch += 1
            else:
                stretch = bisect_right(walls, wall) - 1
        return best

    def last_to(self, instant: int) -> int:
        zone = self.zone.reaching(instant)
        walls, ends = zone.walls, zone.ends
        stretch = bisect_right(zone.begins, instant) - 1
        best = -NEVER
        while stretch >= 0 and ends[stretch] > best:
            offset = zone.offsets[stretch]
            wall = self._wall_to(min(walls[stretch + 1] - 1, instant + offset))
            if wall >= walls[stretch]:
                best = max(best, wall - offset)
                stretch -= 1
            else:
                stretch = bisect_right(walls, wall) - 1
        return best

    def count(self, first: int, last: int) -> int:
        zone = self.zone.reaching(last)
        total = 0
        for stretch in range(bisect_right(zone.ends, first), bisect_right(zone.begins, last)):
            offset = zone.offsets[stretch]
            low = max(zone.walls[stretch], first + offset)
            high = min(zone.walls[stretch + 1] - 1, last + offset)
            total += self._count_walls(low, high) - self._coinciding(zone, stretch, first, last)
        return total

    def _coinciding(self, zone: Zone, stretch: int, first: int, last: int) -> int:
        """How many instants in [first, last] come from this stretch and, moved by a gap, from the one before."""
        if stretch == 0:
            return 0
        before, after = zone.offsets[stretch - 1], zone.offsets[stretch]
        first, last = max(first, zone.begins[stretch]), min(last, zone.ends[stretch - 1] - 1)
        if last < first:
            return 0
        moved = {wall - before for wall in self._walls_between(first + before, last + before)}
        return sum(1 for wall in self._walls_between(first + after, last + after) if wall - after in moved)

    def holds(self, wall: int) -> bool:
        """Whether `wall` is one of the readings."""
        return self._wall_from(wall) == wall

    def _wall_from(self, wall: int) -> int:
        """The first reading at or after `wall`."""
        day, time = divmod(wall, DAY)
        picked = self.days.from_day(day)
        if picked == day:
            position = bisect_left(self.times, time)
            if position < len(self.times):
                return day * DAY + self.times[position]
            picked = self.days.from_day(day + 1)
        return picked * DAY + self.times[0]

    def _wall_to(self, wall: int) -> int:
        """The last reading at or before `wall`."""
        day, time = divmod(wall, DAY)
        picked = self.days.to_day(day)
        if picked == day:
            position = bisect_right(self.times, time)
            if position:
                return day * DAY + self.times[position - 1]
            picked = self.days.to_day(day - 1)
        return picked * DAY + self.times[-1]

    def _walls_between(self, first: int, last: int) -> Iterator[int]:
        wall = self._wall_from(first)
        while wall <= last:
            yield wall
            wall = self._wall_from(wall + 1)

    def _count_walls(self, first: int, last: int) -> int:
        if last < first:
            return 0
        (day, time), (last_day, last_time) = divmod(first, DAY), divmod(last, DAY)
        total = self.days.count(day, last_day) * len(self.times)
        if self.days.from_day(day) == day:
            total -= bisect_left(self.times, time)
        if self.days.from_day(last_day) == last_day:
            total -= len(self.times) - bisect_right(self.times, last_time)
        return total
