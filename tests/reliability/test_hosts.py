"""A crash at every storage call of what concerns hosts, and a lost answer of each: every run ends once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

import workflows.countdown  # noqa: F401  registers itself
from shared.settings import Settings
from tests.activation.support import NIGHTLY, RemoteHost, host, hosted, saving
from tests.audit import audit
from tests.harness import NOON, Bench, Clock, process, settings_for
from tests.reliability.post import Post, recover
from tests.wire import Fate, Killed

EVERY = 9_000_000  # one occurrence, and none to come while a test lasts
COUNTDOWN = "example/countdown"


@dataclass
class Play:
    """One point: `job` is its job; `host` and `instance` what `prepare` made; `answers` what the victim said."""

    at: Bench
    job: str
    host: RemoteHost | None = None
    instance: Any = None
    answers: list[Any] = field(default_factory=list)

    async def ask(self, victim: Bench, route: str, body: Any = None) -> Any:
        """Asks the victim for something of the host's."""
        assert self.host
        answer = await victim.call(route, "hosts", body=body, host=self.host.id, query={})
        self.answers.append(answer)
        return answer


Step = Callable[[Bench, Play], Awaitable[Any]]


async def create(at: Bench, play: Play) -> None:
    await at.create(id=play.job, **hosted(EVERY, start=at.clock()))


async def unattended(at: Bench, play: Play) -> None:
    activation = {"site": "http://127.0.0.1:9"}
    await at.create(id=play.job, **hosted(EVERY, start=at.clock(), activation=activation))
    await at.dispatch()
    await at.app.store.hosts.clear(NIGHTLY)
    at.clock.advance(seconds=61)


async def fire(at: Bench, play: Play) -> None:
    await create(at, play)
    await at.dispatch()


async def loaded(at: Bench, play: Play) -> None:
    await fire(at, play)
    play.host = await host(at)
    play.instance = await play.host.try_load()
    assert play.instance["jobId"] == play.job


async def registered(at: Bench, play: Play) -> None:
    await fire(at, play)
    play.host = await host(at)


async def lost(at: Bench, play: Play) -> None:
    await loaded(at, play)
    at.clock.advance(seconds=66)


async def one_at_a_time(at: Bench, play: Play) -> None:
    body = hosted(EVERY, start=at.clock())
    body["trigger"]["runtimeConfiguration"] = {"concurrency": {"runs": 1, "maximumWaitingRuns": 3}}
    await at.create(id=play.job, **body)
    await at.dispatch()
    await at.call("run_now", "runs", id=play.job)
    play.host = await host(at)
    play.instance = await play.host.try_load()


async def idle(at: Bench, play: Play) -> None:
    await loaded(at, play)
    assert play.host
    until = (at.clock() + timedelta(seconds=20)).isoformat().replace("+00:00", "Z")
    await play.host.save(play.instance, state="idle", unlock=True, pendingTimer=until)
    at.clock.advance(seconds=20)


async def countdown(at: Bench, play: Play) -> None:
    parameters = {"from": 1, "pause": 20}
    await at.create(id=play.job, **hosted(EVERY, COUNTDOWN, at.clock(), parameters=parameters))
    await at.dispatch()


def saves(**more: Any) -> Step:
    async def save(victim: Bench, play: Play) -> None:
        await play.ask(victim, "save", saving(play.instance, **more))

    return save


def asks(route: str) -> Step:
    async def ask(victim: Bench, play: Play) -> None:
        await play.ask(victim, route)

    return ask


async def loads_it(victim: Bench, play: Play) -> None:
    await play.ask(victim, "load", {"jobId": play.job, "run": 1})


async def renews(victim: Bench, play: Play) -> None:
    named = {name: play.instance[name] for name in ("jobId", "run", "fencingToken")}
    await play.ask(victim, "renew", {"instances": [named]})


async def dispatches(victim: Bench, play: Play) -> None:
    await victim.dispatch()


async def takes_runs(victim: Bench, play: Play) -> None:
    await victim.take_runs()


async def detects(victim: Bench, play: Play) -> None:
    await victim.app.detector.tick()


async def registers(victim: Bench, play: Play) -> None:
    await victim.call("register", "hosts", body={"serviceTypes": [NIGHTLY]})


def of_run(operation: str) -> Step:
    async def act(victim: Bench, play: Play) -> None:
        play.answers.append(await victim.call(operation, "runs", id=play.job, seq="1"))

    return act


async def deletes(victim: Bench, play: Play) -> None:
    await victim.call("delete", id=play.job)


@dataclass(frozen=True)
class Scenario:
    """`state`: what the next host finds if the victim answered 200; `ends`: how run 1 may have ended."""

    name: str
    prepare: Step
    act: Step
    state: Any = None
    ends: tuple[str, ...] = ("survivor",)


BOTH = ("survivor", "victim")
COMPLETE = {"result": "victim"}
SCENARIOS = [
    Scenario("create", lambda at, play: registers(at, play), create, ends=("survivor", "none")),
    Scenario("fire", create, dispatches),
    Scenario("register", fire, registers),
    Scenario("try to load", registered, asks("try_load")),
    Scenario("load", registered, loads_it),
    Scenario("save", loaded, saves(state="new"), state="new"),
    Scenario("unlock", loaded, saves(state="new", unlock=True), state="new"),
    Scenario(
        "unlock until later",
        loaded,
        saves(state="new", unlock=True, pendingTimer="2026-09-08T12:00:01Z"),
        state="new",
    ),
    Scenario("complete", loaded, saves(complete=COMPLETE), ends=BOTH),
    Scenario("complete at a gate", one_at_a_time, saves(complete=COMPLETE), ends=BOTH),
    Scenario("renew", loaded, renews),
    Scenario("release", registered, asks("release")),
    Scenario("hand back", lost, takes_runs),
    Scenario("wake", idle, dispatches, state=None),
    Scenario("detect and activate", unattended, detects),
    Scenario("detect what was lost", lost, detects),
    Scenario("a workflow", countdown, takes_runs, ends=("liftOff",)),
    Scenario("cancel", fire, of_run("cancel"), ends=("survivor", "Cancelled")),
    Scenario("cancel while it is loaded", loaded, of_run("cancel"), ends=("survivor", "Cancelled")),
    Scenario("delete", fire, deletes, ends=("survivor", "none")),
]


# The others are like these, and run with the long tests.
ALWAYS = {"fire", "try to load", "unlock", "complete at a gate", "hand back", "a workflow", "detect and activate"}


class Fates:
    """What becomes of a victim's requests, in order; those after them are carried out. `lines` has them all."""

    def __init__(self, fates: list[Fate]) -> None:
        self._left = iter(fates)
        self.lines: list[str] = []

    def __call__(self, line: str) -> Fate:
        self.lines.append(line)
        return next(self._left, Fate.DONE)


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(each, id=each.name, marks=[] if each.name in ALWAYS else [pytest.mark.soak])
        for each in SCENARIOS
    ],
)
async def test_whatever_is_struck_each_run_ends_once(
    storage: str, scenario: Scenario, tell: Callable[[str, int], None]
) -> None:
    settings = settings_for(storage, PARTITIONS="1")
    clock = Clock(NOON)
    post = Post(clock)
    async with process(settings, clock) as at:
        at.wire.mail = post.collect
        fates = Fates([])
        await strike(post, scenario, Play(at, "unharmed"), settings, fates)
        lines = fates.lines
        points = [(number, Fate.DIE_AFTER) for number in range(len(lines))]
        # A reading whose answer gets lost is just repeated.
        points += [(number, Fate.LOST) for number, line in enumerate(lines) if not line.startswith("GET")]
        for number, fate in points:
            play = Play(at, f"{fate.name.lower().replace('_', '-')}-{number}")
            try:
                await strike(post, scenario, play, settings, Fates([Fate.DONE] * number + [fate]))
            except Exception as error:
                raise AssertionError(f"{fate.value}, request {number}: {lines[number]}") from error
        tell("storage requests of hosts struck (after, answer lost)", len(points))
        assert len(points) >= 2


async def strike(post: Post, scenario: Scenario, play: Play, settings: Settings, fates: Fates) -> None:
    """Plays the scenario, a victim's requests having that fate, and lets a survivor end what is left."""
    async with process(settings, post.clock) as victim:
        await scenario.prepare(play.at, play)
        victim.requests.clear()
        victim.wire.fate = fates
        try:
            await scenario.act(victim, play)
        except Killed:
            play.answers.append(None)
        assert await audit(play.at.app.store) == []
        await settle(post, scenario, play)


async def settle(post: Post, scenario: Scenario, play: Play) -> None:
    """A survivor completes all there is to load; then each run must have ended once, in one of the right ways."""
    at, states, tokens = play.at, [], [play.instance["fencingToken"]] if play.instance else []
    starts = {(play.instance["run"], play.instance["startTime"])} if play.instance else set()
    for _ in range(6):
        await recover(at, post, cycles=1)
        survivor = await host(at)
        while instance := await survivor.try_load():
            states.append(instance["state"])
            tokens.append(instance["fencingToken"])
            starts.add((instance["run"], instance["startTime"]))
            await survivor.save(instance, complete={"result": "survivor"})
        await survivor.told("release")
        if not [row for kind in ("run", "idle", "load") for row in await at.rows(kind)]:
            break
    else:
        raise AssertionError("something is still under way")
    assert await audit(at.app.store) == []
    assert tokens == sorted(tokens)
    answered = bool(play.answers) and play.answers[-1] is not None and play.answers[-1].status == 200
    if scenario.state is not None and answered:
        assert states[:1] == [scenario.state]
    listed = await at.call("list", "runs", id=play.job)
    runs = listed.body["value"] if listed.status == 200 else []
    assert len({run["seq"] for run in runs}) == len(runs)
    ends = [end_of(run) for run in runs if run["seq"] == 1] or ["none"]
    assert ends[0] in scenario.ends
    if "victim" in scenario.ends and answered:
        assert ends == ["victim"]
    if listed.status == 200:
        assert starts <= {(run["seq"], run["startTime"]) for run in runs}
        assert (await at.call("delete", id=play.job)).status == 204
    post.under_way.clear()


def end_of(run: Any) -> str:
    result = run.get("result")
    return str(next(iter(result)) if isinstance(result, dict) else result or run["status"])
