"""Which process listens on a port: so that who finds it taken knows what to stop."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
LISTEN = "0A"
LONGEST_COMMAND = 100


def holder(port: int) -> str | None:
    """The process that listens on a TCP port of this machine, as "process 12 (command line)".

    None if that cannot be seen: not on Linux, or a process of another user.
    """
    inodes = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _listening(PROC / "net" / table, port)}
    for process in sorted(PROC.glob("[0-9]*"), key=lambda each: int(each.name)):
        if inodes and _has_one_of(process, inodes):
            return f"process {process.name} ({_command(process)})"
    return None


def _listening(table: Path, port: int) -> list[str]:
    """The inodes of the sockets that listen on a port, by one of the kernel's tables."""
    try:
        rows = [line.split() for line in table.read_text().splitlines()[1:]]
    except OSError:
        return []
    return [row[9] for row in rows if row[3] == LISTEN and int(row[1].rpartition(":")[2], 16) == port]


def _has_one_of(process: Path, sockets: set[str]) -> bool:
    # It may have ended, close files meanwhile, or belong to somebody else.
    with suppress(OSError):
        for file in (process / "fd").iterdir():
            with suppress(FileNotFoundError):
                if str(file.readlink()) in sockets:
                    return True
    return False


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").rstrip("\0")
    except OSError:
        return "ended"
    line = re.sub(r"[\0-\x1f\x7f]", " ", words)
    return line if len(line) <= LONGEST_COMMAND else line[: LONGEST_COMMAND - 1] + "…"
