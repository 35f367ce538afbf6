"""The rooms, and which way they import (docs/design.md)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Each may import what stands before it, and itself.
ORDER = [
    "errors",
    "expressions",
    "recurrence",
    "jobs",
    "workflow",
    "settings",
    "metrics",
    "giving_way",
    "storage",
    "engine",
]
ORDER += ["web", "clients", "wiring", "entry", "function_app"]
AZURE_ROOMS = ("shared/storage/", "shared/engine/actions/")
AZURE_IN = (*AZURE_ROOMS, "shared/clients.py", "shared/wiring.py", "shared/entry.py", "function_app.py")
MAX_LINES = 330

SOURCES = [ROOT / "function_app.py", *sorted((ROOT / "shared").rglob("*.py"))]


def imports(path: Path) -> Iterator[str]:
    """The modules a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(module: str) -> str | None:
    """The room a module of ours is in."""
    parts = module.split(".")
    if parts[0] == "function_app":
        return "function_app"
    return parts[1] if parts[0] == "shared" and len(parts) > 1 else None


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_imports_go_one_way(path: Path) -> None:
    here = room(name(path).removesuffix(".py").replace("/", "."))
    if here in (None, "__init__"):
        return
    allowed = ORDER[: ORDER.index(str(here)) + 1]
    for module in imports(path):
        there = room(module)
        assert there is None or there in allowed, f"{name(path)} imports {module}"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_azure_is_imported_only_where_it_is_dealt_with(path: Path) -> None:
    if not name(path).startswith(AZURE_IN):
        assert not [module for module in imports(path) if module.split(".")[0] == "azure"]


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_the_pure_rooms_read_no_clock_and_do_no_io(path: Path) -> None:
    if name(path).startswith(("shared/recurrence/", "shared/jobs/")):
        text = path.read_text()
        for forbidden in ("datetime.now", "utcnow", "time.time", "asyncio", "aiohttp", "os.environ"):
            assert forbidden not in text, f"{name(path)} has {forbidden}"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_LINES


def test_the_app_does_not_know_the_local_host() -> None:
    for path in SOURCES:
        assert not [module for module in imports(path) if module.split(".")[0] in ("devhost", "tests")]
