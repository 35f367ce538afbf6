"""Performs a run's actions and says how it ended."""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from shared.engine.actions.outcome import Outcome
from shared.engine.clock import Clock
from shared.jobs.definition import action_timeout, load_definition
from shared.jobs.model import Ended, Run, Status
from shared.jobs.times import json_text

log = logging.getLogger("timerjobs.execute")

MAX_TAKEOVERS = 5


class Action(Protocol):
    """One kind of action. It makes one attempt and never raises for what its target does."""

    async def attempt(
        self, inputs: Mapping[str, Any], headers: Mapping[str, str], timeout_seconds: float
    ) -> Outcome:
        """Makes one attempt; `headers` say which occurrence it is for."""


class Performer:
    """Performs runs, with one `Action` for each type a definition may name."""

    def __init__(self, actions: Mapping[str, Action], clock: Clock) -> None:
        self._actions = actions
        self._clock = clock

    async def perform(self, run: Run) -> Ended:
        """Performs the run's actions and gives its ending; a fault of ours ends the run Failed, never the pass."""
        started = self._clock()
        if run.takeovers > MAX_TAKEOVERS:
            reason = f"taken over {MAX_TAKEOVERS} times without getting further"
            return self._ended(run, started, Status.FAILED, reason, {})
        try:
            results = {
                name: await self._action(run, name, action)
                for name, action in load_definition(run.definition).actions.items()
            }
        except Exception as error:
            log.exception("an action could not be performed", extra={"action": "execute", "job": run.job_id})
            return self._ended(run, started, Status.FAILED, f"{type(error).__name__}: {error}", {})
        failed = [r for r in results.values() if r["status"] != Status.SUCCEEDED]
        status = Status(failed[0]["status"]) if failed else Status.SUCCEEDED
        return self._ended(run, started, status, failed[0].get("reason", "") if failed else "", results)

    async def _action(self, run: Run, name: str, action: Mapping[str, Any]) -> dict[str, Any]:
        started = self._clock()
        outcome = await self._actions[action["type"]].attempt(
            action["inputs"], self._headers(run, name), action_timeout(action).total_seconds()
        )
        result: dict[str, Any] = {
            "status": str(outcome.status),
            "attempts": run.takeovers + 1,
            "startTime": json_text(started),
            "endTime": json_text(self._clock()),
        }
        if outcome.response is not None:
            result["response"] = outcome.response
        if outcome.reason:
            result["reason"] = outcome.reason
        return result

    @staticmethod
    def _headers(run: Run, action: str) -> dict[str, str]:
        """What tells the target which occurrence it is called for (API.md)."""
        return {
            "Idempotency-Key": run.idempotency_key(action),
            "x-timerjobs-job-id": run.job_id,
            "x-timerjobs-run": str(run.seq),
            "x-timerjobs-scheduled-time": json_text(run.scheduled),
            "x-timerjobs-attempt": str(run.takeovers + 1),
            "x-timerjobs-fencing-token": str(run.fencing_token),
        }

    def _ended(
        self, run: Run, started: datetime, status: Status, reason: str, results: Mapping[str, Any]
    ) -> Ended:
        return Ended(
            seq=run.seq,
            status=status,
            scheduled=run.scheduled,
            started=started,
            ended=self._clock(),
            attempts=run.takeovers + 1,
            reason=reason,
            actions=results,
        )
