"""HTTP/1.1 over connections that are kept: one request out, one answer in.

Responsible for finding the CA's server, TLS, when a connection may be used again, and for a bound
in time. How an answer is read, `answers` knows. Knows no proxies, no redirects and nothing else of
the environment. Judges no answer, and sends nothing twice: `network` does.

A library was the alternative, and came before: urllib3 takes 0.30 ms of processor time for an
exchange, and this 0.1. So did threads: to hand an issuance's eight exchanges over to them and back,
past the interpreter's lock, took 2 of its 15 ms. One Connections belongs to one event loop.

Called by `network`.
"""

import asyncio
import os
import re
import select
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, cast
from urllib.parse import quote, urlsplit

from gateway.certificates import leases
from gateway.certificates.authority.answers import Answer, Cut, NoAnswer, TooLong
from gateway.certificates.authority.replies import Reply
from gateway.dns.lookups import Lookups

CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 20.0

_PORTS: Final = {"https": 443, "http": 80}
# All that a URL may hold as it is (RFC 3986, 2), and what is encoded already.
_LEFT_AS_IT_IS: Final = "!#$%&'()*+,/:;=?@[]~"
# All of it but the mark of a fragment, which is not sent: as a CA's URLs are.
_PLAIN_URL: Final = re.compile(r"[A-Za-z0-9_.!$%&'()*+,/:;=?@\[\]~-]*")


class Place(NamedTuple):
    """Where a server listens, and how it is spoken to: `https` or `http`."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """What a Host header says: without the port where it is the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. `headers` without Host and Content-Length, which are added."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


class Connections:
    """Keeps so many idle connections with each server. `monotonic` is the clock of all deadlines.

    Trusts what `tls` does.
    """

    def __init__(self, tls: ssl.SSLContext, *, most: int, monotonic: Callable[[], float]) -> None:
        self._tls = tls
        self._most = most
        self._monotonic = monotonic
        # The last one used is used first.
        self._idle: dict[Place, deque[_Connection]] = {}
        self._outlasting: set[asyncio.Future[None]] = set()
        self._lookups = Lookups()

    def close(self) -> None:
        """Close the idle ones; those in use are closed when their answer has come.

        Whoever goes on waiting for an answer though cancelled does so no longer.
        """
        self._most = 0
        for idle in self._idle.values():
            while idle:
                idle.pop().close()
        for answered in self._outlasting:
            answered.cancel()

    async def exchange(
        self, request: Request, deadline: float, *, may_be_left: bool = False
    ) -> Reply:
        """Send a request and read its answer.

        The CA may act on what was sent. So a caller that is cancelled after that gets the answer
        all the same, unless it `may_be_left`; its task can tell that it was cancelled.

        Raises: NoAnswer, Cut, TooLong; LeaseOver, and nothing was sent.
        """
        try:
            place, head = _read_url(request)
            connection = await self._connection(place, deadline)
        except NoAnswer as reason:
            reason.is_unsent = True
            raise
        answer = Answer(is_head=request.method == "HEAD")
        try:
            leases.check()  # Here, since it took seconds to connect, maybe.
            answered = connection.ask(head + (request.body or b""), answer, deadline)
            await self._outlast(answered, may_be_left=may_be_left)
        except BaseException:
            connection.close()
            raise
        idle = self._idle.setdefault(place, deque())
        if answer.lets_keep and len(idle) < self._most:
            idle.append(connection)
        else:
            connection.close()
        return answer.reply

    async def _outlast(self, answered: asyncio.Future[None], *, may_be_left: bool) -> None:
        """Wait for an answer, however often the caller is cancelled."""
        try:
            while True:
                try:
                    return await asyncio.shield(answered)
                except asyncio.CancelledError:
                    if may_be_left or answered.cancelled():
                        raise
                    self._outlasting.add(answered)
        finally:
            self._outlasting.discard(answered)

    async def _connection(self, place: Place, deadline: float) -> "_Connection":
        """One that is idle and still open, or a new one."""
        idle = self._idle.get(place, ())
        while idle:
            connection = idle.pop()
            if connection.is_silent:
                return connection
            connection.close()
        return await self._connected(place, deadline)

    async def _connected(self, place: Place, deadline: float) -> "_Connection":
        """A new one, with the first of the server's addresses that lets it."""
        until = asyncio.get_running_loop().time() + self._patience(deadline)
        addresses = await self._lookups.addresses(place.host, until=until)
        reason = NoAnswer("the CA's host name cannot be resolved")
        for address in addresses:
            try:
                async with asyncio.timeout(self._patience(deadline)):
                    return await self._opened(place, address)
            except TimeoutError:
                reason = NoAnswer("no connection to the CA in time")
            except ssl.SSLError as error:
                raise NoAnswer(_tls_sentence(error)) from None
            except (ConnectionResetError, ConnectionAbortedError, BrokenPipeError):
                raise Cut from None
            except OSError as error:
                # asyncio has words of its own there, with the address in them.
                words = os.strerror(error.errno) if error.errno else "refused"
                reason = NoAnswer(f"no connection to the CA: {words}")
        raise reason

    async def _opened(self, place: Place, address: str) -> "_Connection":
        is_tls = place.scheme == "https"
        _, made = await asyncio.get_running_loop().create_connection(
            lambda: _Connection(self._monotonic),
            *(address, place.port),
            ssl=self._tls if is_tls else None,
            server_hostname=place.host.removesuffix(".") if is_tls else None,
        )
        return made

    def _patience(self, deadline: float) -> float:
        """How many seconds to look a name up for, or to wait for one address."""
        return min(CONNECT_SECONDS, max(deadline - self._monotonic(), 0.001))


class _Connection(asyncio.Protocol):
    """One connection: nobody speaks, or the server is answering."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._loop = asyncio.get_running_loop()
        self._monotonic = monotonic
        self._answer: Answer | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._is_open = False

    @property
    def is_silent(self) -> bool:
        """Whether an idle one is still open: a server that speaks unasked is about to close."""
        if not self._is_open or self._transport.is_closing():
            return False
        waiting = select.poll()
        waiting.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not waiting.poll(0)

    def ask(self, request: bytes, answer: Answer, deadline: float) -> asyncio.Future[None]:
        """Send a request; what comes is the answer's. Done once that is complete, or will not be.

        Its exceptions are NoAnswer, Cut, TooLong.
        """
        self._answer, self._deadline = answer, deadline
        self._answered = self._loop.create_future()
        self._wait()
        self._transport.write(request)
        return self._answered

    def close(self) -> None:
        """End it at once, without TLS's own farewell; nobody waits for an answer any more."""
        self._end()
        self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._is_open = True

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            self.close()  # it speaks unasked
        else:
            self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_open = False
        if isinstance(exc, ssl.SSLError):
            self._end(NoAnswer(_tls_sentence(exc)))
        elif exc is not None:
            self._end(Cut())
        elif self._answer is not None:
            self._take(b"")

    def _take(self, chunk: bytes) -> None:
        answer = self._answer
        if answer is None:
            return
        try:
            answer.feed(chunk)
        except (Cut, TooLong) as fault:
            self._end(fault)
            return
        if answer.is_complete:
            self._end()
        elif self._monotonic() > self._deadline:
            self._end(NoAnswer("the CA took too long to answer"))
        elif self._timer is not None:
            self._timer.cancel()
            self._wait()

    def _wait(self) -> None:
        """For the next piece, and never past the deadline."""
        seconds = min(READ_SECONDS, max(self._deadline - self._monotonic(), 0.001))
        self._timer = self._loop.call_later(seconds, self._time_out)

    def _time_out(self) -> None:
        self._end(NoAnswer("no answer from the CA in time"))

    def _end(self, fault: Exception | None = None) -> None:
        """Nothing more belongs to the answer: it is complete, or `fault` says why not."""
        if self._answer is None:
            return
        self._answer = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._answered.done():
            return
        if fault is None:
            self._answered.set_result(None)
        else:
            self._answered.set_exception(fault)


def _read_url(request: Request) -> tuple[Place, bytes]:
    """Where a request goes, and all of it but its body. Raises NoAnswer for what is no HTTP."""
    url = request.url
    end = url.find("/", url.find("//") + 2)
    if end > 0 and _PLAIN_URL.fullmatch(url):
        place, target = _place_of(url[:end]), url[end:]
    else:
        place, target = _place_of(url), _target_of(url)
    lines = [f"{request.method} {target} HTTP/1.1", f"Host: {place.authority}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    if request.body is not None:
        lines.append(f"Content-Length: {len(request.body)}")
    return place, "\r\n".join((*lines, "", "")).encode("latin-1")


@lru_cache(maxsize=64)
def _place_of(url: str) -> Place:
    """Where a URL leads, with its path or without. Raises NoAnswer."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode("ascii")
        place = Place(parts.scheme, host, parts.port or _PORTS[parts.scheme])
    except (ValueError, KeyError):
        raise NoAnswer("the CA cannot be asked: its URL is none of HTTP") from None
    if not host:
        raise NoAnswer("the CA cannot be asked: its URL names no host")
    return place


def _target_of(url: str) -> str:
    parts = urlsplit(url)
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    return quote(target, _LEFT_AS_IT_IS)


def _tls_sentence(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"the CA's own TLS certificate is not trusted ({error.verify_message}): "
            "acme.ca_bundle must hold the root that it was issued from"
        )
    return f"no TLS connection to the CA ({error.reason or 'handshake failed'})"
