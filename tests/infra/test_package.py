"""What is deployed: the files that .funcignore leaves, in a Python that has requirements.txt and nothing else."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pathspec import GitIgnoreSpec

from tests.infra.source import ROOT
from tests.runtime.environment import Unavailable, package_python, worker_python
from tests.runtime.test_worker import FUNCTIONS
from tests.runtime.worker import working

WORKER = ("azure_functions_runtime", "azurefunctions")
MAX_BYTES = 2 * 1024 * 1024


def packaged() -> Iterator[Path]:
    """The files of the package, relative to the project."""
    ignored = GitIgnoreSpec.from_lines((ROOT / ".funcignore").read_text().splitlines())
    for folder, subfolders, files in os.walk(ROOT):
        here = Path(folder).relative_to(ROOT)
        subfolders[:] = [each for each in subfolders if not ignored.match_file(f"{(here / each).as_posix()}/")]
        yield from (here / each for each in files if not ignored.match_file((here / each).as_posix()))


def size(*places: Path) -> int:
    """The bytes of all files in these places; what Python compiled on the way is left out."""
    files = (each for place in places for each in (place, *place.rglob("*")))
    return sum(each.stat().st_size for each in files if each.is_file() and each.suffix != ".pyc")


def installed_in(python: Path) -> Path:
    """Where an interpreter of a venv has its packages."""
    return next((python.parent.parent / "lib").glob("python*/site-packages"))


def test_the_package_holds_the_app_and_nothing_of_its_development() -> None:
    names = {path.as_posix() for path in packaged()}
    assert {"function_app.py", "host.json", "requirements.txt", "shared/wiring.py"} <= names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"function_app.py", "host.json", "requirements.txt", "shared", "workflows", "LICENSE"}
    assert {Path(name).suffix for name in names if name.startswith("shared/")} == {".py"}


def test_the_package_installs_and_is_indexed_with_requirements_txt_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app, library = tmp_path / "app", tmp_path / "library"
    for path in packaged():
        (app / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, app / path)
    try:
        python, workers = package_python(), worker_python()
    except Unavailable as reason:
        pytest.skip(str(reason))
    library.mkdir()
    for name in WORKER:  # the worker's own packages, without those of the app beside them
        (library / name).symlink_to(installed_in(workers) / name)
    installed = [each for each in installed_in(python).iterdir() if not each.name.startswith("pip")]
    with capsys.disabled():
        print(
            f"\nthe package: {size(app) / 2**10:.0f} KiB, with {size(*installed) / 2**20:.1f} MiB installed",
            end=" ",
        )
    assert size(app) < MAX_BYTES
    assert not (installed_in(python) / WORKER[0]).exists()
    with working(python, app, {}, library) as worker:
        assert worker.error is None, worker.error
        assert worker.functions.keys() == FUNCTIONS.keys()
