"""The clients of the storage account, whichever way the operator names it: by connection string or by identity."""

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from azure.core.credentials_async import AsyncTokenCredential
from azure.data.tables.aio import TableClient
from azure.identity.aio import DefaultAzureCredential, ManagedIdentityCredential
from azure.storage.queue import TextBase64EncodePolicy
from azure.storage.queue.aio import QueueClient

from shared.errors import Fault, Misconfigured
from shared.settings import STORAGE, Account
from shared.storage.transport import Counting, Transport

# The storage emulator's published account, which UseDevelopmentStorage=true stands for.
EMULATOR = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
    "QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
    "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1"
)


class Clients:
    """Storage clients, opened as they are asked for and closed together."""

    def __init__(self, account: Account, transport: Callable[[], Transport]) -> None:
        emulated = account.connection == "UseDevelopmentStorage=true"
        self._connection = EMULATOR if emulated else account.connection
        self._account = account
        self._transport = transport
        self._opened = AsyncExitStack()
        self._queues: dict[str, QueueClient] = {}
        self._identity: AsyncTokenCredential | None = None

    async def close(self) -> None:
        """Closes all."""
        await self._opened.aclose()

    async def table(self, name: str) -> TableClient:
        """The client of a table. Raises Misconfigured where the connection string is none."""
        options: dict[str, Any] = {
            "transport": Counting(self._transport(), "table"),
            "retry_total": 4,
            "retry_backoff_factor": 0.3,
            "retry_backoff_max": 5,
        }
        if self._connection:
            with _connection_text():
                client = TableClient.from_connection_string(self._connection, name, **options)
        else:
            client = TableClient(self._account.tables, name, credential=await self._credential(), **options)
        return await self._opened.enter_async_context(client)

    async def queue(self, name: str) -> QueueClient:
        """The client of a queue, one for each name. Raises Misconfigured where the connection string is none."""
        if name not in self._queues:
            options: dict[str, Any] = {
                "message_encode_policy": TextBase64EncodePolicy(),
                "transport": Counting(self._transport(), "queue"),
                "retry_total": 4,
                "initial_backoff": 1,
                "increment_base": 1,
            }
            if self._connection:
                with _connection_text():
                    client = QueueClient.from_connection_string(self._connection, name, **options)
            else:
                client = QueueClient(self._account.queues, name, credential=await self._credential(), **options)
            self._queues[name] = await self._opened.enter_async_context(client)
        return self._queues[name]

    async def _credential(self) -> AsyncTokenCredential:
        """The app's identity, one for all clients, so that they share its token."""
        if self._identity is None:
            client_id = self._account.client_id or None
            made: AsyncTokenCredential = (
                ManagedIdentityCredential(client_id=client_id)
                if self._account.managed
                else DefaultAzureCredential(managed_identity_client_id=client_id)
            )
            await self._opened.enter_async_context(made)
            self._identity = made
        return self._identity


@contextmanager
def _connection_text() -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # its text may hold a key
        raise Misconfigured([Fault(STORAGE, "is not a storage connection string")]) from error
