"""Fixtures of every room: one Azurite for the session, a bench and a receiver for a test."""

from collections.abc import AsyncIterator, Iterator

import pytest

from devhost.azurite import Azurite
from tests.harness import Bench, Receiver, bench, receiving


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """A real Azurite of this session's own, keeping its data in memory."""
    with Azurite.start(in_memory=True) as running:
        yield running


@pytest.fixture
def storage(azurite: Azurite) -> str:
    """The connection string of the session's Azurite."""
    return azurite.connection_string


@pytest.fixture
async def at(storage: str) -> AsyncIterator[Bench]:
    """A bench on a table of the test's own."""
    async with bench(storage) as made:
        yield made


@pytest.fixture
async def target() -> AsyncIterator[Receiver]:
    """A receiver of calls."""
    async with receiving() as receiver:
        yield receiver
