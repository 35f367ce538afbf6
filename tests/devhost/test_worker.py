"""The limit of an invocation's time."""

from __future__ import annotations

import asyncio

from devhost.worker import time_limit
from tests.devhost.support import eventually


async def test_only_what_lasts_longer_exceeds_the_limit() -> None:
    exceeded: list[str] = []
    later = asyncio.Event()
    with time_limit(0.01, exceeded.append, "short"):
        asyncio.get_running_loop().call_later(0.02, later.set)
    await later.wait()
    assert exceeded == []
    with time_limit(0.01, exceeded.append, "long"):
        await eventually(lambda: exceeded)
    assert exceeded == ["long"]
