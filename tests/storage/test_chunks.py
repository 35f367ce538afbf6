"""Bytes in chunks: as few properties as hold them, and the next format version only where it takes several."""

import random
from typing import Any

import pytest

from shared.jobs.definition import MAX_PACKED, pack
from shared.jobs.model import CHUNKED_VERSION, FORMAT_VERSION
from shared.storage.chunks import CHUNK, DEFINITION, definition_in, definition_properties, emptied, joined, split

LENGTHS = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 5 * CHUNK + 1, MAX_PACKED]


def drawn(length: int) -> bytes:
    return random.Random(length).randbytes(length)


@pytest.mark.parametrize("length", LENGTHS)
def test_what_is_split_is_joined(length: int) -> None:
    data = drawn(length)
    parts = split(DEFINITION, data)
    assert all(0 < len(part) <= CHUNK for part in parts.values())
    assert len(parts) == -(-length // CHUNK)
    assert joined(DEFINITION, {"other": 1, **parts}) == data


@pytest.mark.parametrize("length", LENGTHS)
def test_a_row_that_needs_one_property_is_as_it_was_and_others_bear_the_next_version(length: int) -> None:
    data = drawn(length)
    row: dict[str, Any] = definition_properties(data)
    assert definition_in(row) == data
    if length <= CHUNK:
        assert row == {"definition": data, "v": FORMAT_VERSION}
    else:
        assert row["v"] == CHUNKED_VERSION


@pytest.mark.parametrize(("old", "new"), [(LENGTHS[a], LENGTHS[b]) for a in range(8) for b in range(8)])
def test_a_definition_merged_over_another_leaves_nothing_of_it(old: int, new: int) -> None:
    row: dict[str, Any] = definition_properties(drawn(old))
    row |= definition_properties(drawn(new)) | emptied(drawn(old), drawn(new))
    assert definition_in(row) == drawn(new)


@pytest.mark.parametrize(
    ("low", "high"),
    [(32, 127), (0xA0, 0x100), (0x80, 0x800), (0x4E00, 0xA000), (0x10000, 0x110000), (0, 128)],
)
def test_no_text_of_256_kib_takes_more_than_a_row_holds(low: int, high: int) -> None:
    draw = random.Random(high)
    text = "".join(chr(draw.randrange(low, high)) for _ in range(256 * 1024 // len(chr(low + 1).encode())))
    assert len(pack({"body": text})) <= MAX_PACKED
