"""Requests drawn from the API's own description, sent to a running host: each answer is one that it documents."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.stories.host import ROOT, HostProcess

HERE = Path(__file__).parent
KEY = "s3cret"


@pytest.fixture
async def host(storage: str) -> AsyncIterator[HostProcess]:
    """A host that demands a key and fires nothing, so that no address drawn by chance is called."""
    quiet = {f"AzureWebJobs.{name}.Disabled": "true" for name in ("dispatch", "poison", "detect")}
    process = HostProcess(storage, DEVHOST_KEY=KEY, HEALTH_KEY=KEY, HEALTH_MAX_DETECTION_AGE="P1D", **quiet)
    await process.start()
    yield process
    await process.kill()


async def faults_found(host: HostProcess, folder: Path, *options: str) -> str:
    """What schemathesis finds, as it says it; nothing, if all is well."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml")),
        *("run", f"{host.url}/api/openapi.json", "--header", f"x-functions-key: {KEY}"),
        *("--seed", "1", "--generation-database", "none", "--no-color", "--no-shrink", *options),
        cwd=folder,
        env=dict(os.environ) | {"PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert "Operations:" in output.decode()
    return "" if process.returncode == 0 else output.decode()


async def test_no_answer_is_undocumented(host: HostProcess, tmp_path: Path) -> None:
    faults = await faults_found(host, tmp_path, "--phases", "examples,fuzzing,stateful", "--max-examples", "3")
    assert not faults, faults


@pytest.mark.soak
async def test_no_answer_is_undocumented_whatever_is_asked(host: HostProcess, tmp_path: Path) -> None:
    faults = await faults_found(host, tmp_path, "--max-examples", "150", "--continue-on-failure")
    assert not faults, faults
