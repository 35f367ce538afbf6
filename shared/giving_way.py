"""Work that is long gives the event loop a turn: leases are renewed, others are answered."""

import asyncio
from weakref import WeakKeyDictionary

WORKING = 0.02
"""Seconds after which whoever is at work lets others have their turn."""

_began: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()


async def give_way() -> None:
    """Waits for a turn of the event loop that has not lasted 20 ms yet, whoever has used them.

    To be called between pieces of work that are short. A turn is counted from the first call in it.
    """
    loop = asyncio.get_running_loop()
    while (began := _began.get(loop)) is not None:
        if loop.time() - began < WORKING:
            return
        await asyncio.sleep(0)
    _began[loop] = loop.time()
    loop.call_soon(_began.pop, loop)
