"""What a run tells: the values that expressions in its actions' inputs may use, and its events.

Events are CloudEvents 1.0 in structured JSON. Their ids are made of what they tell of, so that an event which
is sent again has the id it had. Nothing here reads a clock or a store.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Self

from shared.errors import Fault
from shared.expressions import Function, Lengths, Path, Signature, Whole, check, step
from shared.jobs.fields import MAX_HEADER, MAX_HEADERS, MAX_MESSAGE, MAX_SENT, MAX_URI, holds_expression
from shared.jobs.model import Ended, Run, Status, Stretch, Window
from shared.jobs.request import MAX_ACTIONS
from shared.jobs.times import from_row_text, json_text, key_text

# The statuses of which an event tells when a run, or a stretch, ends with them.
TOLD = frozenset({Status.FAILED, Status.MISSED, Status.SKIPPED, Status.CANCELLED, Status.TIMED_OUT})

_TIMES: tuple[Path, ...] = ((), ("scheduledTime",), ("startTime",))
_WINDOWS: tuple[Path, ...] = (("outputs", "windowStartTime"), ("outputs", "windowEndTime"))
_RUN_NAME: tuple[Path, ...] = (("run", "name"),)
_NO_WINDOWS = "; only a trigger of type SlidingWindow has windows"


class Completion(NamedTuple):
    """That a job has nothing more to fire. `seq` is the last number it gave to a run or a stretch."""

    seq: int
    at: datetime


def check_inputs(actions: Any, parameters: Any, has_windows: bool) -> list[Fault]:
    """What is wrong with the expressions in the actions' inputs, up to what is told; paths start at `actions`.

    `actions` and `parameters` are as a request has them, whatever their shape: what is not an action holds no
    inputs, what is not an object no parameters. `has_windows`: whether the trigger is a SlidingWindow.
    """
    if not isinstance(actions, dict) or len(actions) > MAX_ACTIONS:
        return []
    inputs = {name: {"inputs": a.get("inputs")} for name, a in actions.items() if isinstance(a, dict)}
    return check(inputs, _signatures(parameters, has_windows), "actions")


def check_lengths(actions: Mapping[str, Any], parameters: Any, has_windows: bool) -> list[Fault]:
    """What of valid actions is known to be too long to be sent; paths start at `actions`."""
    known = {"parameters": _parameters(parameters)} if isinstance(parameters, Mapping) else {}
    lengths = Lengths(_signatures(parameters, has_windows), known)
    return [
        fault.under(f"actions.{step(name)}.inputs")
        for name, action in actions.items()
        for fault in _length_faults(action["inputs"], lengths)
    ]


def _signatures(parameters: Any, has_windows: bool) -> dict[str, Signature]:
    trigger = Signature(paths=_TIMES + _WINDOWS) if has_windows else Signature(paths=_TIMES, note=_NO_WINDOWS)
    return {
        "parameters": Signature(arguments=parameters if isinstance(parameters, Mapping) else ()),
        "trigger": trigger,
        "workflow": Signature(paths=_RUN_NAME),
    }


def _length_faults(inputs: Mapping[str, Any], lengths: Lengths) -> list[Fault]:
    headers = inputs.get("headers") or {}
    message = inputs.get("message")
    parts: list[tuple[str, Any, int]] = [
        *((f"headers.{step(name)}", value, MAX_HEADER) for name, value in headers.items()),
        ("headers", headers, MAX_HEADERS),
        ("uri", [inputs.get("uri"), inputs.get("queries")], MAX_URI),
        ("body", inputs.get("body"), MAX_SENT),
        # Of a plain message its bytes are told.
        ("message", message if holds_expression(message) else None, MAX_MESSAGE),
    ]
    return [
        Fault(field, f"is sent with at least {length} characters; the limit is {most}")
        for field, value, most in parts
        if (length := lengths.least(value)) > most
    ]


def _parameters(values: Mapping[str, Any]) -> Function:
    return Function(arguments=values, call=values.__getitem__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """One run, as its actions may know it.

    `scheduled` is the nominal instant, `started` when the run was first locked: the same for all its attempts.
    `by_hand`: made beside the schedule, and so known by its number and not by its scheduled time.
    """

    job_id: str
    seq: int
    stamp: str
    scheduled: datetime
    started: datetime
    window: Window | None
    parameters: Mapping[str, Any]
    by_hand: bool = False

    @classmethod
    def of(cls, run: Run, parameters: Mapping[str, Any]) -> Self:
        """The context of a run as it is stored."""
        return cls(
            job_id=run.job_id,
            seq=run.seq,
            stamp=run.stamp,
            scheduled=run.scheduled,
            started=run.started_or_fired,
            window=run.window,
            parameters=parameters,
            by_hand=run.by_hand,
        )

    @property
    def run_name(self) -> str:
        """The run's name in logs and targets: unique among all jobs' runs while the job exists."""
        return f"{self.job_id}-{self.seq}"

    def event(self) -> dict[str, Any]:
        """The occurrence as an event: what `@trigger()` is. Its id is the same for every attempt at it."""
        moment = f"run-{self.seq}" if self.by_hand else key_text(self.scheduled)
        occasion = f"{self.job_id}:{self.stamp}:{moment}"
        return _event("occurrence", occasion, self.job_id, self.seq, self.started, self._times() | self._bounds())

    def functions(self) -> dict[str, Function]:
        """The functions for `shared.expressions.evaluate`.

        A run without a window has empty `outputs`: asking for a bound is then a fault, unless with `?`.
        """
        properties = {**self._times(), "outputs": self._bounds()}
        return {
            "parameters": _parameters(self.parameters),
            "trigger": Function(paths=_TIMES + _WINDOWS, call=lambda: Whole(self.event(), properties)),
            "workflow": Function(paths=_RUN_NAME, call=lambda: {"run": {"name": self.run_name}}),
        }

    def _times(self) -> dict[str, str]:
        return {"scheduledTime": json_text(self.scheduled), "startTime": json_text(self.started)}

    def _bounds(self) -> dict[str, str]:
        return _bounds(*self.window) if self.window else {}


def _bounds(start: datetime, end: datetime) -> dict[str, str]:
    return {"windowStartTime": json_text(start), "windowEndTime": json_text(end)}


def job_event(job_id: str, stamp: str, record: Ended | Stretch | Completion) -> dict[str, Any]:
    """An event of a job's life: how a run ended, what was not fired, that the job is completed.

    `stamp` names the life of the job that the record belongs to. A stretch that has grown gives another event.
    Raises ValueError for a status that is not in TOLD.
    """
    if isinstance(record, Completion):
        occasion = f"{job_id}:{stamp}:{record.seq}:completed"
        return _event("job.completed", occasion, job_id, record.seq, record.at, {})
    if record.status not in TOLD:
        raise ValueError(f"no event tells of a run that is {record.status}")
    kind = record.status.lower()
    occasion = f"{job_id}:{stamp}:{record.seq}:{kind}"
    data: dict[str, Any] = {"status": str(record.status)} | ({"reason": record.reason} if record.reason else {})
    if isinstance(record, Stretch):
        data |= {"from": json_text(record.first), "to": json_text(record.last), "count": record.count}
        occasion += f":{key_text(record.last)}"
        return _event(f"run.{kind}", occasion, job_id, record.seq, record.last, data)
    data |= {
        "scheduledTime": json_text(record.scheduled),
        "startTime": json_text(record.started),
        "endTime": json_text(record.ended),
        "attempts": record.attempts,
    }
    if record.window:
        data |= _bounds(*map(from_row_text, record.window))
    return _event(f"run.{kind}", occasion, job_id, record.seq, record.ended, data)


def _event(
    kind: str, occasion: str, job_id: str, seq: int, time: datetime, data: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": occasion,
        "source": f"/jobs/{job_id}",
        "type": f"timerjobs.{kind}",
        "subject": str(seq),
        "time": json_text(time),
        "datacontenttype": "application/json",
        "data": {"jobId": job_id, "run": seq, **data},
    }
