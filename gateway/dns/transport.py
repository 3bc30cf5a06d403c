"""Carries one DNS message to one address and one answer back, over UDP, in bounded time.

Responsible for the socket, the time limit and the difference that matters to an UPDATE: was the
message taken by nobody (`NotTaken`), or may it have been acted on (`NotAnswered`)? `connections`
tells the same over TCP. Must not read messages: whether a datagram is the answer, `exchange` says.

Why not `dns.asyncquery` (dnspython 2.9): its UDP sockets are not connected, so a closed port is
noticed only when the time is over, and the first datagram that can't be trusted ends the wait, so
anybody who guesses the port can end it; its time limits follow the wall clock, which may jump. A
connected socket hears of a closed port at once, and the kernel drops what comes from elsewhere. Nor
is it asyncio's datagram endpoint: that costs 0.09 ms more a message.
"""

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Final, TypeVar

from gateway.dns.zones import Endpoint

_Answer = TypeVar("_Answer")
_NO_ROUTE = frozenset(
    {errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT}
)

_MOST_BYTES: Final = 65_535


class TransportFault(Exception):
    """Why there is no answer: a predicate for a sentence about the server."""


class NotTaken(TransportFault):
    """The server never had the message."""


class NoWay(NotTaken):
    """This machine can't send to that address."""


class NoFile(TransportFault):
    """This process may open no socket more: the server was never asked."""


class NotAnswered(TransportFault):
    """The message went out; the server may have acted on it."""


async def over_udp(
    address: Endpoint,
    message: bytes,
    accept: Callable[[bytes], _Answer | None],
    *,
    until: float,
) -> _Answer:
    """Send a datagram and return what `accept` makes of the first one that it wants.

    `accept` returns None to wait for another. `until` is a loop time.
    Raises: NotTaken, NoFile, NotAnswered, and whatever `accept` raises.
    """
    loop = asyncio.get_running_loop()
    try:
        connected = _connected(address)
    except OSError as error:
        raise why_not_taken(error) from error
    with connected:
        try:
            async with asyncio.timeout_at(until):
                await loop.sock_sendall(connected, message)
                while True:
                    answer = accept(await loop.sock_recv(connected, _MOST_BYTES))
                    if answer is not None:
                        return answer
        except TimeoutError:
            raise NotAnswered("gave no answer over UDP in time") from None
        except OSError as error:
            raise why_not_taken(error) from error


def _connected(address: Endpoint) -> socket.socket:
    """A UDP socket that hears that server only. The address is a literal: nothing is looked up."""
    found = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST
    )
    family, kind, protocol, _, sockaddr = found[0]
    connected = socket.socket(family, kind, protocol)
    try:
        connected.setblocking(False)
        connected.connect(sockaddr)
    except OSError:
        connected.close()
        raise
    return connected


def why_not_taken(error: OSError) -> TransportFault:
    """Sort the ways in which the kernel says that nobody will get the message."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return NoFile(f"no socket can be opened ({_words(error)})")
    if error.errno in _NO_ROUTE:
        return NoWay(f"can't be reached from this machine ({_words(error)})")
    if error.errno == errno.ECONNREFUSED:
        return NotTaken("takes no messages at that port (connection refused)")
    return NotTaken(f"can't be reached ({_words(error)})")


def _words(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, type(error).__name__)
