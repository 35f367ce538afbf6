"""The transport of storage clients, which counts what they send."""

from typing import Any, Self

from azure.core.pipeline.transport import AsyncHttpTransport

from shared import metrics

Transport = AsyncHttpTransport[Any, Any]


class Counting(Transport):
    """Counts each request to a service (`table` or `queue`), repetitions too, and has `inner` send it."""

    def __init__(self, inner: Transport, service: str) -> None:
        self._inner = inner
        self._attributes = {"service": service}

    async def send(self, request: Any, **kwargs: Any) -> Any:
        """Sends a request."""
        metrics.storage_requests.add(1, self._attributes)
        return await self._inner.send(request, **kwargs)

    async def open(self) -> None:
        """Opens the connections."""
        await self._inner.open()

    async def close(self) -> None:
        """Closes them."""
        await self._inner.close()

    async def sleep(self, duration: float) -> None:
        """Waits between two tries, so many seconds."""
        await self._inner.sleep(duration)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._inner.__aexit__(*error)
