"""What is kept of a run's answers where they are too large for a row."""

import json
import random
import zlib
from datetime import timedelta
from typing import Any

import pytest

from shared.jobs.definition import unpack
from shared.jobs.model import Status
from shared.jobs.progress import MAX_STATE, MAX_UNPACKED, Step, pack_record, pack_steps, unpack_steps
from tests.harness import NOON

MOST = 60 * 1024


def answer(seed: int, letters: int, plain: bool) -> dict[str, Any]:
    """What is kept of an answer: letters that are all alike, or that cannot be compressed well."""
    draw = random.Random(seed)
    body = "x" * letters if plain else "".join(chr(draw.randrange(33, 127)) for _ in range(letters))
    return {"statusCode": 200, "headers": {"x-one": body[: letters // 8]}, "body": body}


def record(count: int, letters: int, plain: bool = False) -> dict[str, Any]:
    actions = {f"a{n}": {"status": "Succeeded", "response": answer(n, letters, plain)} for n in range(count)}
    return {"seq": 1, "reason": "", "actions": actions}


def lacking(packed: bytes, part: str) -> list[bool]:
    """Of each action whether the part of its answer is gone; one that lacks something says so."""
    responses = [action["response"] for action in unpack(packed)["actions"].values()]
    for response in responses:
        assert response.get("dropped", False) is (len(response.keys() & {"headers", "body"}) < 2)
    return [part not in response for response in responses]


def is_a_beginning(gone: list[bool]) -> bool:
    return gone == sorted(gone, reverse=True)


def test_a_record_that_fits_is_kept_whole() -> None:
    given = record(3, 1000)
    assert unpack(pack_record(given, MOST)) == given


@pytest.mark.parametrize(("plain", "letters"), [(False, 16_000), (True, 16_000)])
def test_of_one_that_is_too_large_bodies_go_first_and_no_more_than_must(plain: bool, letters: int) -> None:
    given = record(50, letters, plain)
    before = json.dumps(given)
    packed = pack_record(given, MOST)
    assert json.dumps(given) == before
    assert len(packed) <= MOST
    assert len(zlib.decompress(packed)) <= MAX_UNPACKED
    gone = lacking(packed, "body")
    assert is_a_beginning(gone)
    assert any(gone)
    if not all(gone):
        assert not any(lacking(packed, "headers"))
        more = {name: {**each} for name, each in given["actions"].items()}
        for name, is_gone in list(zip(more, gone, strict=True))[: sum(gone) - 1]:
            assert is_gone
            more[name]["response"] = {k: v for k, v in more[name]["response"].items() if k != "body"}
        text = json.dumps(given | {"actions": more}, separators=(",", ":")).encode()
        assert len(zlib.compress(text)) > MOST - 1000 or len(text) > MAX_UNPACKED - 1000


def test_headers_go_where_bodies_do_not_suffice_and_in_the_end_all_actions() -> None:
    packed = pack_record(record(100, 40_000, plain=False), MOST)
    assert all(lacking(packed, "body"))
    assert any(lacking(packed, "headers"))
    reasons = {f"a{n}": {"status": "Failed", "reason": answer(n, 2000, False)["body"]} for n in range(100)}
    packed = pack_record({"seq": 1, "reason": "r" * 2000, "actions": reasons}, MOST)
    assert unpack(packed) == {"seq": 1, "reason": "r" * 1000, "actions": {}}


def test_steps_lose_the_oldest_answers_first() -> None:
    steps = {
        f"a{n}": Step(
            status=Status.SUCCEEDED, started=NOON - timedelta(seconds=n), response=answer(n, 16_000, plain=False)
        )
        for n in range(40)
    }
    packed = pack_steps(steps)
    assert len(packed) <= MAX_STATE
    assert len(zlib.decompress(packed)) <= MAX_UNPACKED
    kept = unpack_steps(packed)
    gone = ["body" not in (kept[name].response or {}) for name in sorted(kept, key=lambda n: kept[n].started)]
    assert is_a_beginning(gone)
    assert any(gone)
    assert not all(gone)


def test_a_large_record_is_not_packed_again_for_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    dumps = json.dumps

    def counted(value: Any, **options: Any) -> str:
        text = dumps(value, **options)
        written.append(len(text))
        return text

    given = record(100, 16_000, plain=True)
    monkeypatch.setattr(json, "dumps", counted)
    pack_record(given, MOST)
    assert len(written) <= 10
