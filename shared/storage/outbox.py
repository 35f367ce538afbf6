"""The queue that events go to."""

import json
from collections.abc import Mapping
from typing import Any

from azure.storage.queue.aio import QueueClient

from shared.storage.table import service_errors


class Outbox:
    """Sends events, as JSON texts that never expire."""

    def __init__(self, client: QueueClient) -> None:
        self._client = client

    async def put(self, event: Mapping[str, Any]) -> None:
        """Sends an event. Raises StoreFailed."""
        with service_errors():
            await self._client.send_message(json.dumps(event), time_to_live=-1)
