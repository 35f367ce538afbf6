"""Every example of README, docs, examples and test.http, sent as it is printed to one fresh run, in order."""

import asyncio
import json
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from examples import client as client_example
from examples import host as host_example
from examples import host_client as host_client_example
from shared.settings import read_settings
from tests.harness import until
from tests.recurrence.test_docs import EXAMPLES as RECURRENCES
from tests.recurrence.test_docs import Example as RecurrenceExample
from tests.stories.host import ROOT, FreshHost, HostProcess
from tests.test_docs_jobs import FRAGMENTS, STAMP

README = ROOT / "README.md"
LOCAL = "http://127.0.0.1:7071"
LISTENS = "8088"  # where examples/host.py is activated
KEY = "s3cret"
# Fails where an answer is an error, and shows it.
CURL = 'curl() { command curl --silent --show-error --fail-with-body --max-time 60 "$@" && echo; }'
# Kinds of JSON that other tests hold against what the app answers: tests/test_docs_jobs.py.
SHOWN = ("bulk-answer", "event failed", "event occurrence", "logic-app", "record missed", "record nightly")
# Shell examples that are not requests to a local run, by how they begin.
NOT_SENT = ("make run", "make test", "cp local.settings.sample.json")

# What a page tells one to do with a job that it shows, besides.
NEXT = {"warm-up": {"/jobs/warm-up/run": 202, "/jobs/warm-up/resume": 200}}


class Block(NamedTuple):
    """A fenced example: its language, what else stands in its fence, its text."""

    page: Path
    language: str
    kind: str
    text: str


def pages() -> list[Path]:
    """README, and the docs as it lists them."""
    listed = re.findall(r"^- \[(docs/\w+\.md)\]", README.read_text(), re.MULTILINE)
    return [README, *(ROOT / page for page in listed)]


def blocks(page: Path) -> list[Block]:
    found = re.findall(r"^```(\w+)(.*)\n((?:.*\n)*?)```$", page.read_text(), re.MULTILINE)
    return [Block(page, language, kind.strip(), text) for language, kind, text in found]


def is_sent(block: Block) -> bool:
    """Whether it is a shell example with requests to a local run; `kind` says of others what they need."""
    return block.language == "sh" and not block.kind and "curl " in block.text


async def shell(script: str, folder: Path, **env: str) -> tuple[int, str]:
    """The exit status and the output of a script."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", script),
        cwd=folder,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "no_proxy": "*"} | env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


class Newcomer:
    """Sends examples to a host as somebody would who follows the pages; `faults` says what did not work."""

    def __init__(self, host: HostProcess, session: aiohttp.ClientSession, folder: Path) -> None:
        self._host = host
        self._session = session
        self._folder = folder
        self.faults: list[str] = []
        self.done = 0

    def here(self, text: str) -> str:
        return text.replace(LOCAL, self._host.url)

    def note(self, what: str, good: object, seen: object) -> None:
        """Counts an example, and keeps it if it did not work."""
        self.done += 1
        if not good:
            self.faults.append(f"{what}\n-> {seen}")

    async def send(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
        sent = {"Content-Type": "application/json"} | headers
        address = self._host.url + path
        data = None if body is None else self.here(body).encode()
        async with self._session.request(method, address, data=data, headers=sent) as answer:
            return answer.status, await answer.text()

    async def post(self, path: str, body: Any, wanted: int = 201, **headers: str) -> str:
        """Sends an example by POST; what is answered, which must have the status that is wanted."""
        text = body if isinstance(body, str) else json.dumps(body)
        status, answer = await self.send("POST", f"/api{path}", text, **headers)
        self.note(f"POST {path} {text}", status == wanted, f"{status} {answer}")
        return answer

    async def shell(self, text: str) -> None:
        script = self.here(text) if "curl -f" in text else f"{CURL}\n{self.here(text)}"
        status, output = await shell(script, self._folder, KEY=KEY, HOST=self._host.url)
        self.note(text, status == 0, f"{status} {output}")

    async def json(self, block: Block) -> None:
        """A JSON example of a page, by its kind."""
        kind, _, name = block.kind.partition(" ")
        if kind in FRAGMENTS:
            members = json.loads(block.text if block.text.startswith("{") else f"{{{block.text}}}")
            await self.post("/jobs", FRAGMENTS[kind](members))
        elif kind == "bulk":
            await self.bulk(block)
        elif kind == "timer":
            answer = await self.post("/CreateTimerJob", block.text)
            self.note("CreateTimerJob", answer.startswith("Next execution time will be at "), answer)
        elif kind == "setting":
            sample = json.loads((ROOT / "local.settings.sample.json").read_text())["Values"]
            allowed = read_settings(sample | {name: block.text.strip()})
            same = name == "OUTBOUND_ALLOW" or json.loads(sample.get(name, "null")) == json.loads(block.text)
            self.note(f"setting {name}", allowed and same, sample.get(name))
        elif kind == "problem":
            await self.problem(block)
        elif not kind and block.page.name == "recurrence.md":
            await self.preview(block.text)
        else:
            self.note(str(block), not kind, "is of a kind that this test does not know")
            await self.post("/jobs", block.text)
            for path, status in NEXT.get(json.loads(block.text)["id"], {}).items():
                await self.post(path, "", status)

    async def bulk(self, block: Block) -> None:
        """The lines of a bulk are answered as the page shows; those whose answer it does not show succeed."""
        answer = await self.post("/bulk/jobs", block.text, 200, **{"Content-Type": "application/x-ndjson"})
        (shown,) = [each.text for each in blocks(block.page) if each.kind == "bulk-answer"]
        wanted = {line["line"]: line for line in map(json.loads, shown.splitlines())}
        for line in map(json.loads, answer.splitlines()):
            same = STAMP.sub("", json.dumps(line)) == STAMP.sub("", json.dumps(wanted.get(line["line"], line)))
            good = line["status"] < 300 or line["line"] in wanted
            self.note(f"line {line['line']} of the bulk of {block.page.name}", same and good, line)

    async def problem(self, block: Block) -> None:
        """README: what is answered to a wrong hour; the text of the reasons is left out there."""
        schedule = {"frequency": "Day", "interval": 1, "schedule": {"hours": [25]}}
        action = {"type": "Http", "inputs": {"method": "GET", "uri": f"{LOCAL}/echo"}}
        wrong = {"trigger": {"type": "Recurrence", "recurrence": schedule}, "action": action}
        answer = json.loads(await self.post("/jobs", wrong, 400))
        for told in (answer, *answer["errors"]):
            told.update({name: "…" for name in ("detail", "reason") if name in told})
        self.note(block.text, answer == json.loads(block.text), answer)

    async def preview(self, text: str) -> None:
        """docs/recurrence.md: a preview shows the occurrences that the page lists."""
        trigger = json.loads(text)
        example = next((each for each in RECURRENCES if each.trigger == trigger), None)
        if example is None:
            await self.post("/preview", {"trigger": trigger}, 200)
            return
        for kind in example.kinds:
            asked = {"trigger": trigger | {"type": kind}, "createdAt": example.created, "count": 40}
            answer = json.loads(await self.post("/preview", asked, 200))
            found = [each["scheduledTime"] for each in answer["occurrences"]]
            self.note(text, lists(example, found), found)

    async def http_file(self) -> None:
        """The requests of test.http; none of its lines of a bulk but `nowhere` fails."""
        text = (ROOT / "test.http").read_text().replace("{{base}}", "/api")
        for request in re.split(r"^###.*\n", text, flags=re.MULTILINE)[1:]:
            head, _, body = request.partition("\n\n")
            line, *headers = head.strip().splitlines()
            method, path = line.split(" ", 1)
            sent = dict(header.split(": ", 1) for header in headers)
            status, answer = await self.send(method, path, body.strip() or None, **sent)
            self.note(request, status < 300, f"{status} {answer}")
            if "bulk" in path:
                refused = [each for each in map(json.loads, answer.splitlines()) if each["status"] >= 300]
                self.note(request, [each["id"] for each in refused] == ["nowhere"], answer)


def lists(example: RecurrenceExample, found: list[str]) -> bool:
    """Whether the page's list is how these begin; `...` stands there for any number of them."""
    beginning, _, later = example.occurrences.partition("...\n")
    text = "\n".join(found) + "\n"
    return text.startswith(beginning) and f"\n{later}" in text


def code_of(doc: str | None) -> str:
    """The indented lines of a docstring."""
    return textwrap.dedent("\n".join(re.findall(r"^    .*$|^$", doc or "", re.MULTILINE)))


async def test_the_curl_examples_of_security_need_the_key_that_they_send(storage: str, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine")
    host = HostProcess(storage, DEVHOST_KEY=KEY)
    await host.start()
    try:
        sent = [block.text for block in blocks(ROOT / "docs" / "security.md") if is_sent(block)]
        assert sent
        for text in sent:
            status, output = await shell(f"{CURL}\n{text.replace(LOCAL, host.url)}", tmp_path, KEY=KEY)
            assert status == 0, f"{text}\n{output}"
        status, output = await shell(f"{CURL}\ncurl {host.url}/api/jobs", tmp_path)
        assert status != 0
        assert "401" in output
    finally:
        await host.kill()


@pytest.fixture
async def fresh(tmp_path: Path) -> AsyncIterator[FreshHost]:
    host = FreshHost(tmp_path / "app")
    await host.start()
    yield host
    await host.kill()


def test_readme_lists_every_page() -> None:
    assert set(pages()) == {README, *(ROOT / "docs").glob("*.md")}


def test_every_example_has_a_use() -> None:
    found = [block for page in pages() for block in blocks(page)]
    assert {block.language for block in found} == {"sh", "json", "text", "python", "kusto"}
    left = [block.text for block in found if block.language == "sh" and not block.kind and not is_sent(block)]
    assert [text for text in left if not text.startswith(NOT_SENT)] == []
    assert {block.kind for block in found if block.language == "sh"} == {"", "run", "azure"}
    for block in filter(is_sent, found):
        assert re.findall(r"https?://[^/\s\"']+", block.text.replace(LOCAL, "")) == []


async def test_all_examples_work_one_after_the_other(
    fresh: FreshHost, tmp_path: Path, unused_tcp_port: int
) -> None:
    if not (shutil.which("curl") and shutil.which("jq")):
        pytest.skip("there is no curl, or no jq, on this machine")
    async with aiohttp.ClientSession() as session:
        newcomer = Newcomer(fresh, session, tmp_path)
        await newcomer.shell("\n".join(re.findall(r"^  (curl .*)$", "".join(fresh.log), re.MULTILINE)))
        for page in pages():
            for block in blocks(page):
                if is_sent(block):
                    await newcomer.shell(block.text)
                elif block.language == "json" and block.kind not in SHOWN:
                    await newcomer.json(block)
        await newcomer.http_file()
        assert newcomer.done > 100
    assert newcomer.faults == [], "\n\n".join(newcomer.faults)
    await python_examples(fresh)
    await host_example_is_woken(fresh, unused_tcp_port)


async def python_examples(fresh: FreshHost) -> None:
    """The code in the docstrings of both clients; that of hosts goes on for ever, so its work ends it."""
    code = code_of(client_example.__doc__).replace(LOCAL, fresh.url)
    await asyncio.to_thread(exec, code, vars(client_example).copy())
    status, answer = await fresh.call("GET", "/jobs/nightly-report")
    assert status == 404, answer

    class Done(Exception):
        pass

    def work(instance: Any) -> None:
        assert instance.name["jobId"] == "nightly"  # of docs/activation.md
        instance.complete({})
        raise Done

    code = code_of(host_client_example.__doc__).replace(LOCAL, fresh.url)
    with pytest.raises(Done):
        await asyncio.to_thread(exec, code, vars(host_client_example) | {"work": work})
    _, runs = await fresh.call("GET", "/jobs/nightly/runs")
    assert [run["status"] for run in runs["value"]] == ["Succeeded"]


@asynccontextmanager
async def running(command: str) -> AsyncIterator[list[str]]:
    """A printed command while it runs, by this Python; its lines so far."""
    _, *arguments = shlex.split(command)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    told: list[str] = []

    async def read() -> None:
        assert process.stdout
        async for line in process.stdout:
            told.append(line.decode())

    reading = asyncio.create_task(read())
    try:
        yield told
    finally:
        process.kill()
        await process.wait()
        await reading


async def host_example_is_woken(fresh: FreshHost, port: int) -> None:
    """examples/host.py, by the commands of its docstring."""
    commands = code_of(host_example.__doc__).replace(LISTENS, str(port)).replace(LOCAL, fresh.url)
    start, create = commands.strip().split("\n", 1)
    async with running(f"{start} --url {fresh.url}") as told:
        await until(lambda: "listening" in "".join(told))
        status, output = await shell(f"{CURL}\n{create}", ROOT)
        assert status == 0, output
        await until(lambda: '"what": "completed"' in "".join(told), 120)
    _, runs = await fresh.call("GET", "/jobs/steps/runs")
    assert [run["status"] for run in runs["value"]] == ["Succeeded"]
