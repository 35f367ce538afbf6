"""An example host: sleeps until it is activated, then runs instances of its service type, step by step.

Start the scheduler with `make run`, then:

    python -m examples.host --type acme/steps --listen 8088
    curl -H 'Content-Type: application/json' http://127.0.0.1:7071/api/jobs -d '{
      "id": "steps", "serviceType": "acme/steps", "parameters": {"steps": 5}, "trigger": {"type": "Once"},
      "activation": {"site": "http://127.0.0.1:8088", "applicationPath": "app", "servicePath": "steps"}
    }'

The scheduler finds that nobody can run the job and POSTs to http://127.0.0.1:8088/app/steps; the host
registers, loads the run and works. When nothing has come for `--idle` seconds, it releases its lease and sleeps
again. Without `--listen` it registers at once. Kill it while it works: another one goes on from the step that was
saved last.
"""

import argparse
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from examples.host_client import Host, HostError, Instance, InstanceLockLost, StaleInstanceVersion


def work(instance: Instance, step_seconds: float) -> None:
    """Does the steps that are left, saving after each. A step may be repeated, so let its target know its key."""
    done = (instance.state or {"done": 0})["done"]
    tell("loaded", instance, done=done)
    for step in range(done + 1, instance.parameters.get("steps", 3) + 1):
        time.sleep(step_seconds)  # the work stands here
        instance.save({"done": step})
        tell("saved", instance, done=step)
    instance.complete({"steps": instance.state["done"] if instance.state else 0})
    tell("completed", instance)


def tell(what: str, instance: Instance, **more: object) -> None:
    """One line of JSON for each thing done."""
    about = {"what": what, "host": instance.host.id, "version": instance.version} | instance.name | more
    print(json.dumps(about), flush=True)


def serve(arguments: argparse.Namespace) -> None:
    """Works; a host that sleeps between activations ends when nothing has come for a while."""
    with Host.register(arguments.url, arguments.type, arguments.key) as host:
        print(json.dumps({"what": "registered", "host": host.id}), flush=True)
        idle_since = time.monotonic()
        while arguments.listen is None or time.monotonic() - idle_since < arguments.idle:
            while instance := host.try_load():
                try:
                    work(instance, arguments.step)
                except (InstanceLockLost, StaleInstanceVersion) as error:
                    print(json.dumps({"what": "gave up", "why": str(error)}), flush=True)
                idle_since = time.monotonic()
            host.wait(min(20, arguments.idle))


def listen(port: int, woken: threading.Event) -> None:
    """Answers activation requests: whatever is POSTed here wakes the host."""

    class Activation(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            print(json.dumps({"what": "activated", "path": self.path}), flush=True)
            woken.set()
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Activation)
    print(json.dumps({"what": "listening", "port": server.server_port}), flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:7071", help="where the scheduler answers")
    parser.add_argument("--key", help="its function key")
    parser.add_argument("--type", action="append", required=True, help="a service type; may be repeated")
    parser.add_argument("--listen", type=int, help="sleep until an activation request comes to this port (0: any)")
    parser.add_argument("--idle", type=int, default=60, help="seconds without work until it sleeps again")
    parser.add_argument("--step", type=float, default=1.0, help="seconds that a step takes")
    arguments = parser.parse_args()
    woken = threading.Event()
    if arguments.listen is None:
        woken.set()
    else:
        listen(arguments.listen, woken)
    while woken.wait():
        try:
            serve(arguments)
        except (HostError, OSError) as error:  # its lease has run out, or the scheduler was away for long
            print(json.dumps({"what": "registers anew", "why": str(error)}), flush=True)
            time.sleep(1)
        else:
            woken.clear()


if __name__ == "__main__":
    main()
