"""Performs a run's actions: in the order they ask for, side by side where they allow it, step by step."""

import asyncio
import logging
import secrets
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from shared.engine.actions.outcome import Action, Attempt, Later, Outcome
from shared.engine.clock import Clock
from shared.engine.lease import LeaseLost
from shared.engine.logs import about
from shared.engine.slots import Held, Slots
from shared.errors import InvalidInput
from shared.expressions import evaluate
from shared.giving_way import give_way
from shared.jobs.context import RunContext
from shared.jobs.definition import Definition, action_timeout, load_definition
from shared.jobs.model import Ended, Run, Status
from shared.jobs.progress import Step, next_due, outcome, pack_steps, ready, skipped, unpack_steps
from shared.jobs.times import json_text, row_text
from shared.storage.table import StoreFailed

log = logging.getLogger("timerjobs.execute")

MAX_TAKEOVERS = 5
SLOT_AGAIN = 1.0  # seconds after which a further action asks for a slot again


class Checkpoint(Protocol):
    """Stores how far a run is; one that tells no more than what it waits for `is_progress` not."""

    async def __call__(self, state: bytes, is_progress: bool = True) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Resting:
    """A run that has nothing to do until `due`; `state` is how far it is."""

    due: datetime
    state: bytes


class Performer:
    """Performs runs, with one `Action` for each type a definition may name. A run has a slot; each further action
    of it that is under way beside takes one more."""

    def __init__(self, actions: Mapping[str, Action], slots: Slots, clock: Clock) -> None:
        self._actions = actions
        self._slots = slots
        self._clock = clock

    async def perform(self, run: Run, checkpoint: Checkpoint) -> Ended | Resting:
        """Performs the run's actions as far as they can go now; a fault of ours ends it Failed, never the pass.

        While more is to be done at once, `checkpoint` is given after each step how far it is; what it raises
        goes through.
        """
        try:
            definition, steps = load_definition(run.definition), unpack_steps(run.state)
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            return self._broken(run, f"cannot be read: {type(error).__name__}: {error}")
        if run.takeovers - run.steady > MAX_TAKEOVERS:
            return self._broken(run, f"taken over {MAX_TAKEOVERS} times without getting further")
        with self._slots.holding() as further:
            performance = _Performance(self._actions, further, self._clock, run, definition, steps, checkpoint)
            return await performance.play()

    def _broken(self, run: Run, reason: str) -> Ended:
        return ended_as(run, self._clock(), Status.FAILED, reason, {})


class _Performance:
    """One run's performance."""

    def __init__(
        self,
        actions: Mapping[str, Action],
        further: Held,
        clock: Clock,
        run: Run,
        definition: Definition,
        steps: dict[str, Step],
        checkpoint: Checkpoint,
    ) -> None:
        self._actions = actions
        self._further = further
        self._clock = clock
        self._run = run
        self._definition = definition
        self._steps = steps
        self._checkpoint = checkpoint
        self._tasks: dict[asyncio.Task[Step], str] = {}
        self._told: dict[str, Step] = {}  # steps under way that wait, as callers see them
        self._crowded = False  # a step that is ready got no slot

    async def play(self) -> Ended | Resting:
        try:
            while True:
                self._begin()
                if not self._tasks:
                    break
                done, _ = await asyncio.wait(
                    self._tasks, timeout=self._seconds_to_next(), return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    continue
                for task in done:
                    name = self._tasks.pop(task)
                    self._steps[name] = task.result()
                    self._told.pop(name, None)
                    if self._tasks:
                        self._further.give(self._run.job_id)
                self._steps = skipped(self._definition.actions, self._steps, self._clock())
                if self._tasks or ready(self._definition.actions, self._steps, self._clock()):
                    await self._checkpoint(pack_steps(self._steps | self._told))
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        due = next_due(self._steps)
        if due is not None:
            return Resting(due=due, state=pack_steps(self._steps))
        status, reason = outcome(self._definition.actions, self._steps)
        views = {name: step.view() for name, step in self._steps.items()}
        return ended_as(self._run, self._clock(), status, reason, views)

    def _seconds_to_next(self) -> float | None:
        """How long a waiting step, or one that gets no slot, leaves to those that are under way."""
        under_way = set(self._tasks.values())
        due = next_due({name: step for name, step in self._steps.items() if name not in under_way})
        wait = None if due is None else max(0.05, (due - self._clock()).total_seconds())
        return wait if not self._crowded else min(SLOT_AGAIN, wait or SLOT_AGAIN)

    def _begin(self) -> None:
        """Begins what is ready, as far as slots go; what gets none stays ready."""
        under_way = set(self._tasks.values())
        waiting = [n for n in ready(self._definition.actions, self._steps, self._clock()) if n not in under_way]
        self._crowded = False
        for name in waiting:
            if self._tasks and not self._further.take(self._run.job_id):
                self._crowded = True
                break
            self._tasks[asyncio.create_task(self._step(name))] = name

    async def _step(self, name: str) -> Step:
        """One attempt at an action, or the next one at an action that waited."""
        await give_way()
        now = self._clock()
        action = self._definition.actions[name]
        step = self._steps.get(name) or Step(status=Status.RUNNING, started=now)
        try:
            attempt = Attempt(
                action=action,
                inputs=self._inputs(name, action),
                headers=self._headers(name, step),
                timeout=action_timeout(action),
                number=step.attempts + 1,
                memo=step.memo,
                now=now,
                tell=lambda reason: self._tell(name, step, reason),
            )
            result = await self._actions[action["type"]].attempt(attempt)
        except LeaseLost:
            raise
        except InvalidInput as error:
            reason = (
                str(error) if "inputs" not in _secured(action) else "its inputs have no value, and are secured"
            )
            result = Outcome(status=Status.FAILED, reason=reason)
        except Exception as error:
            log.exception("an action could not be performed", extra={"action": "execute", **about(self._run)})
            result = Outcome(status=Status.FAILED, reason=f"{type(error).__name__}: {error}")
        return self._after(step, result if "outputs" not in _secured(action) else _without_outputs(result))

    async def _tell(self, name: str, step: Step, reason: str) -> None:
        """Stores what a step waits for, so that callers see it; whoever takes the run over begins the step
        anew."""
        if reason:
            self._told[name] = replace(step, status=Status.WAITING, due=self._clock(), reason=reason)
        else:
            self._told.pop(name, None)
        log.info(
            "job %s, run %d: %s: %s",
            self._run.job_id,
            self._run.seq,
            name,
            reason or "goes on",
            extra={"action": "execute", **about(self._run)},
        )
        try:
            await self._checkpoint(pack_steps(self._steps | self._told), is_progress=False)
        except StoreFailed as failure:  # the action goes on without
            log.warning("it could not be stored: %s", failure, extra={"action": "execute", **about(self._run)})

    def _after(self, step: Step, result: Outcome | Later) -> Step:
        failed = result.attempted if isinstance(result, Later) else result.status is not Status.SUCCEEDED
        if failed:
            message, run = "job %s, run %d: an attempt failed: %s", self._run
            log.warning(message, run.job_id, run.seq, result.reason, extra={"action": "execute", **about(run)})
        if isinstance(result, Later):
            return replace(
                step,
                status=Status.WAITING,
                due=result.at,
                memo=result.memo,
                reason=result.reason,
                response=result.response,
                attempts=step.attempts + (1 if result.attempted else 0),
            )
        return replace(
            step,
            status=result.status,
            ended=self._clock(),
            due=None,
            memo={},
            reason=result.reason,
            response=result.response,
            attempts=step.attempts + 1,
        )

    def _inputs(self, name: str, action: Mapping[str, Any]) -> Mapping[str, Any]:
        context = RunContext.of(self._run, self._definition.parameters)
        inputs: Mapping[str, Any] = evaluate(
            action.get("inputs", {}), context.functions(), f"actions.{name}.inputs"
        )
        return inputs

    def _headers(self, action: str, step: Step) -> dict[str, str]:
        """What tells the target which occurrence it is called for (API.md)."""
        run = self._run
        headers = {
            "Idempotency-Key": run.idempotency_key(action),
            "x-timerjobs-job-id": run.job_id,
            "x-timerjobs-run": str(run.seq),
            "x-timerjobs-scheduled-time": json_text(run.scheduled),
            "x-timerjobs-attempt": str(run.takeovers + step.attempts + 1),
            "x-timerjobs-fencing-token": str(run.fencing_token),
            "traceparent": f"00-{run.trace_id}-{secrets.token_hex(8)}-01",
        }
        if run.window:
            headers["x-timerjobs-window-start-time"] = json_text(run.window[0])
            headers["x-timerjobs-window-end-time"] = json_text(run.window[1])
        return headers


def _secured(action: Mapping[str, Any]) -> Collection[str]:
    """What of an action is kept out of history and logs: inputs, outputs, both or nothing."""
    secured: Collection[str] = action.get("runtimeConfiguration", {}).get("secureData", {}).get("properties", ())
    return secured


def _without_outputs(result: Outcome | Later) -> Outcome | Later:
    """The result with no more of the target's answer than its status."""
    if not result.response:
        return result
    return replace(result, response={k: v for k, v in result.response.items() if k == "statusCode"})


def ended_as(
    run: Run,
    now: datetime,
    status: Status,
    reason: str,
    actions: Mapping[str, Any],
    result: Any = None,
) -> Ended:
    """The record of a run that has ended."""
    return Ended(
        seq=run.seq,
        status=status,
        scheduled=run.scheduled,
        started=run.started_or_fired,
        ended=now,
        attempts=run.takeovers + max([1, *(a["attempts"] for a in actions.values())]),
        reason=reason,
        actions=actions,
        window=(row_text(run.window[0]), row_text(run.window[1])) if run.window else None,
        result=result,
    )
