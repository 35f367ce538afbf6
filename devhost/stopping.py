"""Waiting that ends early when the host stops."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Listener(Protocol):
    """What waits for a trigger and invokes functions."""

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until `stop` is set; then return, when the invocations under way have ended."""


async def stops_within(stop: asyncio.Event, seconds: float) -> bool:
    """Wait for so many seconds, or until `stop` is set, and say whether it is."""
    try:
        await asyncio.wait_for(stop.wait(), max(0.0, seconds))
    except TimeoutError:
        return False
    return True
