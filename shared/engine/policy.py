"""What the operator allows jobs: addresses, identities, secrets, queues, and how much.

Checked when a job is created or replaced.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from shared.engine.actions.auth import Authorizer
from shared.engine.actions.inputs import BadInput
from shared.engine.actions.outbound import Outbound
from shared.engine.actions.queue import message_text, queue_faults
from shared.engine.actions.wait import wait_until
from shared.errors import Fault, InvalidInput
from shared.jobs.fields import holds_expression
from shared.jobs.instance import Activation
from shared.jobs.limits import Limits
from shared.jobs.spec import JobBody

# The three months from here have 90 days, as few as there are: a wait that fits from nowhere is refused.
SHORTEST_MONTHS = datetime(2026, 12, 1, tzinfo=UTC)


class Policy:
    """Checks what valid requests ask."""

    def __init__(
        self, authorizer: Authorizer, outbound: Outbound, queues: Collection[str], own_queue: str, limits: Limits
    ) -> None:
        self._authorizer = authorizer
        self._outbound = outbound
        self._limits = limits
        self._queues = queues
        self._own_queue = own_queue

    def check(self, asked: JobBody, now: datetime) -> None:
        """Raises InvalidInput with all that is not allowed."""
        faults = self._limits.faults(asked)
        faults += [
            fault.under("action.inputs" if asked.short else f"actions.{name}.inputs")
            for name, action in asked.definition.get("actions", {}).items()
            for fault in self._faults(action["type"], action["inputs"], now)
        ]
        if activation := asked.definition.get("activation"):
            uri = Activation.of(activation).endpoint
            faults += [Fault("activation.site", fault.reason) for fault in self._outbound.uri_faults(uri)]
        if faults:
            raise InvalidInput(faults)

    def _faults(self, kind: str, inputs: Mapping[str, Any], now: datetime) -> list[Fault]:
        if kind == "Http":
            faults = self._outbound.uri_faults(inputs["uri"])
            if authentication := inputs.get("authentication"):
                faults += self._authorizer.faults(authentication, inputs["uri"])
            return faults
        if kind == "Queue":
            return queue_faults(inputs["queue"], self._queues, self._own_queue) + _message_faults(inputs)
        return _wait_faults(inputs, now)


def _wait_faults(inputs: Mapping[str, Any], now: datetime) -> list[Fault]:
    """What is wrong with a wait whose end is known already; one that expressions give is checked when it runs."""
    if holds_expression(inputs):
        return []
    try:
        wait_until(inputs, SHORTEST_MONTHS if "interval" in inputs else now)
    except BadInput as error:
        return [error.fault]
    return []


def _message_faults(inputs: Mapping[str, Any]) -> list[Fault]:
    """What is wrong with a message; what expressions make of it is checked when it is sent."""
    try:
        message_text(inputs["message"])
    except BadInput as error:
        return [error.fault]
    return []
