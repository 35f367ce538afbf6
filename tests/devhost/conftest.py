"""Fixtures for the tests of the local host."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
from aiohttp.test_utils import TestServer

from devhost.azurite import Azurite
from tests.devhost.support import Proxy


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """One Azurite for the whole session, in memory. Tests use tables and queues of names of their own."""
    with Azurite.start(in_memory=True) as azurite:
        yield azurite


@pytest.fixture
def queue_name() -> str:
    """A queue that no other test uses; it does not exist yet."""
    return f"q{uuid.uuid4().hex}"


@pytest.fixture
async def proxy(azurite: Azurite) -> AsyncIterator[Proxy]:
    """Azurite's queue service behind a Proxy."""
    proxy = Proxy(azurite.ports)
    server = TestServer(proxy.app)
    await server.start_server()
    proxy.port = server.port or 0
    yield proxy
    await server.close()


@pytest.fixture
def stop() -> asyncio.Event:
    """What tells a listener to end."""
    return asyncio.Event()
