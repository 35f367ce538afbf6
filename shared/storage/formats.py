"""Rows of a newer format: written by a newer version of this app, which runs beside this one during an upgrade.

They are left alone: never taken, moved, set aside, rewritten or deleted here. docs/design.md says what that means.
"""

from collections.abc import Iterable

from shared.errors import NewerFormat
from shared.jobs.model import CHUNKED_VERSION
from shared.storage.table import Row

NEWEST = CHUNKED_VERSION
"""The newest format that this version reads."""
READABLE = f"v le {NEWEST}"
"""The condition on rows that this version may take."""


def is_newer(row: Row) -> bool:
    """Whether a newer version wrote the row; it must have been read with its `v`."""
    version = row.get("v")
    return isinstance(version, int) and version > NEWEST


def check_format(*rows: Row) -> None:
    """Raises NewerFormat if one of the rows is newer."""
    for row in rows:
        if is_newer(row):
            raise NewerFormat(
                f"{row['RowKey']} was written by a newer version of the app (format {row['v']}; this one reads "
                f"{NEWEST}); try again later"
            )


def count_newer(rows: Iterable[Row]) -> int:
    """How many of the rows are newer."""
    return sum(map(is_newer, rows))
