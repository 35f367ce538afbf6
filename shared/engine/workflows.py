"""Performs runs, each as its service type asks: actions step by step, or a workflow in Python."""

import logging
import zlib
from collections.abc import Awaitable, Callable

from shared.engine.clock import Clock
from shared.engine.lease import LeaseLost
from shared.engine.logs import about
from shared.engine.perform import MAX_TAKEOVERS, Checkpoint, Performer, Resting, ended_as
from shared.jobs.definition import load_definition
from shared.jobs.instance import pack_state, readable_state
from shared.jobs.model import TIMER_JOB, Ended, Run, Status
from shared.workflow import Completed, Context, Delayed, Lost, registered

log = logging.getLogger("timerjobs.execute")


def is_own(service_type: str) -> bool:
    """Whether this process can run instances of the service type itself."""
    return service_type == TIMER_JOB or service_type in registered()


class Performers:
    """Performs the runs of every service type that is the app's own."""

    def __init__(self, actions: Performer, clock: Clock) -> None:
        self._actions = actions
        self._clock = clock

    async def perform(self, run: Run, checkpoint: Checkpoint) -> Ended | Resting:
        """As far as the run can go now; what `checkpoint` raises goes through."""
        if run.service_type == TIMER_JOB:
            return await self._actions.perform(run, checkpoint)
        if run.takeovers - run.steady > MAX_TAKEOVERS:
            return self._ended(run, Status.FAILED, f"taken over {MAX_TAKEOVERS} times without getting further")
        try:
            parameters, state = load_definition(run.definition).parameters, readable_state(run)
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            return self._ended(run, Status.FAILED, f"cannot be read: {type(error).__name__}: {error}")
        context = Context(
            job_id=run.job_id,
            run=run.seq,
            scheduled=run.scheduled,
            window=run.window,
            parameters=parameters,
            attempt=run.takeovers + 1,
            fencing_token=run.fencing_token,
            idempotency_key=run.idempotency_key(run.service_type),
            state=state,
            now=self._clock,
            keep=_keeping(checkpoint),
        )
        return await self._entered(run, context)

    async def _entered(self, run: Run, context: Context) -> Ended | Resting:
        try:
            await registered()[run.service_type](context)
        except Delayed as delayed:
            return Resting(due=delayed.until, state=pack_state(context.state))
        except Completed as completed:
            return self._ended(run, Status.SUCCEEDED, "", completed.result)
        except Lost as lost:
            raise lost.cause from None
        except Exception as error:
            log.exception("a workflow failed", extra={"action": "execute", **about(run)})
            return self._ended(run, Status.FAILED, f"{type(error).__name__}: {error}"[:1000])
        return self._ended(run, Status.SUCCEEDED, "")

    def _ended(self, run: Run, status: Status, reason: str, result: object = None) -> Ended:
        return ended_as(run, self._clock(), status, reason, {}, result)


def _keeping(checkpoint: Checkpoint) -> Callable[[bytes], Awaitable[None]]:
    """The checkpoint, whose loss of the lease a workflow cannot catch as an error of its own."""

    async def keep(state: bytes) -> None:
        try:
            await checkpoint(state)
        except LeaseLost as loss:
            raise Lost(loss) from loss

    return keep
