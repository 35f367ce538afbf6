"""Fixtures for the tests with the genuine worker: its Python, and a worker that runs the app."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from devhost.azurite import Azurite
from shared.settings import read_settings
from shared.wiring import Store, build
from tests.runtime.environment import ROOT, Unavailable, worker_python
from tests.runtime.worker import Worker, working


@pytest.fixture(scope="session")
def python() -> Path:
    """The Python of the genuine worker. Skips its tests where this machine cannot have it."""
    try:
        return worker_python()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def settings(azurite: Azurite) -> dict[str, str]:
    """The app settings of the worker."""
    name = uuid4().hex[:16]
    return {
        "AzureWebJobsStorage": azurite.connection_string,
        "TABLE_NAME": f"t{name}",
        "QUEUE_NAME": f"q{name}",
        "PARTITIONS": "2",
        "HORIZON": "PT15M",
        "OUTBOUND_ALLOW": '["127.0.0.0/8"]',
        "DETECTION_PERIOD": "PT1S",
        "DETECTION_SCHEDULE": "*/15 * * * * *",
    }


@pytest.fixture(scope="session")
def worker(python: Path, settings: dict[str, str]) -> Iterator[Worker]:
    """A worker that has indexed the app."""
    with working(python, ROOT, settings) as worker:
        assert worker.error is None, worker.error
        yield worker


@pytest.fixture
async def store(settings: dict[str, str]) -> AsyncIterator[Store]:
    """The worker's storage."""
    app = await build(read_settings(settings))
    yield app.store
    await app.close()
