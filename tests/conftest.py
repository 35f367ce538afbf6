"""Fixtures of every room: one Azurite for the session, a bench and a receiver for a test; and figures told."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from devhost.azurite import Azurite
from tests.harness import Bench, Receiver, bench, receiving

# Drawn cases are the same at each run, so that a change fails for what it changed.
hypothesis.settings.register_profile("repeatable", derandomize=True, print_blob=False)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """A real Azurite of this session's own, keeping its data in memory."""
    with Azurite.start(in_memory=True) as running:
        yield running


@pytest.fixture
def storage(azurite: Azurite) -> str:
    """The connection string of the session's Azurite."""
    return azurite.connection_string


@pytest.fixture
async def at(storage: str) -> AsyncIterator[Bench]:
    """A bench on a table of the test's own."""
    async with bench(storage) as made:
        yield made


@pytest.fixture
async def target() -> AsyncIterator[Receiver]:
    """A receiver of calls."""
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str, int], None]:
    """Adds to a figure that is printed, summed up, when all tests are done."""
    return lambda figure, number: record_property("figure", (figure, number))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spreads the files whose tests wait more than they work evenly among the others, so that tests in several
    processes keep the cores busy from the first to the last."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waits = [path for path, tests in files.items() if "stories" in path.parts or _is_about_servers(tests)]
    others = [path for path in files if path not in waits]
    order = [
        *((n / max(len(others), 1), path) for n, path in enumerate(others)),
        *((n / max(len(waits), 1), path) for n, path in enumerate(waits)),
    ]
    items[:] = [item for _, path in sorted(order) for item in files[path]]


def _is_about_servers(tests: list[pytest.Item]) -> bool:
    return any(test.get_closest_marker("servers") for test in tests)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the figures that tests told."""
    figures: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "figure":
                figures[value[0]] += value[1]
    if figures:
        terminalreporter.section("figures")
    for figure, number in figures.items():
        terminalreporter.line(f"{figure}: {number}")
