"""A CA that answers exactly what it is told to, byte by byte, over real sockets."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from gateway.certificates.authority import AuthoritySettings
from tests.lab.ports import LOOPBACK

CUT = b""
"""A step: close the connection without an answer."""


@dataclass
class Seen:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class ScriptedCa:
    """Takes one step of `steps` for each request; a step is the whole answer.

    The connection is kept after an answer that states its full length, and closed after all others.
    """

    listener: socket.socket
    steps: list[bytes]
    seen: list[Seen] = field(default_factory=list)

    def __post_init__(self) -> None:
        # The connection that is served now; none is yet.
        self._connection = self.listener
        self._is_over = False

    @property
    def url(self) -> str:
        host, port = self.listener.getsockname()
        return f"http://{host}:{port}"

    def serve(self) -> None:
        """Answer one connection after the other until `close`."""
        while True:
            try:
                self._connection, _ = self.listener.accept()
            except OSError:
                return
            with (
                # A client that had enough of a long answer resets the connection.
                contextlib.suppress(OSError),
                self._connection as connection,
                connection.makefile("rb") as stream,
            ):
                # A connection that was taken just as `close` looked is not shut down by it.
                while not self._is_over and self._answer(stream):
                    pass

    def close(self) -> None:
        """Wake the serving thread up wherever it waits, and end it."""
        self._is_over = True
        for waiting in (self.listener, self._connection):
            with contextlib.suppress(OSError):
                waiting.shutdown(socket.SHUT_RDWR)

    def _answer(self, stream: BinaryIO) -> bool:
        first = stream.readline().decode().split()
        if not first:
            return False
        headers = {}
        while line := stream.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = stream.read(int(headers.get("content-length", "0")))
        self.seen.append(Seen(first[0], first[1], headers, body))
        step = self.steps.pop(0)
        self._connection.sendall(step)
        return _states_its_length(step)


@contextmanager
def scripted_ca(steps: Sequence[bytes]) -> Iterator[ScriptedCa]:
    """Serve `steps` on loopback; every step must have been taken in the end."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        ca = ScriptedCa(listener, list(steps))
        thread = threading.Thread(target=ca.serve)
        thread.start()
        try:
            yield ca
        finally:
            ca.close()
            thread.join()
    assert ca.steps == []


def answer(status: int, body: bytes = b"", *, nonce: str | None = None, **headers: str) -> bytes:
    """Make a whole answer; `retry_after` becomes `retry-after`."""
    lines = [f"HTTP/1.1 {status} Scripted", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if nonce is not None:
        lines.append(f"Replay-Nonce: {nonce}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def bad_nonce(nonce: str | None) -> bytes:
    """Make the answer that rejects a nonce and, mostly, brings the next one."""
    body = b'{"type":"urn:ietf:params:acme:error:badNonce","detail":"no"}'
    return answer(400, body, nonce=nonce, content_type="application/problem+json")


NEW_NONCE = answer(200, nonce="bm9uY2U0")
"""A step: the first nonce."""


def directory(ca: ScriptedCa, *more: str) -> bytes:
    """Make the answer that is the CA's directory, with these entries beside the needed ones."""
    names = ("newNonce", "newAccount", "newOrder", *more)
    entries = {name: f"{ca.url}/{name}" for name in names}
    return answer(200, json.dumps({**entries, "meta": {"website": "x"}}).encode())


def scripted_settings(ca: ScriptedCa, **changes: Any) -> AuthoritySettings:
    """Make the settings of an authority at the CA."""
    values: dict[str, Any] = {
        "directory_url": f"{ca.url}/dir",
        "ca_bundle": None,
        "contact": (),
        "eab_key_id": None,
        "eab_hmac_key": None,
        "user_agent": "gateway-tests/1",
        "name": "scripted",
        **changes,
    }
    return AuthoritySettings(**values)


def _states_its_length(step: bytes) -> bool:
    head, _, body = step.partition(b"\r\n\r\n")
    return f"content-length: {len(body)}" in head.decode("latin-1").lower().split("\r\n")
