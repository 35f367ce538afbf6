"""The app against a small model of jobs, through drawn sequences of operations, dispatch and crashes."""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.audit import audit
from tests.harness import Clock, http_job, process, receiving, settings_for
from tests.reliability.post import Post, recover
from tests.wire import Fate, Killed

T = TypeVar("T")
IDS = st.sampled_from(["a", "b"])
INTERVALS = st.sampled_from([30, 60, 90])


@dataclass
class Modelled:
    """A job as it should be. `next` is its first point that nothing has been decided about."""

    start: datetime
    every: timedelta
    next: datetime
    enabled: bool = True
    fired: list[datetime] = field(default_factory=list)
    missed: int = 0
    skipped: int = 0

    def due(self, now: datetime) -> list[datetime]:
        """The points that have come and wait for a decision."""
        return [self.next + n * self.every for n in range(max(0, (now - self.next) // self.every + 1))]

    def dispatched(self, now: datetime) -> None:
        """The newest point that is due fires, those before it are missed (T3)."""
        due = self.due(now) if self.enabled else []
        if due:
            self.missed += len(due) - 1
            self.fired.append(due[-1])
            self.next = due[-1] + self.every

    def resumed(self, now: datetime) -> None:
        """Points before now are passed over (L2)."""
        if not self.enabled:
            passed = [point for point in self.due(now) if point < now]
            self.skipped += len(passed)
            self.next += len(passed) * self.every
        self.enabled = True

    def updated(self, every: timedelta, now: datetime) -> None:
        """Another schedule, from now on; what the old one had come to is not fired any more (L5)."""
        if (self.start, self.every) == (now, every):
            return
        if self.enabled:
            self.missed += len(self.due(now))
        else:
            self.skipped += len(self.due(now))
        self.start, self.every, self.next = now, every, now
        if self.fired and self.fired[-1] >= now:
            self.next += every


class Machine(RuleBasedStateMachine):
    """One process that lives, one that is killed, and the model beside them."""

    def __init__(self, storage: str) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.opened = AsyncExitStack()
        self.clock = Clock()
        self.post = Post(self.clock)
        self.settings = settings_for(storage, PARTITIONS="1")
        self.jobs: dict[str, Modelled] = {}
        self.do(self.open())

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    async def open(self) -> None:
        self.target = await self.opened.enter_async_context(receiving())
        self.at = await self.opened.enter_async_context(process(self.settings, self.clock))
        self.at.wire.mail = self.post.collect

    def teardown(self) -> None:
        self.do(self.opened.aclose())
        self.do(self.loop.shutdown_asyncgens())
        self.loop.close()

    def body(self, every: int, **more: Any) -> dict[str, Any]:
        return http_job(self.target.url, every=every, start=self.clock(), **more)

    async def ask(self, operation: str, job_id: str, body: Any = None) -> int:
        of = "runs" if operation == "run_now" else "jobs"
        answer = await self.at.call(operation, of, id=job_id, body=body)
        return answer.status

    @rule(job_id=IDS, every=INTERVALS)
    def create(self, job_id: str, every: int) -> None:
        status = self.do(self.ask("create", job_id, self.body(every, id=job_id)))
        assert status == (409 if job_id in self.jobs else 201)
        if status == 201:
            self.target.hits = [hit for hit in self.target.hits if hit.job != job_id]
            self.jobs[job_id] = Modelled(self.clock(), timedelta(seconds=every), self.clock())

    @rule(job_id=IDS)
    def suspend(self, job_id: str) -> None:
        assert self.do(self.ask("suspend", job_id)) == (200 if job_id in self.jobs else 404)
        if job_id in self.jobs:
            self.jobs[job_id].enabled = False

    @rule(job_id=IDS)
    def resume(self, job_id: str) -> None:
        assert self.do(self.ask("resume", job_id)) == (200 if job_id in self.jobs else 404)
        if job_id in self.jobs:
            self.jobs[job_id].resumed(self.clock())

    @rule(job_id=IDS, every=INTERVALS)
    def update(self, job_id: str, every: int) -> None:
        if job_id in self.jobs:
            state = "Enabled" if self.jobs[job_id].enabled else "Suspended"
            assert self.do(self.ask("put", job_id, self.body(every, state=state))) == 200
            self.jobs[job_id].updated(timedelta(seconds=every), self.clock())

    @rule(job_id=IDS)
    def run_now(self, job_id: str) -> None:
        assert self.do(self.ask("run_now", job_id)) == (202 if job_id in self.jobs else 404)
        before = len(self.target.hits)
        self.do(self.at.take_runs())
        assert len(self.target.hits) - before == (job_id in self.jobs)

    @rule(job_id=IDS)
    def delete(self, job_id: str) -> None:
        assert self.do(self.ask("delete", job_id)) == (204 if job_id in self.jobs else 404)
        self.jobs.pop(job_id, None)

    @rule(seconds=st.integers(0, 200))
    def tick(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)
        self.do(self.at.dispatch())
        for job in self.jobs.values():
            job.dispatched(self.clock())

    @rule(
        work=st.sampled_from(["dispatch", "suspend", "resume", "put", "delete"]),
        number=st.integers(0, 5),
        strike=st.sampled_from([Fate.DIE_BEFORE, Fate.DIE_AFTER, Fate.LOST]),
        seconds=st.integers(0, 100),
    )
    def crash(self, work: str, number: int, strike: Fate, seconds: int) -> None:
        """Another process dies at its work on job `a`, and the living one recovers."""
        self.clock.advance(seconds=seconds)
        if "a" in self.jobs:
            self.do(self.struck(work, number, strike))
            self.do(recover(self.at, self.post, cycles=2))
            self.do(self.learn())

    async def struck(self, work: str, number: int, strike: Fate) -> None:
        async with process(self.settings, self.clock) as victim:
            victim.wire.fate = lambda line: strike if len(victim.requests) - 1 == number else Fate.DONE
            body = self.body(45) if work == "put" else None
            with suppress(Killed):
                if work == "dispatch":
                    await victim.dispatch()
                else:
                    await victim.call(work, id="a", body=body)

    async def learn(self) -> None:
        """After a crash either may be true: what is there must account for every point; it is modelled now.

        A run that was taken over may be called after a later one.
        """
        for job_id in list(self.jobs):
            answer = await self.at.call("get", id=job_id)
            if answer.status == 404:
                del self.jobs[job_id]
                continue
            job, seen = self.jobs[job_id], answer.body
            recurrence = seen["trigger"]["recurrence"]
            start = datetime.fromisoformat(recurrence["startTime"])
            every = timedelta(seconds=recurrence["interval"])
            if (start, every) != (job.start, job.every):
                job.updated(every, start)
            decided = len(job.fired) + job.missed + job.skipped
            job.enabled = seen["state"] == "Enabled"
            points = job.due(self.clock())
            fired = [hit.scheduled for hit in self.target.hits if hit.job == job_id and ":run-" not in hit.key]
            added = sorted(set(fired) - set(job.fired))
            count = seen["fired"] + seen["missed"] + seen["skipped"] - decided
            assert added == [point for point in points if point in added]
            assert seen["fired"] == len(job.fired) + len(added)
            assert count == len(points) if job.enabled else count <= len(points)
            job.fired += added
            job.missed, job.skipped = seen["missed"], seen["skipped"]
            job.next += count * job.every

    @invariant()
    def all_is_as_modelled(self) -> None:
        assert self.do(audit(self.at.app.store)) == []
        for job_id, job in self.jobs.items():
            seen = self.do(self.at.call("get", id=job_id)).body
            keys = dict.fromkeys(
                hit.key for hit in self.target.hits if hit.job == job_id and ":run-" not in hit.key
            )
            called = [datetime.strptime(key.split(":")[2] + "+0000", "%Y%m%dT%H%M%SZ%z") for key in keys]
            assert called == job.fired
            assert seen["state"] == ("Enabled" if job.enabled else "Suspended")
            assert (seen["fired"], seen["missed"], seen["skipped"]) == (len(job.fired), job.missed, job.skipped)
            if job.enabled:
                assert datetime.fromisoformat(seen["nextOccurrence"]) == job.next


def test_the_app_does_what_the_model_does(storage: str) -> None:
    class OnThisStorage(Machine):
        def __init__(self) -> None:
            super().__init__(storage)

    run_state_machine_as_test(
        OnThisStorage,
        settings=settings(
            max_examples=12,
            stateful_step_count=20,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
