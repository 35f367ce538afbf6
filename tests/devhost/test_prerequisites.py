"""The one line that says what is missing before make does anything."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "devhost" / "prerequisites.sh"

# What each program answers: to a question about its version, and whether it has what is asked for.
GOOD_PYTHON = "exit 0"
OLD_PYTHON = 'case "$*" in -V) echo Python 3.9.2;; *version_info*) exit 1;; esac'
BARE_PYTHON = 'case "$*" in *ensurepip*) exit 1;; esac'
GOOD_NODE = "echo true"
OLD_NODE = 'case "$*" in --version) echo v16.1.0;; *) echo false;; esac'
ALL = {"python3": GOOD_PYTHON, "node": GOOD_NODE, "npm": ""}


def check(folder: Path, programs: dict[str, str], python: str = "python3") -> str:
    """Run the script in an empty folder, with these programs and no others to be found."""
    path = folder / "bin"
    path.mkdir(exist_ok=True)
    for name, script in programs.items():
        (path / name).write_text(f"#!{shutil.which('sh')}\n{script}\n")
        (path / name).chmod(0o755)
    sh = shutil.which("sh")
    assert sh is not None
    done = subprocess.run(
        [sh, str(SCRIPT), python],
        cwd=folder,
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_nothing_is_said_if_all_is_there(tmp_path: Path) -> None:
    assert check(tmp_path, ALL) == ""


@pytest.mark.parametrize(
    ("programs", "line"),
    [
        ({"node": GOOD_NODE, "npm": ""}, "Python 3.11 or newer is needed, but `python3` does not run: "),
        (ALL | {"python3": OLD_PYTHON}, "Python 3.11 or newer is needed, but `python3` is Python 3.9.2: "),
        (ALL | {"python3": BARE_PYTHON}, "`python3` lacks its venv module: "),
        ({"python3": GOOD_PYTHON, "npm": ""}, "Node 18 or newer is needed for Azurite, but `node` does not run: "),
        (ALL | {"node": OLD_NODE}, "Node 18 or newer is needed for Azurite, but `node` is v16.1.0: "),
        ({"python3": GOOD_PYTHON, "node": GOOD_NODE}, "npm is needed to install Azurite, but "),
    ],
)
def test_what_is_missing_is_said_in_one_line(tmp_path: Path, programs: dict[str, str], line: str) -> None:
    said = check(tmp_path, programs)
    assert said.startswith(line)
    assert "install" in said
    assert said.count("\n") == 1


def test_another_python_can_be_named(tmp_path: Path) -> None:
    programs = {"node": GOOD_NODE, "npm": "", "python3": OLD_PYTHON, "python3.13": GOOD_PYTHON}
    assert check(tmp_path, programs, "python3.13") == ""


def test_a_sound_venv_needs_no_python_beside_it(tmp_path: Path) -> None:
    venv = tmp_path / ".venv" / "bin" / "python"
    venv.parent.mkdir(parents=True)
    venv.write_text(f"#!{shutil.which('sh')}\n{GOOD_PYTHON}\n")
    venv.chmod(0o755)
    assert check(tmp_path, {"node": GOOD_NODE, "npm": ""}) == ""
