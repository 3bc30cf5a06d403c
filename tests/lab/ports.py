"""Chooses port numbers for the lab's servers.

Responsible for: a number that is free for TCP and UDP on every address that a server will use.
Must not: hold the port; there is a moment between the choice and the server's own bind, kept
harmless by choosing below the range that the kernel hands to outgoing connections, and by a share
of the numbers for each of the processes that pytest runs the tests in.
Called by: `tests.lab` and tests that start a server of their own.
"""

import os
import secrets
import socket
from collections.abc import Sequence

LOOPBACK = "127.0.0.1"
LOOPBACK_V6 = "::1"

# Linux hands ports from 32768 up to outgoing connections: a server there can lose its number to
# anybody's client between two starts.
_FIRST_PORT = 12_000
_LAST_PORT = 32_000
_MAX_TRIES = 200
_CONNECT_LIMIT_SECONDS = 30.0

_chosen: set[int] = set()


def _share() -> range:
    """The numbers that this process chooses among; pytest-xdist calls its first process gw0."""
    numbers = range(_FIRST_PORT, _LAST_PORT)
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return numbers[worker :: int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))]


_SHARE = _share()


def free_port(addresses: Sequence[str] = (LOOPBACK,)) -> int:
    """Return a port that nobody in this process was given yet, free on all `addresses`."""
    for _ in range(_MAX_TRIES):
        port = secrets.choice(_SHARE)
        if port not in _chosen and all(_is_free(address, port) for address in addresses):
            _chosen.add(port)
            return port
    raise RuntimeError(f"no free port on {', '.join(addresses)} in {_MAX_TRIES} tries")


def has_ipv6() -> bool:
    """Whether this machine has IPv6 at all, which a container may be without: then not even ::1."""
    return _is_free(LOOPBACK_V6, 0)


def refuses_connections(port: int) -> bool:
    """Does nobody listen there any more?"""
    try:
        socket.create_connection((LOOPBACK, port), timeout=_CONNECT_LIMIT_SECONDS).close()
    except ConnectionRefusedError:
        return True
    return False


def accepts_connections(port: int) -> bool:
    """Does somebody take a connection there?"""
    try:
        socket.create_connection((LOOPBACK, port), timeout=_CONNECT_LIMIT_SECONDS).close()
    except OSError:
        return False
    return True


def _is_free(address: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            with socket.socket(family, kind) as probe:
                probe.bind((address, port))
        except OSError:
            return False
    return True
