"""A scripted ACME proxy in front of a real Pebble: what Pebble cannot be made to do at will.

Responsible for: passing every request on unless a mood is in charge of it, counting what the client
sent and what the CA saw, and (for a Pebble without it) serving renewal information.
Must not: make up an answer where Pebble has one; moods change Pebble's own.
Called by: tests of the CA's moods, and of renewal where no newer Pebble can be had.

The client's `Host` goes along, and Pebble makes all its URLs from it: every URL leads through the
proxy, and is the one that requests are signed for.
"""

import contextlib
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.lab.acme_calls import RENEWAL_INFO_PATH, AcmeMap, Answer, Call, Operation
from tests.lab.acme_moods import Cut, Mood
from tests.lab.acme_renewal import RenewalWindows
from tests.lab.pebble import PebbleProcess
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import LabFault
from tests.lab.tls import write_server_certificate

_CA_LIMIT_SECONDS = 15.0
_LONGEST_HOLD_SECONDS = 90.0
_FOR_ONE_CONNECTION = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})


@dataclass
class Rule:
    """A mood and the requests that it is in charge of; `hits` are those it met so far.

    As a context manager it is over at the end of the block.
    """

    operation: Operation
    mood: Mood
    hostname: str | None
    times: int | None
    hits: list[Call] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def takes(self, call: Call) -> bool:
        """Whether the mood is in charge of this request too."""
        is_left = self.times is None or len(self.hits) < self.times
        is_meant = self.hostname is None or self.hostname == call.hostname
        return is_left and is_meant and self.operation is call.operation and not self.is_over

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def end(self) -> None:
        """No further request meets the mood; those that it holds are let go. May be repeated."""
        self._over.set()

    def wait(self, limit_seconds: float) -> None:
        """Wait until the mood is over."""
        self._over.wait(limit_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, error, traceback
        self.end()


class AcmeProxy:
    """A proxy to `pebble`, with its files in `folder`; a context manager that runs it.

    `directory_url` and `ca_file` are what a client is configured with. Pebble may be stopped and
    started again behind it: without Pebble, connections are cut.
    """

    def __init__(self, folder: Path, pebble: PebbleProcess) -> None:
        self.ca_file = folder / "proxy-ca.pem"
        certificate_file, key_file = folder / "proxy.pem", folder / "proxy.key"
        write_server_certificate(self.ca_file, certificate_file, key_file, LOOPBACK)
        behind = urlsplit(pebble.directory_url)
        port = free_port()
        self.directory_url = f"https://{LOOPBACK}:{port}{behind.path}"
        self.calls: list[Call] = []
        self.broken: list[str] = []
        self.renewal_windows: RenewalWindows | None = None
        self._upstream = (behind.hostname or LOOPBACK, behind.port or 443)
        self._upstream_tls = ssl.create_default_context(cafile=pebble.ca_file)
        self._map = AcmeMap(behind.path)
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate_file, key_file)
        self._server = _Server(self, port, tls)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, traceback
        with self._lock:
            for rule in self._rules:
                rule.end()
        self._server.shutdown()
        self._thread.join()
        self._server.end()
        if self.broken and error is None:
            raise LabFault("the proxy's script broke: " + "; ".join(self.broken))

    def on(
        self,
        operation: Operation | str,
        mood: Mood,
        *,
        hostname: str | None = None,
        times: int | None = 1,
    ) -> Rule:
        """Put a mood in charge of the next `times` requests (None: of all until its rule ends).

        With a `hostname` only of those about it. Where several rules fit, the oldest is in charge.
        """
        rule = Rule(Operation(operation), mood, hostname, times)
        with self._lock:
            self._rules.append(rule)
        return rule

    def offer_renewal_info(self) -> RenewalWindows:
        """From now on the directory has `renewalInfo`, served here; answers what it says.

        For a Pebble without it. A client must read the directory again to notice.
        """
        self.renewal_windows = RenewalWindows()
        return self.renewal_windows

    def seen(self, operation: Operation | str, hostname: str | None = None) -> list[Call]:
        """The requests so far, of one hostname or of all."""
        with self._lock:
            return [
                call
                for call in self.calls
                if call.operation is Operation(operation) and hostname in {None, call.hostname}
            ]

    def done(self, operation: Operation | str, hostname: str | None = None) -> list[Call]:
        """Those of them that Pebble carried out, whether or not the client got to know."""
        return [
            call
            for call in self.seen(operation, hostname)
            if call.ca_status is not None and call.ca_status < 300
        ]

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Answer one request. Raises: Cut."""
        with self._lock:
            call = self._map.call(method, path, body)
            self.calls.append(call)
            rule = next((rule for rule in self._rules if rule.takes(call)), None)
            if rule is not None:
                rule.hits.append(call)
                call.mood = rule.mood.name
        exchange = _Exchange(self, call, headers, body, rule)
        answer = exchange.pass_on() if rule is None else rule.mood(exchange)
        call.status = answer.status
        return answer

    def ask_pebble(self, call: Call, headers: dict[str, str], body: bytes) -> Answer:
        """Pass a request on and learn from the answer. Raises: Cut."""
        if call.path.startswith(f"{RENEWAL_INFO_PATH}/") and self.renewal_windows is not None:
            return self.renewal_windows.answer(call.path)
        connection = HTTPSConnection(
            *self._upstream, timeout=_CA_LIMIT_SECONDS, context=self._upstream_tls
        )
        try:
            connection.request(call.method, call.path, body or None, headers)
            received = connection.getresponse()
            content = received.read()
        except (OSError, HTTPException):
            raise Cut from None
        finally:
            connection.close()
        call.ca_status = received.status
        kept = [
            pair for pair in received.getheaders() if pair[0].lower() not in _FOR_ONE_CONNECTION
        ]
        answer = Answer(received.status, tuple(kept), content)
        if call.operation is Operation.DIRECTORY and self.renewal_windows is not None:
            url = f"https://{headers['Host']}{RENEWAL_INFO_PATH}"
            answer = answer.with_json({**answer.json(), "renewalInfo": url})
        with self._lock:
            self._map.learn(call, answer)
        if call.operation is Operation.CERTIFICATE and self.renewal_windows is not None:
            self.renewal_windows.issued(answer.body)
        return answer


@dataclass
class _Exchange:
    proxy: AcmeProxy
    call: Call
    headers: dict[str, str]
    body: bytes
    rule: Rule | None

    def pass_on(self) -> Answer:
        return self.proxy.ask_pebble(self.call, self.headers, self.body)

    def hold(self) -> None:
        if self.rule is not None:
            self.rule.wait(_LONGEST_HOLD_SECONDS)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, proxy: AcmeProxy, port: int, tls: ssl.SSLContext) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.proxy = proxy
        self._tls = tls
        self._connections: set[socket.socket] = set()

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        # The handshake is the connection's own thread's: a client that is slow holds up no other.
        wrapped = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        self._connections.add(wrapped)
        return wrapped, address

    def shutdown_request(self, request: object) -> None:
        if isinstance(request, socket.socket):
            self._connections.discard(request)
        super().shutdown_request(request)  # type: ignore[arg-type]

    def end(self) -> None:
        """Stop listening, and end the connections that clients keep for later."""
        self.server_close()
        end = time.monotonic() + 2.0
        while self._connections and time.monotonic() < end:
            for connection in list(self._connections):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            time.sleep(0.01)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client may go whenever it likes."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer(b"")

    def do_HEAD(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in _FOR_ONE_CONNECTION
        }
        try:
            answer = self.server.proxy.answer(self.command, self.path, headers, body)
        except Cut as cut:
            self.close_connection = True
            if cut.answer is not None:
                self._send(cut.answer, cut.answer.body[: cut.sent])
        except Exception as error:  # noqa: BLE001 (told at the proxy's end, not on a thread's stderr)
            self.server.proxy.broken.append(f"{self.command} {self.path}: {error!r}")
            self.close_connection = True
        else:
            self._send(answer, answer.body)

    def _send(self, answer: Answer, content: bytes) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's own name)
        """Say nothing: a test reads outcomes."""
