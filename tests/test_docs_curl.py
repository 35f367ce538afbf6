"""The shell examples with curl in README and docs, and the requests of test.http, sent to a running host."""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from tests.stories.host import HostProcess

pytestmark = pytest.mark.servers

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LOCAL = "http://127.0.0.1:7071"
KEY = "s3cret"
# Fails where an answer is an error, and shows it.
CURL = 'curl() { command curl --silent --show-error --fail-with-body --max-time 60 "$@" && echo; }'


class Example(NamedTuple):
    """A fenced shell example; `kind` is what stands behind `sh` in its fence."""

    page: str
    kind: str
    text: str


EXAMPLES = [
    Example(page.name, kind.strip(), text)
    for page in PAGES
    for kind, text in re.findall(r"^```sh(.*)\n((?:.*\n)*?)```$", page.read_text(), re.MULTILINE)
]
SENT = [example for example in EXAMPLES if not example.kind and re.search(r"^curl ", example.text, re.MULTILINE)]


@pytest.fixture
async def host(storage: str) -> AsyncIterator[HostProcess]:
    """A host that demands a key only where a test says so."""
    process = HostProcess(storage)
    yield process
    await process.kill()


async def shell(script: str, folder: Path, **env: str) -> tuple[int, str]:
    """The exit status and the output of a script."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euc", script),
        cwd=folder,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "no_proxy": "*"} | env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


def here(text: str, host: HostProcess) -> str:
    return text.replace(LOCAL, host.url)


def test_there_are_examples_and_all_are_to_this_machine() -> None:
    assert {example.page for example in SENT} == {"README.md", "security.md"}
    for example in SENT:
        assert re.findall(r"https?://[^/\s\"']+", example.text.replace(LOCAL, "")) == []


@pytest.mark.parametrize("page", sorted({example.page for example in SENT}))
async def test_the_curl_examples_of_a_page_work(page: str, host: HostProcess, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine")
    host.env["DEVHOST_KEY"] = KEY if page == "security.md" else ""
    await host.start()
    for example in SENT:
        if example.page == page:
            status, output = await shell(f"{CURL}\n{here(example.text, host)}", tmp_path, KEY=KEY)
            assert status == 0, f"{example.text}\n{output}"
    if page == "security.md":
        status, output = await shell(f"{CURL}\ncurl {host.url}/api/jobs", tmp_path)
        assert status != 0
        assert "401" in output


async def test_the_requests_of_test_http_work(host: HostProcess) -> None:
    text = (ROOT / "test.http").read_text().replace("{{base}}", f"{LOCAL}/api")
    await host.start()
    asked = re.split(r"^###.*\n", here(text, host), flags=re.MULTILINE)[1:]
    async with aiohttp.ClientSession() as session:
        for request in asked:
            head, _, body = request.partition("\n\n")
            line, *headers = head.strip().splitlines()
            method, address = line.split(" ", 1)
            sent = dict(header.split(": ", 1) for header in headers)
            async with session.request(method, address, data=body.strip().encode(), headers=sent) as answer:
                assert answer.status < 300, f"{request}\n{await answer.text()}"
    assert len(asked) >= 9
    assert json.dumps(asked).count(host.url) >= len(asked)
