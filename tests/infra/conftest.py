"""Fixtures for the tests of the deployment: the Bicep compiler and what it makes of the templates."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.infra.source import INFRA, ROOT

Bicep = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def bicep() -> Bicep:
    """Runs the Bicep CLI: the one that BICEP names, that is on the PATH, or that lies beside the project."""
    beside = ROOT.parent / "shared" / "tools" / "bicep"
    found = os.environ.get("BICEP") or shutil.which("bicep") or (str(beside) if beside.exists() else None)
    if found is None:
        pytest.skip("there is no Bicep CLI: set BICEP, or put it on the PATH")
    return lambda *args: subprocess.run([found, *args], capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def built(bicep: Bicep) -> "subprocess.CompletedProcess[str]":
    """main.bicep, compiled."""
    return bicep("build", str(INFRA / "main.bicep"), "--stdout")


@pytest.fixture(scope="session")
def template(built: "subprocess.CompletedProcess[str]") -> Any:
    """What the compiler gives to Azure."""
    assert built.returncode == 0, built.stderr
    return json.loads(built.stdout)
