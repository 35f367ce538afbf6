"""Trying again where others change the same row: with pauses, so that one of them gets through."""

import asyncio
import random

TRIES = 20
FIRST_PAUSE = 0.01  # seconds; doubled each time
LONGEST_PAUSE = 0.5


async def pause(attempt: int) -> None:
    """Before the attempt of that number (from 0): none before the first two, then a random one of up to 0.5 s."""
    if attempt > 1:
        await asyncio.sleep(random.uniform(0, min(FIRST_PAUSE * 2.0 ** min(attempt, 10), LONGEST_PAUSE)))
