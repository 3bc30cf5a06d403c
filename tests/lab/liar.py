"""An HTTP server in this process that answers what no real gateway can be made to answer.

Responsible for: garbage, wrong types, certificates that fit nothing, answers that trickle, break
off, never come or never end, redirects; and for what came in: connections, requests, their bodies.
Must not: stand in for the gateway where the real one can show the same.
Called by: tests of the SDK, the agent and the command line, also of those that run as processes.

An answer is one of

- `bytes`: the body of an answer with the status 200;
- `Says`: a whole answer, and how it goes over the wire;
- a function of the call's envelope that answers one of these, such as `response(...)` makes.
"""

import asyncio
import gzip
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from types import TracebackType
from typing import Any, Protocol, Self

from tests.lab.ports import LOOPBACK

_START_LIMIT_SECONDS = 10.0
_CHUNK_BYTES = 65_536
_LINGER_FOR_RESET = struct.pack("ii", 1, 0)
_NO_ENVELOPE: dict[str, Any] = {"method": None, "request": None, "correlation": None}


@dataclass(frozen=True)
class Says:
    """One answer: the body `times` times over, whole and at once unless told otherwise."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    has_length: bool = True
    """Without, the end of the connection is the end of the answer."""
    raw: bytes | None = None
    """What goes over the wire in place of status, headers and body; the connection ends after."""
    seconds_per_byte: float | None = None
    """Headers and body go byte by byte, each after this pause."""
    cut_after: int | None = None
    """How many bytes of headers and body are sent; then the connection ends."""
    hangs: bool = False
    """In place of its end the connection stays open, silent, until the other side has enough."""
    resets: bool = False
    """The connection ends with a reset."""

    @property
    def ends(self) -> bool:
        """Whether the connection is not kept after this answer."""
        return not self.has_length or self.raw is not None or self.cut_after is not None

    def chunks(self) -> Iterator[bytes]:
        """Headers and body in pieces, so that a large body is never held whole."""
        left = self.cut_after
        for chunk in self._whole():
            piece = chunk if left is None else chunk[:left]
            for start in range(0, len(piece), _CHUNK_BYTES):
                yield piece[start : start + _CHUNK_BYTES]
            if left is not None:
                left -= len(piece)
                if not left:
                    return

    def _whole(self) -> Iterator[bytes]:
        if self.raw is not None:
            yield self.raw
            return
        headers = {"Content-Type": "application/json", "Cache-Control": "no-store", **self.headers}
        if self.has_length:
            headers["Content-Length"] = str(len(self.body) * self.times)
        else:
            headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {self.status} Said", *(f"{key}: {headers[key]}" for key in headers)]
        yield "\r\n".join([*lines, "", ""]).encode()
        for _ in range(self.times):
            yield self.body


Envelope = dict[str, Any]
Answer = bytes | Says | Callable[[Envelope], "bytes | Says | Answer"]

CUT = Says(cut_after=0)
"""The connection ends before the answer begins."""
RESET = Says(cut_after=0, resets=True)
HANG = Says(cut_after=0, hangs=True)


class OnTheWire(Protocol):
    """A model of the contract, told apart by what it can do: this module imports no gateway."""

    def to_wire(self) -> dict[str, Any]: ...


def enveloped(envelope: Envelope, **changes: object) -> bytes:
    """An answer's envelope for a call's, as the contract has it but for the `changes`."""
    correlation = envelope["correlation"]
    answer: dict[str, object] = {
        "method": envelope["method"],
        "request": None,
        "response": None,
        "correlation": correlation and {"id": correlation.get("id"), "phase": "response"},
    }
    return json.dumps(answer | changes).encode()


def response(value: object, **changes: object) -> Answer:
    """The answer of a call that was admitted, with any value whatever as its `response`."""
    return lambda envelope: enveloped(envelope, response=value, **changes)


def failure(code: str, *, text: str = "Told to fail.", **data: object) -> Answer:
    """The answer of a call that was not; `data` stands beside the code, spelled as on the wire."""
    error = {"text": text, "data": {"code": code, **data}}
    return lambda envelope: enveloped(envelope, error=error)


def ready_with(certificate: Mapping[str, Any] | OnTheWire) -> Answer:
    """The answer `ready` to `getGatewayClientCertificate`, with this certificate."""
    wire = dict(certificate) if isinstance(certificate, Mapping) else certificate.to_wire()
    return response({"status": "ready", "certificate": wire})


def by_method(answers: Mapping[str, Answer]) -> Answer:
    """One answer for each method that is going to be called."""
    return lambda envelope: answers[envelope["method"]]


def spoiled(answer: Answer, **ways: Any) -> Answer:
    """The same answer, but sent in other `ways`: fields of `Says`."""
    return lambda envelope: replace(_said(answer, envelope), **ways)


def gzip_bomb(body_bytes: int) -> Says:
    """A small answer that says to unpack into so many bytes."""
    packed = gzip.compress(b" " * body_bytes, compresslevel=9)
    return Says(packed, headers={"Content-Encoding": "gzip"})


@dataclass(frozen=True)
class Heard:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @cached_property
    def envelope(self) -> Envelope:
        """The body as JSON; with nulls alone when it is none."""
        try:
            value = json.loads(self.body)
        except ValueError:
            return _NO_ENVELOPE
        return _NO_ENVELOPE | value if isinstance(value, dict) else _NO_ENVELOPE


class Liar:
    """A server at `url` for as long as the block runs; `answers` says what it answers.

    With `tls` it speaks TLS. Everything that is counted may be read at any time.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, host: str = LOOPBACK) -> None:
        self._tls = tls
        self._listener = socket.create_server((host, 0))
        port = self._listener.getsockname()[1]
        self.base_url = f"{'https' if tls else 'http'}://{host}:{port}"
        self.url = f"{self.base_url}/typedrequest"
        self.requests: list[Heard] = []
        self.connections = 0
        """How many were made; with TLS, how many handshakes succeeded."""
        self.open_connections = 0
        self.sent_bytes = 0
        """Of all answers, headers included, as far as the connection took them."""
        self._script = _script(CUT)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._serving: set[asyncio.Task[None]] = set()

    def answers(self, *answers: Answer) -> None:
        """From now on answer these, one request each, in this order; the last one again and again.

        Before the first call of this, connections end without an answer.
        """
        # One object: the server's thread sees the old script or the new one from its beginning.
        self._script = _script(*answers)

    def ready_with(self, certificate: Mapping[str, Any] | OnTheWire) -> None:
        """From now on answer every call with `ready` and this certificate."""
        self.answers(ready_with(certificate))

    @property
    def methods(self) -> list[str | None]:
        """The contract's methods that were called, in the order of their arrival."""
        return [request.envelope["method"] for request in list(self.requests)]

    def __enter__(self) -> Self:
        self._thread.start()
        self._within_loop(self._open)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, error, traceback
        self._within_loop(self._close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_LIMIT_SECONDS)
        self._loop.close()

    def _within_loop(self, act: Callable[[], Any]) -> None:
        asyncio.run_coroutine_threadsafe(act(), self._loop).result(_START_LIMIT_SECONDS)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, sock=self._listener, ssl=self._tls)

    async def _close(self) -> None:
        self._server.close()
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        # asyncio closes the sockets in the loop's next round.
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self.connections += 1
        self.open_connections += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The other side had enough, or the block ended.
            writer.transport.abort()
        finally:
            writer.close()
            self.open_connections -= 1
            self._serving.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; false when the connection is to end."""
        request = await _hear(reader)
        self.requests.append(request)
        says = _said(next(self._script), request.envelope)
        await self._send(says, writer)
        if says.hangs:
            # Ends with the other side's end; what it still sends is thrown away.
            await reader.read(-1)
        if says.resets:
            peer = writer.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_FOR_RESET)
            writer.transport.abort()
        return not says.ends

    async def _send(self, says: Says, writer: asyncio.StreamWriter) -> None:
        size = _CHUNK_BYTES if says.seconds_per_byte is None else 1
        for chunk in says.chunks():
            for start in range(0, len(chunk), size):
                writer.write(chunk[start : start + size])
                await writer.drain()
                self.sent_bytes += len(chunk[start : start + size])
                if says.seconds_per_byte is not None:
                    await asyncio.sleep(says.seconds_per_byte)


async def _hear(reader: asyncio.StreamReader) -> Heard:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Heard(method, path, headers, body)


def _script(*answers: Answer) -> Iterator[Answer]:
    return chain(answers, repeat(answers[-1]))


def _said(answer: Answer, envelope: Envelope) -> Says:
    while callable(answer):
        answer = answer(envelope)
    return Says(answer) if isinstance(answer, bytes) else answer
