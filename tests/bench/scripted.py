"""A server that answers what a test says, over kept connections: whatever a gateway might say.

A fake, since no gateway can be made to answer wrongly. Called by the tests of the bench's callers.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.lab.ports import LOOPBACK


@contextlib.contextmanager
def answering(answer: Callable[[bytes], bytes]) -> Iterator[int]:
    """Answer each request by its body; the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response_only(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
