"""Taking the address of a listener, and saying who has it when it is taken.

Called by `gateway.listening`, and for each further listener of the process.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import TYPE_CHECKING, Final

from gateway.http.listener.port_holders import holders_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

BACKLOG: Final = 1024


class AddressTaken(Exception):
    """A listener's address cannot be bound; one sentence says which, why, who has it."""


@contextlib.contextmanager
def bound_socket(key: str, host: str, port: int) -> Iterator[socket.socket]:
    """A listening TCP socket; `key` is the one of the configuration that names the address.

    Raises:
        AddressTaken: with that key.
    """
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, bind_to = infos[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise AddressTaken(f"{key} {shown}: {error.strerror or error}") from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(bind_to)
            # Linux may find out only here: SO_REUSEADDR lets two bind that do not listen yet.
            listener.listen(BACKLOG)
        except OSError as error:
            why = error.strerror or str(error)
            if error.errno == errno.EADDRINUSE:
                why += f", by {holders_sentence(str(bind_to[0]), port)}"
            raise AddressTaken(f"{key} {shown}: {why}") from error
        yield listener
