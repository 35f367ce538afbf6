"""examples/client.py, against a running host: also where answers get lost on the way, or say to come again."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from examples import client as example
from examples.client import Client, Refused, Unreachable, call, every_day
from tests.harness import Hit, Receiver
from tests.stories.host import ROOT, HostProcess

KEY = "s3cret"
JOB = every_day("02:30", call("POST", "http://127.0.0.1:9/report"), zone="Pacific Standard Time")


@pytest.fixture
async def host(storage: str) -> AsyncIterator[HostProcess]:
    process = HostProcess(storage, DEVHOST_KEY=KEY)
    await process.start()
    yield process
    await process.kill()


class Way:
    """What lies between a client and the host. `mishaps` are taken one for each request, until none is left.

    A mishap is what is answered instead: before the host is asked, or after (`lost`), or no answer at all.
    """

    def __init__(self, host: HostProcess, target: Receiver) -> None:
        self.host = host
        self.mishaps: list[str] = []
        self.waits: list[float] = []
        self.hits = target.hits
        target.answer = self._pass
        self.client = Client(target.url.removesuffix("/hook") + "/api", KEY, sleep=self.waits.append)

    async def _pass(self, hit: Hit) -> web.Response:
        mishap = self.mishaps.pop(0) if self.mishaps else ""
        if mishap == "busy":
            return web.Response(status=429, headers={"Retry-After": "7"})
        if mishap == "down":
            return web.Response(status=503, text="the platform is starting")
        if mishap == "elsewhere":
            return web.Response(status=307, headers={"Location": "http://127.0.0.1:9/"})
        async with (
            aiohttp.ClientSession() as session,
            session.request(hit.method, self.host.url + hit.path, data=hit.body, headers=hit.headers) as answer,
        ):
            body = await answer.read()
        if mishap == "lost":
            return web.Response(status=502)
        headers = {name: answer.headers[name] for name in ("Content-Type", "ETag") if name in answer.headers}
        return web.Response(status=answer.status, body=body, headers=headers)


@pytest.fixture
def way(host: HostProcess, target: Receiver) -> Way:
    return Way(host, target)


async def test_jobs_are_put_read_changed_listed_and_deleted(host: HostProcess) -> None:
    def use() -> None:
        client = Client(f"{host.url}/api", KEY)
        made = client.put("a.1", JOB, only_new=True)
        assert made.body["describe"] == "Every day at 02:30, Pacific Standard Time"
        assert client.get("a.1") == made
        with pytest.raises(Refused, match="412: If-None-Match: the job exists"):
            client.put("a.1", JOB, only_new=True)
        changed = client.put("a.1", JOB | {"description": "new"}, if_match=made.etag)
        with pytest.raises(Refused, match="412"):
            client.put("a.1", JOB, if_match=made.etag)
        with pytest.raises(Refused, match="412"):
            client.delete("a.1", if_match=made.etag)
        assert client.get("a.1") == changed
        assert client.suspend("a.1").body["state"] == "Suspended"
        assert client.run_now("a.1")["seq"] == 1
        assert [run["seq"] for run in client.runs("a.1")] == [1]
        assert client.resume("a.1").body["state"] == "Enabled"
        named = client.create(JOB)
        client.put("b", JOB)
        assert {job["id"] for job in client.jobs(pageSize="1")} == {"a.1", "b", named.id}
        assert [job["id"] for job in client.jobs(prefix="a.")] == ["a.1"]
        for _ in range(2):
            client.delete("a.1")
        with pytest.raises(Refused) as refused:
            client.put("c", every_day("24:00", JOB["actions"]["Action"]))
        assert refused.value.problem["errors"][0]["field"] == "trigger.recurrence.schedule.hours"
        with pytest.raises(Refused, match="401"):
            Client(f"{host.url}/api", "wrong").get("b")

    await asyncio.to_thread(use)
    assert await host.stop() == 0


async def test_what_may_pass_is_tried_again(way: Way) -> None:
    def use() -> None:
        way.mishaps = ["busy", "down", "lost"]
        made = way.client.put("a", JOB)
        assert made.body["generation"] == 1
        assert len(way.waits) == 3
        assert way.waits[0] >= 7
        assert all(wait < 30 for wait in way.waits[1:])

        way.mishaps = ["", "lost"]
        edited = way.client.edit("a", lambda job: job | {"description": f"was {job['generation']}"})
        assert edited.body["description"] == "was 2"  # what its first attempt made, whose answer it did not see

        way.mishaps = ["lost"]
        way.client.delete("a")
        with pytest.raises(Refused, match="404"):
            way.client.get("a")

        way.client.put("b", JOB)
        way.mishaps = ["lost"]
        with pytest.raises(Refused, match="502"):  # or it would be done twice
            way.client.run_now("b")
        assert len(way.client.runs("b")) == 1
        way.mishaps = ["down"] * 9
        with pytest.raises(Refused, match="503"):
            way.client.get("b")
        way.mishaps = ["elsewhere"]
        with pytest.raises(Refused, match="307"):
            way.client.get("b")

    await asyncio.to_thread(use)


async def test_an_edit_meets_that_of_another(way: Way) -> None:
    def use() -> None:
        way.client.put("a", JOB)
        other = Client(f"{way.host.url}/api", KEY)
        tags = [{"by": "other"}]

        def change(job: Any) -> Any:
            if tags:
                other.put("a", job | {"tags": tags.pop()})
            return job | {"description": "mine"}

        body = way.client.edit("a", change).body
        assert (body["tags"], body["description"]) == ({"by": "other"}, "mine")

    await asyncio.to_thread(use)


async def test_a_created_job_is_created_once(way: Way) -> None:
    if "idempotency-key" not in (ROOT / "shared" / "web" / "jobs.py").read_text():
        pytest.skip("POST /jobs does not take Idempotency-Key yet")

    def use() -> None:
        way.mishaps = ["lost"]
        made = way.client.create(JOB)
        assert [job["id"] for job in way.client.jobs()] == [made.id]

    await asyncio.to_thread(use)


async def test_many_operations_are_carried_out_in_order(way: Way) -> None:
    if "bulk" not in (ROOT / "function_app.py").read_text():
        pytest.skip("there is no bulk route yet")

    def use() -> None:
        operations: list[dict[str, Any]] = [{"op": "put", "id": f"j{n}", "job": JOB} for n in range(40)]
        operations += [{"op": "suspend", "id": "j1"}, {"op": "delete", "id": "j2"}, {"op": "delete", "id": "none"}]
        operations += [{"op": "put", "id": "bad", "job": {}}]
        way.mishaps = ["lost"]
        answers = list(way.client.bulk(operations))
        made_again = [200, 200, 201] + [200] * 37  # the request whose answer was lost had deleted one
        assert [answer["status"] for answer in answers] == [*made_again, 200, 204, 404, 400]
        assert answers[-1]["problem"]["errors"][0]["field"].startswith("job.")
        assert way.client.get("j1").body["state"] == "Suspended"
        assert len(list(way.client.jobs())) == 39
        way.mishaps = ["lost"]
        with pytest.raises(Refused, match="502"):
            list(way.client.bulk([{"op": "run", "id": "j3"}]))
        assert len(way.client.runs("j3")) == 1

    await asyncio.to_thread(use)


async def test_a_bulk_request_that_stops_is_gone_on_with(target: Receiver) -> None:
    """Against a stand-in, since the API stops only after minutes: two lines are done in each request."""

    async def two(hit: Hit) -> web.Response:
        lines = hit.body.splitlines()
        text = "".join(f'{{"line": {n}, "status": 204}}\n' for n in range(1, len(lines[:2]) + 1))
        return web.Response(text=text + ('{"stoppedAt": 3}\n' if len(lines) > 2 else ""))

    target.answer = two
    client = Client(target.url)
    answers = await asyncio.to_thread(lambda: list(client.bulk({"op": "delete", "id": f"{n}"} for n in range(5))))
    assert [answer["status"] for answer in answers] == [204] * 5
    assert [len(hit.body.splitlines()) for hit in target.hits] == [5, 3, 1]


async def test_no_answer_at_all_is_told_after_the_last_attempt(unused_tcp_port: int) -> None:
    waits: list[float] = []
    client = Client(f"http://127.0.0.1:{unused_tcp_port}/api", tries=3, sleep=waits.append)
    with pytest.raises(Unreachable, match="GET /jobs/a"):
        await asyncio.to_thread(client.get, "a")
    assert len(waits) == 2
    with pytest.raises(Unreachable):
        await asyncio.to_thread(client.run_now, "a")
    assert len(waits) == 2


def parts() -> Iterator[str]:
    """The lines of code in the module's docstring."""
    for block in re.findall(r"(?:^    .*\n|^\n)+", example.__doc__ or "", re.MULTILINE):
        yield from (line[4:] for line in block.splitlines())


async def test_its_docstring_works(host: HostProcess, capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(parts()).replace("http://127.0.0.1:7071/api", f"{host.url}/api").replace('""', repr(KEY))
    await asyncio.to_thread(exec, code, vars(example).copy())
    assert capsys.readouterr().out == "['nightly-report']\n"
