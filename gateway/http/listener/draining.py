"""Ends a listener so that no call is lost that a client could believe to have been taken.

Three kinds of calls would be, if sockets were simply closed; a proxy may not repeat them, since it
has sent them already:

- Those of connections that the kernel has taken and nobody has accepted yet: closing the listener
  resets them. So the kernel is told to drop whatever begins a connection, and who waits is let in
  before the listener is closed. Whoever was dropped tries again by himself, a second later, and
  is refused then, which says that nothing was taken.
- Those that come on a kept connection just when it is closed for being idle. So these stay open for
  a moment: a client that is busy makes another call on each, is told `Connection: close` with its
  answer, and goes elsewhere.
- Those under way, which uvicorn waits for.

Called by `server`, once the process is to stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import socket
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gateway.http.listener.accepting import Acceptor

LETTING_IN_SECONDS: Final = 0.1
"""For handshakes whose last packet is on its way. Much less than a second, see above."""

_TICK_SECONDS: Final = 0.02

_SO_ATTACH_FILTER: Final = 26
_FLAGS_AT: Final = 13  # in a TCP header, which is where a filter of a TCP socket begins
_SYN, _ACK = 0x02, 0x10

# Instructions of classic BPF (linux/filter.h): code, jump if true, jump if false, operand.
_DROP_BEGINNINGS: Final = (
    (0x30, 0, 0, _FLAGS_AT),  # load a byte
    (0x54, 0, 0, _SYN | _ACK),  # and
    (0x15, 0, 1, _SYN),  # is it that alone?
    (0x06, 0, 0, 0),  # then drop
    (0x06, 0, 0, 0xFFFF_FFFF),  # else pass
)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


async def drain(
    acceptors: Sequence[Acceptor],
    listeners: Sequence[socket.socket],
    connections: Collection[object],
    parting_seconds: float,
) -> None:
    """Let in who waits, close the listeners, and leave idle connections a moment.

    `connections` are those that are open now, whenever it is looked at. Returns when there are none
    any more, or after `parting_seconds`.
    """
    for listener in listeners:
        drop_beginnings(listener)
    await asyncio.sleep(LETTING_IN_SECONDS)
    for acceptor in acceptors:
        acceptor.accept_all()
        acceptor.close()
    for listener in listeners:
        listener.close()
    loop = asyncio.get_running_loop()
    end = loop.time() + parting_seconds
    while connections and loop.time() < end:  # noqa: ASYNC110 (uvicorn tells nobody)
        await asyncio.sleep(_TICK_SECONDS)


def drop_beginnings(listener: socket.socket) -> None:
    """From now on the kernel ignores who wants to connect. Without that, a few may be reset."""
    packed = b"".join(struct.pack("=HBBI", *each) for each in _DROP_BEGINNINGS)
    instructions = ctypes.create_string_buffer(packed, len(packed))
    program = _Program(len(_DROP_BEGINNINGS), ctypes.addressof(instructions))
    with contextlib.suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, bytes(program))
