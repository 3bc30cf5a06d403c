"""One kept HTTP connection to the gateway, as lean as it gets.

The callers share two cores with what they measure, so they must cost little: a client library takes
longer for a call than the gateway does. Must not: know what is called. Called by `lanes`, `bursts`;
`tests.faults.floodrun` uses its halves.
"""

import asyncio
import json

from tests.lab.ports import LOOPBACK

_LENGTH = b"content-length:"
_ANSWER_LIMIT_SECONDS = 30.0


class Wire:
    """Opened when first needed, and again after the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, body: bytes) -> tuple[int, bytes]:
        """Send one body; the status and the body of the answer.

        Raises: as `send`.
        """
        return await self.send(request_bytes(body))

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """Send one whole request; the status and the body of the answer.

        Raises: OSError (TimeoutError is one), EOFError when the connection ends.
        """
        async with asyncio.timeout(_ANSWER_LIMIT_SECONDS):
            if self._streams is None:
                self._streams = await asyncio.open_connection(LOOPBACK, self._port)
            reader, writer = self._streams
            try:
                writer.write(request)
                head, answer = await read_answer(reader)
            except BaseException:
                self.close()
                raise
        if b"\r\nconnection: close" in head.lower():
            self.close()
        return int(head.split(b" ", 2)[1]), answer

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def envelope(method: str, request: dict[str, object]) -> bytes:
    """A call as a body."""
    correlation = {"id": "bench", "phase": "request"}
    return json.dumps({"method": method, "request": request, "correlation": correlation}).encode()


def request_bytes(body: bytes) -> bytes:
    """A call with this body, on a connection that is kept."""
    head = (
        "POST /typedrequest HTTP/1.1\r\nHost: lab\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def read_answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The head and the body of the next answer.

    Raises: OSError, EOFError when the connection ends.
    """
    head = await reader.readuntil(b"\r\n\r\n")
    return head, await reader.readexactly(_length(head))


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(_LENGTH):
            return int(line[len(_LENGTH) :])
    raise EOFError("the answer does not say how long it is")
