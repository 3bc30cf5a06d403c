"""The exchanges that `docs/clients.md` shows, and the same ones played on a gateway.

Responsible for reading the page's `http` blocks (a request, then its answer, in an order that can
be played from the first to the last), for sending exactly their bytes over one connection, and for
turning the lab's names and secrets back into those of the page, so that bytes can be compared.
Must not: judge; the tests do. Used by `test_clients_page`.
"""

import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from tests.lab.lab import Lab

PAGE_FILE = Path(__file__).parents[3] / "docs" / "clients.md"
ADMIN_TOKEN = "gwa_aQ9zExample"
ZONE = "example.com"
CLUSTER = "cluster-a"

_BLOCK = re.compile(r"^```http\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TOKEN = re.compile(r'"apiToken":"(gwc_[^"]+)"')
_VOLATILE = (
    # What differs from one gateway, and from one moment, to the next.
    (re.compile(r'("(?:validFrom|validUntil|renewAfter|createdAt)":)\d{13}\b'), r"\1TIME"),
    (re.compile(r'("retryAfterMs":)\d+'), r"\1MS"),
    (re.compile(r'("(?:credentialId|apiToken)":)"[^"]+"'), r"\1TEXT"),
    (re.compile(r'("(?:chainPem|privateKeyPem)":)"-----BEGIN [^"]+-----\\n"'), r"\1PEM"),
)
_WAIT_LIMIT_SECONDS = 30.0
_ANSWER_LIMIT_SECONDS = 15.0


@dataclass(frozen=True)
class Message:
    """One request or answer of HTTP/1.1, as text: the first line, the headers, the body."""

    first_line: str
    headers: tuple[tuple[str, str], ...]
    body: str

    @classmethod
    def parse(cls, text: str, end: str) -> Self:
        head, _, body = text.partition(end * 2)
        first_line, *lines = head.split(end)
        pairs = (line.partition(": ") for line in lines)
        return cls(first_line, tuple((name, value) for name, _, value in pairs), body)

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key.lower() == name]
        return found[0] if found else None

    def as_bytes(self) -> bytes:
        """What goes over the wire: CRLF, and the length of this body."""
        length = str(len(self.body.encode()))
        lines = [
            f"{name}: {length if name.lower() == 'content-length' else value}"
            for name, value in self.headers
        ]
        return "\r\n".join([self.first_line, *lines, "", self.body]).encode()

    def settled(self) -> "Message":
        """Without what differs each time; the length goes with the body."""
        body = self.body
        for pattern, by in _VOLATILE:
            body = pattern.sub(by, body)
        moving = {"date": "DATE", "content-length": "LENGTH", "x-request-id": "ID"}
        headers = tuple((name, moving.get(name.lower(), value)) for name, value in self.headers)
        return replace(self, headers=headers, body=body)


@dataclass(frozen=True)
class Exchange:
    """A request of the page and the answer that it shows."""

    request: Message
    answer: Message


def exchanges() -> list[Exchange]:
    """All of the page, in its order."""
    blocks = _BLOCK.findall(PAGE_FILE.read_text(encoding="utf-8"))
    messages = [Message.parse(block.removesuffix("\n"), "\n") for block in blocks]
    return [Exchange(*pair) for pair in zip(messages[::2], messages[1::2], strict=True)]


def play(lab: Lab, label: str, shown: list[Exchange]) -> Iterator[Message]:
    """What the gateway answers to each, in the page's own names. `label` stands for its cluster."""
    names = [(ADMIN_TOKEN, lab.config.admin_token), (CLUSTER, label), (ZONE, lab.bind.zones[0])]
    with socket.create_connection(("127.0.0.1", lab.config.port)) as connection:
        connection.settimeout(_ANSWER_LIMIT_SECONDS)
        for exchange in shown:
            request = exchange.request.as_bytes().decode()
            for of_the_page, of_the_lab in names:
                request = request.replace(of_the_page, of_the_lab)
            sent = Message.parse(request, "\r\n").as_bytes()
            answer = _answer(connection, sent)
            if '"status":"ready"' in exchange.answer.body:
                answer = _once_it_is_ready(connection, sent, answer)
            made = _TOKEN.search(answer.body)
            if made and (shown_token := _TOKEN.search(exchange.answer.body)):
                names.append((shown_token[1], made[1]))
            body = answer.body
            for of_the_page, of_the_lab in names:
                body = body.replace(of_the_lab, of_the_page)
            yield replace(answer, body=body)


def _once_it_is_ready(connection: socket.socket, sent: bytes, first: Message) -> Message:
    answer = first
    end = time.monotonic() + _WAIT_LIMIT_SECONDS
    while wait := re.search(r'"status":"pending","retryAfterMs":(\d+)', answer.body):
        assert time.monotonic() < end, answer
        time.sleep(int(wait[1]) / 1000)
        answer = _answer(connection, sent)
    return answer


def _answer(connection: socket.socket, sent: bytes) -> Message:
    """Send a request, read its answer: to the last byte of its length and no further."""
    connection.sendall(sent)
    received = b""
    while True:
        head, end, body = received.partition(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: (\d+)", head)
        if end and length and len(body) >= int(length[1]):
            assert len(body) == int(length[1])
            return Message.parse(received.decode(), "\r\n")
        chunk = connection.recv(65536)
        assert chunk, f"the connection ended within an answer: {received!r}"
        received += chunk
