"""Carries one DNS message to one address and one answer back, over UDP, in bounded time.

Responsible for the socket, the time limit and the difference that matters to an UPDATE: was the
message taken by nobody (`NotTaken`), or may it have been acted on (`NotAnswered`)? `connections`
tells the same over TCP. Must not read messages: whether a datagram is the answer, `exchange` says.

Why not `dns.asyncquery` (dnspython 2.9): its UDP sockets are not connected, so a closed port is
noticed only when the time is over, and the first datagram that can't be trusted ends the wait, so
anybody who guesses the port can end it; its time limits follow the wall clock, which may jump. A
connected socket hears of a closed port at once, and the kernel drops what comes from elsewhere.
"""

import asyncio
import errno
from collections.abc import Callable
from typing import TypeVar

from gateway.dns.zones import Endpoint

_Answer = TypeVar("_Answer")
_NO_ROUTE = frozenset(
    {errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT}
)


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
    mailbox = _Mailbox()
    try:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: mailbox, remote_addr=(address.host, address.port)
        )
    except OSError as error:
        raise why_not_taken(error) from error
    try:
        transport.sendto(message)
        async with asyncio.timeout_at(until):
            while True:
                arrived = await mailbox.arrivals.get()
                if isinstance(arrived, OSError):
                    raise why_not_taken(arrived) from arrived
                answer = accept(arrived)
                if answer is not None:
                    return answer
    except TimeoutError:
        raise NotAnswered("gave no answer over UDP in time") from None
    finally:
        transport.close()


class _Mailbox(asyncio.DatagramProtocol):
    """Keeps what arrives, datagrams and errors, in order."""

    def __init__(self) -> None:
        self.arrivals: asyncio.Queue[bytes | OSError] = asyncio.Queue()

    def datagram_received(self, data: bytes, addr: object) -> None:
        """Called by the loop."""
        self.arrivals.put_nowait(data)

    def error_received(self, exc: Exception) -> None:
        """Called by the loop, with an OSError: the port is closed, the network is down."""
        self.arrivals.put_nowait(exc if isinstance(exc, OSError) else OSError(str(exc)))


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
