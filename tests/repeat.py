"""Runs a command again and again, every other time beside a process that keeps a core busy.

Usage: python -m tests.repeat ROUNDS COMMAND...

It ends at the first round that fails, with that round's output in `.repeat/`.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

KEPT = Path(".repeat")


@contextmanager
def busy_core() -> Iterator[None]:
    """Keeps a core busy meanwhile."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def run(command: Sequence[str], output: Path) -> int:
    """The exit status of the command; its output goes to a file."""
    with output.open("w") as file:
        return subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False).returncode


def repeat(rounds: int, command: Sequence[str], kept: Path = KEPT) -> int:
    """The exit status of the first round that fails; 0 if none does."""
    kept.mkdir(exist_ok=True)
    for number in range(1, rounds + 1):
        output = kept / f"round-{number}.txt"
        is_busy = number % 2 == 0
        if is_busy:
            with busy_core():
                status = run(command, output)
        else:
            status = run(command, output)
        what = f"round {number} of {rounds}{', beside a busy core' if is_busy else ''}"
        if status:
            print(f"{what}: failed with status {status}; its output is in {output}", flush=True)
            return status
        last = output.read_text(errors="replace").rstrip().rpartition("\n")[2]
        print(f"{what}: {last}", flush=True)
        output.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(repeat(int(sys.argv[1]), sys.argv[2:]))
