"""Work that is long gives the event loop a turn: leases are renewed, others are answered."""

import asyncio
from weakref import WeakKeyDictionary

WORKING = 0.02
"""Seconds after which whoever is at work lets others have their turn."""

_began: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()


async def give_way() -> None:
    """Lets the event loop turn if its present turn has lasted 20 ms, whoever has used them; else goes on at once.

    To be called between pieces of work that are short. A turn is counted from the first call in it.
    """
    loop = asyncio.get_running_loop()
    began = _began.get(loop)
    if began is None:
        _began[loop] = loop.time()
        loop.call_soon(_began.pop, loop)
    elif loop.time() - began >= WORKING:
        await asyncio.sleep(0)
