"""A client for hosts: copy this file beside your code; it needs the standard library alone (Python 3.11).

    with Host.register("http://127.0.0.1:7071", ["acme/nightly"]) as host:
        while True:
            while instance := host.try_load():
                work(instance)
            host.wait(20)

`work` saves as it goes, and ends by `instance.complete(…)` or `instance.unlock(…)`. A save that fails by
InstanceLockLost or HostLockExpired says that another host has the instance: stop working on it.
"""

import contextlib
import json
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

TRIES = 5


class HostError(Exception):
    """The scheduler refused a request: its HTTP status, and the problem's type and detail."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        self.status, self.kind, self.detail = status, kind, detail
        super().__init__(f"{status} {kind}: {detail}")


class InstanceLockLost(HostError):
    """The instance is another host's by now, or has ended."""


class StaleInstanceVersion(HostError):
    """The instance was saved by somebody else since it was loaded."""


class InstanceLocked(HostError):
    """Another host holds the instance."""


class HostLockExpired(HostError):
    """The host was not renewed in time: register anew, with nothing loaded."""


class InstancePersistenceError(HostError):
    """The store does not have what is asked for."""


KINDS: dict[str, type[HostError]] = {
    kind.__name__: kind
    for kind in (InstanceLockLost, StaleInstanceVersion, InstanceLocked, HostLockExpired, InstancePersistenceError)
}


@dataclass
class Instance:
    """A run that this host has loaded, and holds until it is unlocked or completed, or its lock is lost.

    `state` is what was saved last, None at first. `idempotency_key` is the same for every attempt at this run;
    `fencing_token` is higher whenever another host has taken the run over: give both to what you call.
    """

    host: "Host" = field(repr=False)
    job_id: str
    run: int
    service_type: str
    version: int
    fencing_token: int
    idempotency_key: str
    scheduled_time: datetime
    parameters: dict[str, Any]
    state: Any
    attempt: int
    window: tuple[datetime, datetime] | None = None
    lost: bool = False

    @property
    def name(self) -> dict[str, Any]:
        """The instance as a request names it."""
        return {"jobId": self.job_id, "run": self.run, "fencingToken": self.fencing_token}

    def save(self, state: Any, activation: dict[str, str] | None = None) -> None:
        """Stores the state (any JSON but null). `activation` is where a host is activated if this one dies:
        `site`, `applicationPath`, `servicePath`."""
        self._save(state=state, activation=activation)

    def unlock(self, state: Any = None, until: datetime | None = None) -> None:
        """Gives the instance back, to be loaded again: by any host of its type, at once or from `until` on."""
        text = until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if until else None
        self._save(state=state, unlock=True, pendingTimer=text)
        self.host.forget(self)

    def complete(self, result: Any = None, status: str = "Succeeded", reason: str | None = None) -> None:
        """Ends the run: Succeeded, or Failed with a reason."""
        self._save(complete={"status": status, "reason": reason, "result": result})
        self.host.forget(self)

    def _save(self, **changes: Any) -> None:
        body = self.name | {"version": self.version} | changes
        try:
            saved = self.host.call("POST", "/save", body)
        except (InstanceLockLost, HostLockExpired):
            self.lost = True
            self.host.forget(self)
            raise
        self.version = saved["version"]
        if changes.get("state") is not None:
            self.state = changes["state"]


class Host:
    """A registered host. While it is open, a thread renews its lease and its locks on what it has loaded."""

    def __init__(self, base_url: str, key: str | None, registered: dict[str, Any]) -> None:
        self.id: str = registered["id"]
        self._api = Api(base_url, key)
        self._period = _seconds(registered["renewalPeriod"])
        self._held: dict[tuple[str, int], Instance] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._renewing = threading.Thread(target=self._renew_on, daemon=True)
        self._renewing.start()

    @classmethod
    def register(
        cls, base_url: str, service_types: list[str], key: str | None = None, activation_type: str | None = None
    ) -> Self:
        """Registers a host of these service types; or a generic one: ["Any"], activation type "WAS"."""
        body = {"serviceTypes": service_types, "activationType": activation_type}
        return cls(base_url, key, Api(base_url, key).call("POST", "/hosts", body))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the lease. Unlock or complete what is loaded before: its locks run out by themselves."""
        self._closing.set()
        self._renewing.join()
        with contextlib.suppress(HostError, OSError):
            self.call("DELETE", "")

    def try_load(self) -> Instance | None:
        """A runnable instance of this host's service types, locked; None if there is none."""
        return self._loaded(self.call("POST", "/tryLoadRunnable"))

    def load(self, job_id: str, run: int) -> Instance:
        """This very instance, locked. Raises InstanceLocked if another host holds it."""
        instance = self._loaded(self.call("POST", "/load", {"jobId": job_id, "run": run}))
        assert instance
        return instance

    def wait(self, seconds: int = 20) -> list[str]:
        """Waits, at most so long (30 s at most), until there may be something to load: the service types of which
        instances are runnable; `Any`, for a generic host, if some are activatable."""
        events = self.call("GET", f"/events?wait={seconds}", timeout=seconds + 30)
        return [event["serviceType"] for event in events["value"]]

    def query_activatable(self) -> list[dict[str, str]]:
        """For a generic host: service types that no host alive can load, and where one is activated."""
        found: list[dict[str, str]] = self.call("POST", "/queryActivatable")["value"]
        return found

    def renew(self) -> None:
        """Prolongs the lease and the locks now; marks what is `lost`."""
        with self._lock:
            held = list(self._held.values())
        lost = self.call("POST", "/renew", {"instances": [each.name for each in held]})["lost"]
        for each in held:
            if each.name in lost:
                each.lost = True
                self.forget(each)

    def forget(self, instance: Instance) -> None:
        """Renews this instance's lock no more."""
        with self._lock:
            self._held.pop((instance.job_id, instance.run), None)

    def call(self, method: str, path: str, body: Any = None, timeout: float = 60) -> Any:
        """A request to one of this host's routes."""
        return self._api.call(method, f"/hosts/{self.id}{path}", body, timeout)

    def _renew_on(self) -> None:
        while not self._closing.wait(self._period):
            try:
                self.renew()
            except HostLockExpired:
                break
            except (HostError, OSError):
                continue  # what is missed once is made up for by the next

    def _loaded(self, view: dict[str, Any] | None) -> Instance | None:
        if view is None:
            return None
        window = None
        if "windowStartTime" in view:
            window = (_time(view["windowStartTime"]), _time(view["windowEndTime"]))
        instance = Instance(
            host=self,
            job_id=view["jobId"],
            run=view["run"],
            service_type=view["serviceType"],
            version=view["version"],
            fencing_token=view["fencingToken"],
            idempotency_key=view["idempotencyKey"],
            scheduled_time=_time(view["scheduledTime"]),
            parameters=view["parameters"],
            state=view["state"],
            attempt=view["attempt"],
            window=window,
        )
        with self._lock:
            self._held[instance.job_id, instance.run] = instance
        return instance


class Api:
    """Requests to the scheduler. Each may be repeated: one that was carried out already changes nothing more."""

    def __init__(self, base_url: str, key: str | None) -> None:
        self._base = base_url.rstrip("/") + "/api"
        self._headers = {"Content-Type": "application/json"} | ({"x-functions-key": key} if key else {})

    def call(self, method: str, path: str, body: Any = None, timeout: float = 60) -> Any:
        """The answer's JSON; None for none. Raises HostError, or OSError where no answer comes after all tries."""
        data = None if body is None else json.dumps(_without_nulls(body)).encode()
        request = urllib.request.Request(self._base + path, data, self._headers, method=method)
        for tried in range(1, TRIES + 1):
            try:
                with urllib.request.urlopen(request, timeout=timeout) as answer:
                    text = answer.read()
                    return json.loads(text) if text else None
            except urllib.error.HTTPError as error:
                if error.code < 500 or tried == TRIES:
                    raise _told(error) from None
            except OSError:
                if tried == TRIES:
                    raise
            time.sleep(min(0.2 * 2**tried, 5))
        raise AssertionError("unreachable")


def _told(error: urllib.error.HTTPError) -> HostError:
    try:
        problem = json.loads(error.read())
    except ValueError:
        problem = {}
    kind = str(problem.get("type", "about:blank"))
    return KINDS.get(kind, HostError)(error.code, kind, str(problem.get("detail", error.reason)))


def _without_nulls(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _seconds(duration: str) -> float:
    """The seconds of an ISO 8601 duration of hours, minutes and seconds."""
    total, number = 0.0, ""
    for char in duration.removeprefix("PT"):
        if char in "HMS":
            total += float(number) * {"H": 3600, "M": 60, "S": 1}[char]
            number = ""
        else:
            number += char
    return total
