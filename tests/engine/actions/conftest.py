"""An authorizer whose operator allows this machine."""

from collections.abc import AsyncIterator

import pytest

from shared.engine.actions.auth import Authorizer
from tests.engine.actions.support import AUDIENCE, SECRET


@pytest.fixture
async def authorizer() -> AsyncIterator[Authorizer]:
    """One that allows this machine."""
    made = Authorizer({AUDIENCE: ["127.0.0.1"]}, ["127.0.0.1"], {"SECRET_TOKEN": SECRET, "SECRET_EMPTY": ""})
    yield made
    await made.close()
