"""Repeating the tests."""

import sys
from pathlib import Path

import pytest

from tests.repeat import repeat

FAILS_THE_THIRD_TIME = """
import sys
from pathlib import Path
count = Path(sys.argv[1])
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
print("this is time", number)
sys.exit(7 if number == 3 else 0)
"""


def test_it_ends_at_the_first_round_that_fails_and_keeps_the_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-c", FAILS_THE_THIRD_TIME, str(tmp_path / "count")]
    assert repeat(5, command, tmp_path / "kept") == 7
    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.read_text() == "this is time 3\n"
    assert capsys.readouterr().out == (
        "round 1 of 5: this is time 1\n"
        "round 2 of 5, beside a busy core: this is time 2\n"
        f"round 3 of 5: failed with status 7; its output is in {kept}\n"
    )


def test_it_ends_well_if_no_round_fails(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FAILS_THE_THIRD_TIME, str(tmp_path / "count")]
    assert repeat(2, command, tmp_path / "kept") == 0
    assert list((tmp_path / "kept").iterdir()) == []
