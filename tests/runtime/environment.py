"""The Python in which the genuine worker runs: 3.13 or newer, with what tests/runtime/requirements.txt says.

And one that has what is deployed with the app, and nothing else.
"""

import fcntl
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
APP = ROOT / "requirements.txt"
REQUIREMENTS = (APP, Path(__file__).with_name("requirements.txt"))

VENV_MODULES = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 13))"
# What pip says before its last attempt to reach a server.
UNREACHABLE = re.compile(r"Retry\(total=0,.*connection broken by")


class Unavailable(Exception):
    """This machine cannot run the genuine worker, for a reason that is no fault of the project's."""


def worker_python(venv: Path = ROOT / ".venv" / "runtime") -> Path:
    """The interpreter of `venv`, which is made unless it stands there with today's requirements.

    Raises Unavailable where there is no Python 3.13, or no network to install from.
    """
    return _python_with(venv, REQUIREMENTS)


def package_python(venv: Path = ROOT / ".venv" / "package") -> Path:
    """The same for a Python that has requirements.txt and nothing else, as the deployed app has."""
    return _python_with(venv, (APP,))


def _python_with(venv: Path, requirements: Sequence[Path]) -> Path:
    """The interpreter of a venv with the last one's requirements; the others are those it includes."""
    python = venv / "bin" / "python"
    stamp = venv / "installed"
    wanted = hashlib.sha256(b"".join(each.read_bytes() for each in requirements)).hexdigest()
    venv.parent.mkdir(exist_ok=True)
    with venv.with_name(f"{venv.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (stamp.exists() and stamp.read_text() == wanted and _can_make_venvs(str(python))):
            _run(_find_python(), "-Im", "venv", "--clear", str(venv))
            install = ["install", "--quiet", "--disable-pip-version-check", "--retries=2", "--timeout=15"]
            _run(str(python), "-Im", "pip", *install, "-r", str(requirements[-1]))
            stamp.write_text(wanted)
    return python


def _find_python() -> str:
    for candidate in _candidates():
        if _can_make_venvs(candidate):
            return candidate
    raise Unavailable("no Python 3.13 or newer was found, which the genuine worker needs")


def _candidates() -> Iterator[str]:
    yield from ("python3.13", "python3.14", sys.executable)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob("versions/3.1[3-9]*/bin/python3")))


def _can_make_venvs(python: str) -> bool:
    """Tried, since a pyenv shim may be on the PATH and yet run nothing."""
    try:
        return subprocess.run([python, "-Ic", VENV_MODULES], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _run(*command: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode == 0:
        return
    if UNREACHABLE.search(done.stdout):
        last = done.stdout.strip().rpartition("\n")[-1]
        raise Unavailable(f"the genuine worker cannot be installed: no network ({last})")
    raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}")
