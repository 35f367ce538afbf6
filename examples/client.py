"""A client of timerjobs in one file, to be copied and changed: Python 3.11 or newer, and nothing to install.

It is built on the standard library's urllib, so it goes into any program and brings nothing to keep up to date.
It blocks; from async code, call it by `asyncio.to_thread`. Many jobs are better sent by `bulk` than one by one.

    client = Client("http://127.0.0.1:7071/api", key="")
    report = call("POST", "https://example.org/report", body={"day": "@trigger().scheduledTime"})
    client.put("nightly-report", every_day("02:30", report, zone="Pacific Standard Time"))

    client.edit("nightly-report", lambda job: job | {"description": "For finance"})
    print([job["id"] for job in client.jobs(prefix="nightly-")])
    client.delete("nightly-report")

What may pass (429, 5xx, no answer) is tried again, with a growing, random back-off or after `Retry-After`, but
only where a repetition does no harm: an answer can get lost after the work was done.
"""

import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

Json = dict[str, Any]
MAX_LINES = 10_000  # of one bulk request
MAX_BULK_BYTES = 15 * 1024 * 1024


class Refused(Exception):
    """The API said no. `status` is HTTP's; `problem` what it says (RFC 9457), with the fields in `errors`."""

    def __init__(self, status: int, problem: Json) -> None:
        super().__init__(f"{status}: {problem.get('detail') or problem.get('title') or 'no reason given'}")
        self.status = status
        self.problem = problem


class Unreachable(Exception):
    """No answer came, though it was tried again and again. Whether the work was done is not known."""


@dataclass(frozen=True)
class Job:
    """A job as the API answers it, and the version (`etag`) at which it was."""

    id: str
    etag: str
    body: Json


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def job(self) -> Job:
        return Job(self.json["id"], self.headers["ETag"], self.json)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The key must not follow a redirect to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client:
    """The API at `url` (up to and with `/api`), called with a function key, or none for the local host.

    `tries`: how often a request is sent at most. `timeout`: seconds for each; bulk requests have four minutes.
    """

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        tries: int = 6,
        timeout: float = 30,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._url = url.rstrip("/")
        self._key = key
        self._tries = tries
        self._timeout = timeout
        self._sleep = sleep
        self._opener = urllib.request.build_opener(_NoRedirects)

    def create(self, definition: Mapping[str, Any]) -> Job:
        """A new job, whose id the server makes: of the Idempotency-Key, so that a repetition makes no second one.

        For a job that has an id of its own, `put` with `only_new`.
        """
        headers = {"Idempotency-Key": uuid4().hex}
        return self._send("POST", "/jobs", definition, headers).job

    def put(
        self, job_id: str, definition: Mapping[str, Any], *, if_match: str | None = None, only_new: bool = False
    ) -> Job:
        """Makes the job, or replaces it: only at the version `if_match`, or only if there is none (`only_new`).

        Raises Refused 412 where such a condition does not hold; it may be one's own doing, if an answer got lost.
        """
        headers = {"If-None-Match": "*"} if only_new else {}
        headers |= {"If-Match": if_match} if if_match else {}
        return self._send("PUT", _path(job_id), definition, headers).job

    def edit(self, job_id: str, change: Callable[[Json], Mapping[str, Any]]) -> Job:
        """Replaces the job by what `change` makes of it; anew, if somebody else was quicker.

        `change` may be called several times, and may meet what it made itself.
        """
        for _ in range(self._tries):
            job = self.get(job_id)
            try:
                return self.put(job_id, change(job.body), if_match=job.etag)
            except Refused as error:
                if error.status != 412:
                    raise
        raise Unreachable(f"job {job_id!r} keeps being changed")

    def get(self, job_id: str) -> Job:
        """The job. Raises Refused 404."""
        return self._send("GET", _path(job_id)).job

    def delete(self, job_id: str, *, if_match: str | None = None) -> None:
        """Deletes the job; it is no fault if there is none."""
        try:
            self._send("DELETE", _path(job_id), headers={"If-Match": if_match} if if_match else {})
        except Refused as error:
            if error.status != 404:
                raise

    def suspend(self, job_id: str) -> Job:
        """Nothing of the job is fired any more, until `resume`."""
        return self._send("POST", _path(job_id) + "/suspend").job

    def resume(self, job_id: str) -> Job:
        """The job is fired again."""
        return self._send("POST", _path(job_id) + "/resume").job

    def run_now(self, job_id: str) -> Json:
        """A run beside the schedule. Not repeated where no answer came: that might be a second run."""
        run: Json = self._send("POST", _path(job_id) + "/run", repeatable=False).json
        return run

    def runs(self, job_id: str) -> list[Json]:
        """The job's runs, newest first."""
        runs: list[Json] = self._send("GET", _path(job_id) + "/runs").json["value"]
        return runs

    def jobs(self, **filters: str) -> Iterator[Json]:
        """All jobs, page by page; `prefix`, `state` and `tag` (as `name:value`) narrow them down."""
        query = filters
        while True:
            page = self._send("GET", f"/jobs?{urlencode(query)}").json
            yield from page["value"]
            if page["continuation"] is None:
                return
            query = filters | {"continuation": page["continuation"]}

    def bulk(self, operations: Iterable[Mapping[str, Any]]) -> Iterator[Json]:
        """Carries out many operations, `{"op": "put" | "delete" | "suspend" | "resume" | "run", "id", "job"}`.

        Gives an answer for each, in order, with its `status` and, where it failed, the `problem`.
        """
        for batch in _batches(operations):
            rest: Sequence[Mapping[str, Any]] = batch
            while rest:
                answers = self._bulk(rest)
                yield from answers
                if not answers:
                    raise Unreachable("the API ended a bulk request without beginning it")
                rest = rest[len(answers) :]

    def _bulk(self, operations: Sequence[Mapping[str, Any]]) -> list[Json]:
        """The answers that came before time ran out."""
        body = "".join(json.dumps(operation) + "\n" for operation in operations)
        answer = self._send(
            "POST",
            "/bulk/jobs",
            body.encode(),
            {"Content-Type": "application/x-ndjson"},
            repeatable=all(each["op"] != "run" and "id" in each for each in operations),
            timeout=max(self._timeout, 240),
        )
        answers = [json.loads(line) for line in answer.body.splitlines()]
        return [each for each in answers if "stoppedAt" not in each]

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        repeatable: bool = True,
        timeout: float | None = None,
    ) -> _Answer:
        """The answer, which is a good one. Raises Refused, Unreachable."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, method=method)
        given = {"Content-Type": "application/json"} | ({"x-functions-key": self._key} if self._key else {})
        for name, value in (given | dict(headers or {})).items():
            request.add_header(name, value)
        for attempt in range(1, self._tries + 1):
            try:
                answer = self._ask(request, timeout or self._timeout)
            except (OSError, http.client.HTTPException) as error:
                if not repeatable or attempt == self._tries:
                    raise Unreachable(f"{method} {path}: {error}") from error
                self._sleep(_back_off(attempt))
                continue
            if answer.status < 300:
                return answer
            may_pass = answer.status == 429 or (answer.status >= 500 and repeatable)
            if not may_pass or attempt == self._tries:
                raise Refused(answer.status, _problem(answer))
            self._sleep(max(_back_off(attempt), _asked_for(answer)))
        raise ValueError("tries must be 1 or more")

    def _ask(self, request: urllib.request.Request, timeout: float) -> _Answer:
        try:
            with self._opener.open(request, timeout=timeout) as response:
                return _Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            with error:
                return _Answer(error.code, error.headers, error.read())


def call(method: str, uri: str, *, body: Any = None, **inputs: Any) -> Json:
    """An Http action; `inputs` are its others, as `headers` or `retryPolicy`."""
    given = {"method": method, "uri": uri} | ({} if body is None else {"body": body})
    return {"type": "Http", "inputs": given | inputs}


def every_day(at: str, action: Json, *, zone: str = "UTC") -> Json:
    """A job that does `action` each day at a time such as `02:30`, as the clocks of a time zone have it."""
    hour, minute = (int(part) for part in at.split(":"))
    recurrence = {
        "frequency": "Day",
        "interval": 1,
        "timeZone": zone,
        "schedule": {"hours": [hour], "minutes": [minute]},
    }
    return {
        "trigger": {"type": "Recurrence", "recurrence": recurrence, "skipInitialRun": True},
        "actions": {"Action": action},
    }


def _path(job_id: str) -> str:
    return f"/jobs/{quote(job_id, safe='')}"


def _batches(operations: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """The operations, as many at a time as one request may carry."""
    batch: list[Mapping[str, Any]] = []
    size = 0
    for operation in operations:
        length = len(json.dumps(operation)) + 1
        if batch and (len(batch) == MAX_LINES or size + length > MAX_BULK_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(operation)
        size += length
    if batch:
        yield batch


def _back_off(attempt: int) -> float:
    """Seconds before the next attempt: random, so that many clients do not come back at once."""
    return random.uniform(0.1, min(30.0, 0.5 * 2**attempt))


def _asked_for(answer: _Answer) -> float:
    """The seconds of a `Retry-After`."""
    text = answer.headers.get("Retry-After", "")
    return min(float(text), 300.0) if text.isascii() and text.isdigit() else 0.0


def _problem(answer: _Answer) -> Json:
    """What the answer says is wrong; the platform's own answers say nothing."""
    try:
        problem = json.loads(answer.body)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
