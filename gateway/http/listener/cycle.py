"""A request and its answer, as uvicorn has them, with a short way for what is whole at once.

An application may ask for the body of a request that has come whole, without waiting for what
cannot be late (`WHOLE_BODY`), and hand over an answer that is whole (`WHOLE_ANSWER`), which goes
out in one write: both were a tenth of a call. Everything else goes uvicorn's way (0.54). Must not:
know what is served. Made by `protocol`.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.http.listener.protocol import Protocol

WHOLE_BODY: Final = "gateway.whole_body"
"""The extension: a function that answers the whole body, or None where it has not come yet.

Whoever asks takes it out of the scope: that, the request and its answer would keep each other."""

WHOLE_ANSWER: Final = "gateway.whole_answer"
"""The extension: a message of this type is a start and the whole body of an answer in one.

Its headers are written as they are: their names in lower case, among them the body's length, and
nothing in them that is another's text. Its status is one that has a body.
"""

_GO_ON: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CONNECTION: Final = b"connection"


class Cycle(RequestResponseCycle):
    """One request and its answer.

    What uvicorn's own is given at its making is made here once it is needed, which mostly it is
    not: the event that there is something to receive, and a transport that has parts to write.
    """

    def __init__(self, protocol: Protocol, scope: dict[str, Any], *, keep_alive: bool) -> None:
        self._protocol = protocol
        self._event: asyncio.Event | None = None
        self._answering: Answering | None = None
        scope["extensions"] = {WHOLE_BODY: self.whole_body, WHOLE_ANSWER: {}}
        self.scope = scope  # type: ignore[assignment]
        self.flow = protocol.flow
        self.logger = protocol.logger
        self.access_log = False
        self.default_headers = protocol.server_state.default_headers
        self.disconnected = False
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = protocol.expect_100_continue
        self.body = bytearray()
        self.more_body = True
        self.response_started = False
        self.response_complete = False
        self.chunked_encoding = None
        self.expected_content_length = 0

    @property
    def message_event(self) -> asyncio.Event:  # type: ignore[override]
        """That there is something to receive; for uvicorn."""
        if self._event is None:
            self._event = asyncio.Event()
            if self.body or not self.more_body or self.disconnected or self.response_complete:
                self._event.set()
        return self._event

    @property
    def transport(self) -> Answering:  # type: ignore[override]
        """What takes the parts of the answer; for uvicorn."""
        if self._answering is None:
            self._answering = Answering(self._protocol)
            self.on_response = self._answering.complete
        return self._answering

    def tell(self) -> None:
        """There is more of the request, or nobody to answer any more."""
        if self._event is not None:
            self._event.set()

    def whole_body(self) -> bytes | None:
        """The whole body, if it has come; it is taken out, so that `receive` has none of it."""
        if self.more_body or self.disconnected or self.waiting_for_100_continue:
            return None
        body, self.body = bytes(self.body), bytearray()
        return body

    async def send(self, message: Any) -> None:
        """Send a part of the answer, or all of it; see ASGI."""
        if message["type"] != WHOLE_ANSWER:
            await super().send(message)
            return
        answer = None if self.flow.write_paused else self._whole(message)
        if answer is not None:
            self.response_started = self.response_complete = True
            self.tell()
            self._protocol.transport.write(answer)
            self._protocol.on_response_complete()
            return
        start, body = {**message, "type": "http.response.start"}, message["body"]
        await super().send(start)  # type: ignore[arg-type]
        await super().send({"type": "http.response.body", "body": body})

    def _whole(self, message: Any) -> bytes | None:
        """A whole answer as it goes out; None where there is more to it than to write it."""
        if self.disconnected or not self.keep_alive or self.scope["method"] == "HEAD":
            return None
        lines = [STATUS_LINE[message["status"]], _lines_of(tuple(self.default_headers))]
        for name, value in message["headers"]:
            if name == _CONNECTION:
                return None
            lines += (name, b": ", value, b"\r\n")
        lines += (b"\r\n", message["body"])
        return b"".join(lines)


class Answering:
    """The transport, as far as uvicorn's cycle of a request and its answer uses it.

    The answer's head goes out together with what follows it: a system call less, and a tenth of
    what the listener takes of an answer.
    """

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._head = b""
        self._has_begun = False

    def write(self, data: bytes) -> None:
        """A part of the answer, its head first."""
        if self._has_begun:
            self._write(data)
        elif data == _GO_ON:
            self._protocol.transport.write(data)
        else:
            self._has_begun, self._head = True, data

    def is_closing(self) -> bool:
        """Whether nothing more is taken."""
        return self._protocol.transport.is_closing()

    def close(self) -> None:
        """The answer is the last one."""
        self._write(b"")
        self._protocol.close_after_answer()

    def complete(self) -> None:
        """The answer is whole, also one that is nothing but a head."""
        self._write(b"")
        self._protocol.on_response_complete()

    def _write(self, data: bytes) -> None:
        head, self._head = self._head, b""
        if head or data:
            self._protocol.transport.write(head + data)


@lru_cache(64)
def _lines_of(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Headers of the server's own, which has looked at them."""
    return b"".join(b"%b: %b\r\n" % (name.lower(), value) for name, value in headers)
