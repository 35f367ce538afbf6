"""Runs a command that is to end with the program that started this, even if that is killed.

Usage: python guard.py COMMAND..., with standard input a pipe from that program. The end of the pipe, which
comes with the end of the program, ends the command by one SIGTERM, so that it can save its data.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence


def main(command: Sequence[str]) -> int:
    """Run the command. Returns its exit status."""
    # What we have inherited is for the command as well.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)

    def end() -> None:
        os.read(0, 1)
        process.terminate()

    threading.Thread(target=end, daemon=True).start()
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
