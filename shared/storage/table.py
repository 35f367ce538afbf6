"""Azure Tables as this app uses it: key ranges and transactions within a partition."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError
from azure.data.tables import UpdateMode
from azure.data.tables.aio import TableClient

from shared.errors import Unavailable

MAX_ROWS = 100
MAX_BYTES = 3 * 1024 * 1024
# A transaction is a POST, which the client library repeats after a lost answer only if told to. It may have
# been carried out then; the repetition is refused, since every transaction has a condition or an insert.
RETRIED = frozenset({"POST"})

Row = Mapping[str, Any]


class Refused(Exception):
    """A transaction was not carried out: a condition did not hold, or a row is not as it takes.

    It may also be one's own commit whose answer was lost and which was then tried again.
    """


class StoreFailed(Unavailable):
    """Storage did not answer, or answered that it cannot; what was asked may or may not have been done."""

    def told(self) -> str:
        return "storage does not answer; try again later"


@contextmanager
def service_errors() -> Iterator[None]:
    """Gives the storage client's errors as StoreFailed."""
    try:
        yield
    except AzureError as error:
        raise StoreFailed(f"storage: {type(error).__name__}: {str(error).splitlines()[0][:300]}") from error


class Verb(StrEnum):
    """What a write does to its row. A write with an etag takes the row at just that version."""

    INSERT = "create"
    MERGE = "merge"
    REPLACE = "replace"
    PUT = "put"  # insert or replace
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Write:
    """One write of one row. `row` holds RowKey and, unless it is a delete, properties."""

    verb: Verb
    row: Row
    etag: str = ""

    @property
    def key(self) -> str:
        """The row's RowKey."""
        key: str = self.row["RowKey"]
        return key

    @property
    def size(self) -> int:
        """About how many bytes the write takes in a transaction's body."""
        return 600 + sum(len(v) * 4 // 3 if isinstance(v, bytes) else len(str(v)) for v in self.row.values())


def moved(old_key: str, row: Row | None, etag: str = "") -> list[Write]:
    """What moves a row ('': there is none) to another key, or away (None). Since a transaction may name a row
    only once, one that stays under its key is replaced."""
    if row and row["RowKey"] == old_key:
        return [Write(Verb.REPLACE, row, etag)]
    gone = [Write(Verb.DELETE, {"RowKey": old_key}, etag)] if old_key else []
    return [*gone, Write(Verb.INSERT, row)] if row else gone


class Unit(Protocol):
    """What is committed as a whole: the writes of one job."""

    @property
    def writes(self) -> Sequence[Write]:
        """Its writes."""


U = TypeVar("U", bound=Unit)


def pack_units(units: Iterable[U]) -> Iterator[list[U]]:
    """The units in as few transactions as hold them, in order: by rows, by bytes, and no row twice."""
    batch: list[U] = []
    keys: set[str] = set()
    size = 0
    for unit in units:
        writes = unit.writes
        its_keys = {write.key for write in writes}
        its_size = sum(write.size for write in writes)
        if batch and (len(keys) + len(its_keys) > MAX_ROWS or size + its_size > MAX_BYTES or keys & its_keys):
            yield batch
            batch, keys, size = [], set(), 0
        batch.append(unit)
        keys |= its_keys
        size += its_size
    if batch:
        yield batch


class Table:
    """One table. PartitionKeys are given apart from rows, since all that one call touches shares one."""

    def __init__(self, client: TableClient) -> None:
        self._client = client

    async def get(self, partition: str, key: str) -> Row | None:
        """The row, or None."""
        with service_errors():
            try:
                return _row(await self._client.get_entity(partition, key))
            except ResourceNotFoundError as error:
                if _code(error) == "TableNotFound":
                    raise
                return None

    async def scan(
        self,
        partition: str,
        low: str,
        high: str,
        *,
        limit: int | None = None,
        where: str = "",
        select: Sequence[str] | None = None,
    ) -> list[Row]:
        """The rows with low <= RowKey < high, in key order; at most `limit`, which is then one request.

        `where` is a further condition on properties: a scan of the range, so never one of timers.
        """
        condition = f"PartitionKey eq '{partition}' and RowKey ge '{low}' and RowKey lt '{high}'"
        if where:
            condition += f" and ({where})"
        pages = self._client.query_entities(
            condition, results_per_page=limit, select=list(select) if select else None
        ).by_page()
        rows: list[Row] = []
        with service_errors():
            async for page in pages:
                rows += [_row(entity) async for entity in page]
                if limit is not None and len(rows) >= limit:
                    break
        return rows[:limit]

    async def commit(self, partition: str, writes: Sequence[Write]) -> list[str]:
        """Carries out all writes or none; gives the new etag of each ('' for a delete).

        At most 100 writes, each of another row. Raises Refused.
        """
        with service_errors():
            try:
                answers = await self._client.submit_transaction(
                    [_operation(partition, w) for w in writes], retry_on_methods=RETRIED
                )
            except HttpResponseError as error:
                if error.status_code in (400, 404, 409, 412, 413) and _code(error) != "TableNotFound":
                    raise Refused(f"{error.status_code} {_code(error)}") from error
                raise
        return [answer.get("etag", "") for answer in answers]


def _row(entity: Any) -> Row:
    return {**entity, "etag": entity.metadata["etag"]}


def _operation(partition: str, write: Write) -> Any:
    entity = {"PartitionKey": partition, **{k: v for k, v in write.row.items() if k != "etag"}}
    match: dict[str, Any] = {}
    if write.etag:
        match = {"etag": write.etag, "match_condition": MatchConditions.IfNotModified}
    if write.verb is Verb.INSERT:
        return ("create", entity)
    if write.verb is Verb.PUT:
        return ("upsert", entity, {"mode": UpdateMode.REPLACE})
    if write.verb is Verb.DELETE:
        return ("delete", entity, match)
    mode = UpdateMode.MERGE if write.verb is Verb.MERGE else UpdateMode.REPLACE
    return ("update", entity, {"mode": mode, **match})


def _code(error: HttpResponseError) -> str:
    return str(getattr(error, "error_code", None) or "")
