"""Passes calls on to a gateway and spoils what comes back, in ways that no gateway would.

Responsible for: leaving `Cache-Control` out of the answers, and connections that end too early at
an exact place, which the kill of a real gateway hits only by chance.
Must not: make up an answer; every byte of a body is the gateway's own.
Called by: tests of what a client makes of it.
"""

import os
import socket
import struct
import threading
from enum import Enum, auto
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from tests.lab.ports import LOOPBACK, free_port

_GATEWAY_LIMIT_SECONDS = 15.0
_LINGER_FOR_RESET = struct.pack("ii", 1, 0)


class Fault(Enum):
    """How the connection of every further call ends."""

    REFUSED = auto()
    RESET = auto()
    CUT_BEFORE_ANSWER = auto()
    CUT_IN_BODY = auto()


class HttpRelay:
    """A relay to the gateway at `gateway_port`; a context manager that runs it.

    With `keeps_cache_control` its answers are the gateway's own; without, nothing else is missing.
    """

    def __init__(self, gateway_port: int, *, keeps_cache_control: bool) -> None:
        self._server = _Server(gateway_port, keeps_cache_control=keeps_cache_control)
        self.url = f"http://{LOOPBACK}:{self._server.server_port}/typedrequest"
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
        del kind, error, traceback
        self._end()

    def break_with(self, fault: Fault) -> None:
        """From now on no call gets a whole answer."""
        self._server.fault = fault
        if fault is Fault.REFUSED:
            self._end()

    def _end(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, gateway_port: int, *, keeps_cache_control: bool) -> None:
        super().__init__((LOOPBACK, free_port()), _Handler)
        self.gateway_port = gateway_port
        self.keeps_cache_control = keeps_cache_control
        self.fault: Fault | None = None


class _Handler(BaseHTTPRequestHandler):
    """One call on one connection: HTTP/1.0, so that a fault meets no connection from before."""

    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.fault is Fault.RESET:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_FOR_RESET)
            # Closed past the server, which would say goodbye first.
            os.close(self.connection.detach())
        elif self.server.fault is not Fault.CUT_BEFORE_ANSWER:
            self._pass_on(body)

    def _pass_on(self, body: bytes) -> None:
        gateway = HTTPConnection(LOOPBACK, self.server.gateway_port, timeout=_GATEWAY_LIMIT_SECONDS)
        try:
            gateway.request("POST", self.path, body, {"Content-Type": "application/json"})
            answer = gateway.getresponse()
            content = answer.read()
        finally:
            gateway.close()
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() != "cache-control" or self.server.keeps_cache_control:
                self.send_header(name, value)
        self.end_headers()
        is_cut = self.server.fault is Fault.CUT_IN_BODY
        self.wfile.write(content[: len(content) // 2] if is_cut else content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's own name)
        """Say nothing: a test reads outcomes."""
