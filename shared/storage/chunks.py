"""Bytes that one property of a row, 64 KiB, cannot hold: in chunks, each a property of its own."""

from collections.abc import Sequence

from shared.jobs.definition import MAX_PACKED
from shared.jobs.model import CHUNKED_VERSION, FORMAT_VERSION
from shared.storage.table import Row

CHUNK = 60 * 1024
DEFINITION = ("definition", *(f"definition{n}" for n in range(1, -(-MAX_PACKED // CHUNK))))
STATE = tuple(f"state{n}" for n in range(5))


def split(names: Sequence[str], data: bytes) -> dict[str, bytes]:
    """The properties of these names that hold the bytes; as few as do."""
    return {name: data[n * CHUNK : (n + 1) * CHUNK] for n, name in enumerate(names) if n * CHUNK < len(data)}


def joined(names: Sequence[str], row: Row) -> bytes:
    """The bytes in the properties of these names."""
    return b"".join(row.get(name, b"") for name in names)


def definition_in(row: Row) -> bytes:
    """The definition in a row. Raises KeyError where there is none."""
    return bytes(row[DEFINITION[0]]) + joined(DEFINITION[1:], row)


def definition_properties(packed: bytes) -> dict[str, bytes | int]:
    """The properties that hold a definition, and the row's format version: the next one if it takes several."""
    properties = {"definition": b""} | split(DEFINITION, packed)
    return {**properties, "v": FORMAT_VERSION if len(properties) == 1 else CHUNKED_VERSION}


def emptied(old: bytes, new: bytes) -> dict[str, bytes]:
    """The properties of an old definition that a shorter new one does not use, emptied: a merge removes none."""
    return dict.fromkeys(split(DEFINITION, old).keys() - split(DEFINITION, new).keys(), b"")
