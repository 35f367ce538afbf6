"""Imported by Python at its start, where this folder is on PYTHONPATH: no name leads away from this machine."""

import socket
from typing import Any

_getaddrinfo = socket.getaddrinfo


def _of_this_machine(host: Any, *arguments: Any, **options: Any) -> Any:
    if host not in (None, "127.0.0.1", "::1", "localhost"):
        raise socket.gaierror(socket.EAI_NONAME, "a test asks nobody elsewhere")
    return _getaddrinfo(host, *arguments, **options)


socket.getaddrinfo = _of_this_machine
