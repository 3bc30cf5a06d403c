"""Chooses port numbers for the lab's servers.

Responsible for: a number that is free for TCP and UDP on every address that a server will use.
Must not: hold the port; there is a moment between the choice and the server's own bind, kept
harmless by choosing at random below the range that the kernel hands to outgoing connections.
Called by: `tests.lab` and tests that start a server of their own.
"""

import secrets
import socket
from collections.abc import Sequence

LOOPBACK = "127.0.0.1"

# Linux hands ports from 32768 up to outgoing connections: a server there can lose its number to
# anybody's client between two starts.
_FIRST_PORT = 12_000
_LAST_PORT = 32_000
_MAX_TRIES = 200

_chosen: set[int] = set()


def free_port(addresses: Sequence[str] = (LOOPBACK,)) -> int:
    """Return a port that nobody in this process was given yet, free on all `addresses`."""
    for _ in range(_MAX_TRIES):
        port = _FIRST_PORT + secrets.randbelow(_LAST_PORT - _FIRST_PORT)
        if port not in _chosen and all(_is_free(address, port) for address in addresses):
            _chosen.add(port)
            return port
    raise RuntimeError(f"no free port on {', '.join(addresses)} in {_MAX_TRIES} tries")


def _is_free(address: str, port: int) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind((address, port))
            except OSError:
                return False
    return True
