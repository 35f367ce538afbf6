"""The gate of a job that bounds its runs (rule W6): who may start, and who goes next. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime

from shared.jobs.model import Bound, Gate, Waiting, Window

MOST = 20
MOST_BYTES = 1024 * 1024  # of their definitions, together


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What room at the gate lets through: waiting occurrences that become runs, and whether the parked
    baton goes back to the timers. `gate` is the gate afterwards."""

    gate: Gate
    released: tuple[Waiting, ...] = ()
    unparked: bool = False


def is_full(gate: Gate, bound: Bound | None) -> bool:
    """Whether no further run may start."""
    return bound is not None and gate.running >= bound.runs


def opened(gate: Gate, bound: Bound | None, weight: int) -> Opening:
    """Lets through as many as there is room for, those that wait longest first; without a bound, all.

    At most 20 at a time, and 1 MiB of their definitions, each of `weight` bytes, since they start in one
    transaction; their ends let the others through.
    """
    most = min(MOST, max(1, MOST_BYTES // max(1, weight)))
    room = most if bound is None else min(most, max(0, bound.runs - gate.running))
    released = gate.waiting[:room]
    gate = replace(gate, running=gate.running + len(released), waiting=gate.waiting[room:])
    unparked = gate.parked and not is_full(gate, bound)
    return Opening(gate=replace(gate, parked=gate.parked and not unparked), released=released, unparked=unparked)


def left(gate: Gate, bound: Bound | None, weight: int) -> Opening:
    """What the end of one run lets through."""
    return opened(replace(gate, running=max(0, gate.running - 1)), bound, weight)


def without(gate: Gate, seq: int) -> Gate:
    """The gate without a waiting occurrence that was cancelled."""
    return replace(gate, waiting=tuple(w for w in gate.waiting if w.seq != seq))


def hand_place(seq: int, stamp: str, scheduled: datetime, now: datetime, window: Window | None) -> Waiting:
    """The place of a run made by hand."""
    return Waiting(seq=seq, stamp=stamp, scheduled=scheduled, accepted=now, window=window, by_hand=True)
