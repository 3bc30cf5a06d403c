"""HTTP/1.1 on one connection: uvicorn's protocol with bounds, deadlines and stricter framing.

What uvicorn 0.54 with httptools 0.9 leaves open, and what is done about it here:

- A head (request line and headers) may be of any size and take for ever: it is bounded in both.
- A connection on which nothing is ever sent is kept for ever: it has as long as a head.
- httptools takes `Upgrade` as the end of HTTP and drops the request's body, which is how Java's
  HttpClient begins ("h2c"): the head is read again without that header, as RFC 9110 section 7.8
  allows.
- A client that reads nothing keeps its answer in memory for ever: it is given up after a while.
- Any number of pipelined requests are held: those beyond a few are not answered.
- The rest of a body that nobody reads may take for ever: it has as long as a head.
- Framing on which two servers may not agree is refused: more than one Host, or none in HTTP/1.1,
  another Transfer-Encoding than chunked, one in HTTP/1.0, other versions. Duplicate and
  contradicting lengths are refused by llhttp itself.
- Closing after an answer to a request that is still being sent has the kernel take the answer back:
  the rest is read for a moment.
- A refusal is written while an earlier request is still being answered: it waits for that answer.
- A client that says that it sends no more is cut off before its call is answered: it is answered
  first. Over TLS it is not, whose end is one for both sides.

Must not: know what is served. Called by `server`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from gateway.http.listener.cycle import Cycle
from gateway.http.listener.heads import framing_fault, target_of, without_upgrade

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from uvicorn.config import Config
    from uvicorn.server import ServerState

    from gateway.http.listener.idling import Idle
    from gateway.http.listener.patience import Patience

MAX_HEAD_BYTES: Final = 16 * 1024
MAX_TARGET_BYTES: Final = 2 * 1024
MAX_PIPELINED: Final = 32
LINGER_SECONDS: Final = 2.0


class _Refused(Exception):
    """The request is not to be answered by the application; the connection ends."""


class Protocol(HttpToolsProtocol):
    """One connection. `on_lost` is called once it is gone."""

    cycle: Cycle
    """The request that came last, and its answer."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        on_lost: Callable[[], None],
        patience: Patience,
        idle: Idle,
    ) -> None:
        super().__init__(config, server_state, {})
        self._idle = idle
        self._patience = patience
        self._on_lost = on_lost
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._is_idle = True
        """Whether every request that has come was answered."""
        self._kept_since: float | None = None
        """Since when it waits for another request, by the event loop's time."""
        self._is_in_head = False
        self._is_in_body = False
        self._has_begun_alone = False
        self._is_ending = False
        self._head_bytes = 0
        self._refusal: HTTPStatus | None = None
        self._plain_head: bytes | None = None

    # --- the connection -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; the first head has to come in time."""
        super().connection_made(transport)
        # Told of whatever the peer has not taken yet, so that it can be given up. Not 0, at which
        # uvloop 0.23 stops writing over TLS before anything was written.
        transport.set_write_buffer_limits(high=1, low=0)
        self._await_peer()
        self._idle.begin(self._on_lost, self._give_way)

    def connection_lost(self, exc: Exception | None) -> None:
        """End; whatever was waited for."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # uvicorn leaves it when the peer broke off
        self._stop_awaiting()
        self._stop_stalling()
        self.pipeline.clear()
        self._on_lost()

    def eof_received(self) -> bool:  # type: ignore[override]
        """The peer sends no more; whether the connection is kept, for the answers that are due."""
        is_due = self.scheme == "http" and not self._is_idle and not self._is_in_body
        if is_due:
            self._end()
        return is_due

    def _give_way(self) -> None:
        """Make room for another connection, at once."""
        self._on_lost()
        self.transport.abort()

    def pause_writing(self) -> None:
        """The peer does not take what is sent: it has a while to go on."""
        super().pause_writing()
        if self._stall is None:
            self._stall = self.loop.call_later(self._patience.reading_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The peer has taken all of it."""
        super().resume_writing()
        self._stop_stalling()

    def _await_peer(self) -> None:
        """The rest of a head, or of a body that is not read, has to come in time from now on."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(self._patience.head_seconds, self._give_up)

    def _stop_awaiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _stop_stalling(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _give_up(self) -> None:
        self._deadline = None
        if self._is_in_head and self._is_idle:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self.transport.close()

    # --- what comes in ---------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Feed the parser; refuse what it or this class does not take."""
        if self._is_ending or self.transport.is_closing():
            return
        self._kept_since = None
        awaits_head, was_in_head = self._is_idle and not self._is_in_body, self._is_in_head
        while data:
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as upgrade:
                data = self._without_upgrade(data[upgrade.args[0] :])
            except httptools.HttpParserError:
                self._refuse(self._refusal or HTTPStatus.BAD_REQUEST)
                return
        if self._is_in_body or self._is_idle:  # mostly a request has come whole
            self._await_rest(awaits_head)
        if was_in_head and self._is_in_head:
            # A header that goes on and on is not told of before its end.
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def _await_rest(self, awaited_head: bool) -> None:
        """What has come does not end a request: the rest of it, or another one, is waited for."""
        if self._is_in_body:
            if self._has_begun_alone:
                self._has_begun_alone = False
                self._idle.begin(self._on_lost, self._give_way)
        elif awaited_head:
            self._await_peer()
        elif not (self._is_in_head or self._deadline):
            self._keep_alive()

    def _without_upgrade(self, rest: bytes) -> bytes:
        """What a new parser is to read: the same head without its Upgrade, and what follows it."""
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        head, self._plain_head = self._plain_head, None
        if head is None:  # CONNECT: no HTTP follows
            self._end()
            return b""
        return head + rest

    def on_message_begin(self) -> None:
        """A request begins. Its scope is made once its head is whole, where uvicorn begins it."""
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._is_in_head, self._head_bytes = True, 0

    def on_url(self, url: bytes) -> None:
        """A part of the request's target."""
        self.url += url
        if len(self.url) > MAX_TARGET_BYTES:
            self._stop(HTTPStatus.REQUEST_URI_TOO_LONG)
        self._head_bytes += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, whole."""
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > MAX_HEAD_BYTES:
            self._stop(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_headers_complete(self) -> None:
        """The head is whole: judge its framing, then hand the request over."""
        self._is_in_head, self._is_in_body = False, True
        self._stop_awaiting()
        parser = self.parser
        method, version = parser.get_method(), parser.get_http_version()
        fault = framing_fault(version, self.headers)
        if fault is not None:
            self._stop(fault)
        if parser.should_upgrade() and method != b"CONNECT":
            self._plain_head = without_upgrade(method, self.url, version, self.headers)
            return
        if len(self.pipeline) >= MAX_PIPELINED:
            self._end()
        if not self._is_ending:
            self._has_begun_alone = self._is_idle
            self._begin_answer(method, version)

    def _begin_answer(self, method: bytes, version: str) -> None:
        """Hand the request over, as uvicorn does, once the one before it is answered."""
        path, raw_path, query = target_of(self.url)
        cycle = self.cycle = Cycle(
            self,
            {
                "type": "http",
                "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
                "http_version": version,
                "server": self.server,
                "client": self.client,
                "scheme": self.scheme,
                "root_path": self.root_path,
                "method": method.decode("ascii"),
                "path": path,
                "raw_path": raw_path,
                "query_string": query,
                "headers": self.headers,
                "state": {},
            },
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
        )
        if self._is_idle:
            self._is_idle = False
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def on_body(self, body: bytes) -> None:
        """A part of a body."""
        cycle = self.cycle
        if self._is_ending or cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.tell()

    def on_message_complete(self) -> None:
        """A request is whole."""
        self._is_in_body = False
        self._stop_awaiting()
        if not self._is_idle:
            self._idle.over(self._on_lost)
        cycle = self.cycle
        if self._plain_head is None and cycle is not None:
            if not cycle.response_complete:
                cycle.more_body = False
                cycle.tell()
            self._is_ending = self._is_ending or not cycle.keep_alive

    def on_response_complete(self) -> None:
        """An answer is whole: what is still to come of a request has to come in time."""
        self._is_idle = not self.pipeline
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if not self._is_idle:
            self._start_asgi_task(*self.pipeline.pop())
        if self._is_idle or (self._is_in_body and not self.pipeline):
            self._idle.begin(self._on_lost, self._give_way)
        if self._is_idle:
            if self._is_in_body or self._is_in_head:
                self._await_peer()
            else:
                self._keep_alive()

    def _keep_alive(self) -> None:
        """Between two requests: the next one may take its time, but not for ever.

        One timer looks again and again: to set and take back one for each request was 2% of a call.
        """
        self._kept_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._look_again(self.timeout_keep_alive)

    def _look_again(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        self.timeout_keep_alive_task = None
        if self._kept_since is None:
            return
        left_seconds = self._kept_since + self.timeout_keep_alive - self.loop.time()
        if left_seconds > 0:
            self._look_again(left_seconds)
        else:
            self.timeout_keep_alive_handler()

    # --- refusing --------------------------------------------------------------------------

    def _stop(self, status: HTTPStatus) -> None:
        """Stop the parser within one of its calls; `data_received` then refuses."""
        self._refusal = status
        raise _Refused(status.phrase)

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer with a status and end; after the answers that are still under way, if any are."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if cycle.more_body and not cycle.response_started and not self.pipeline:
                cycle.disconnected = True  # its own body is at fault: nothing is to be made of it
                cycle.tell()
            else:
                self._end()
                return
        self._is_ending = True
        body = status.phrase.encode()
        head = [STATUS_LINE[status]]
        headers = [
            *self.server_state.default_headers,
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        head += [b"%b: %b\r\n" % pair for pair in headers]
        self.transport.write(b"".join([*head, b"\r\n", body]))
        self._close_once_read()

    def close_after_answer(self) -> None:
        """Close, once an answer is whole that is the last one."""
        if self._is_in_body:
            self._is_ending = True
            self._close_once_read()
        else:
            self.transport.close()

    def _close_once_read(self) -> None:
        """Close, but let the peer read first: bytes that nobody takes would cut it off."""
        if not self.transport.can_write_eof():  # as with TLS, whose close is an exchange of its own
            self.transport.close()
            return
        self.transport.write_eof()
        self.flow.resume_reading()
        self._stop_awaiting()
        self._deadline = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _end(self) -> None:
        """Take no more; close after the last answer that is under way."""
        self._is_ending = True
        if self._is_idle:
            self.transport.close()
        else:
            self.cycle.keep_alive = False
