"""How a CA's server is come by, what may hold that up, and what it must not hold up itself."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.certificates.authority import connections as transport
from gateway.certificates.authority.answers import NoAnswer
from gateway.certificates.authority.connections import Connections, Request
from gateway.certificates.authority.network import _tls_context
from gateway.certificates.leases import LeaseOver, guarded_by
from tests.integration.certificates.test_connections import OK, serving
from tests.lab.ports import LOOPBACK
from tests.lab.tls import write_server_certificate


@pytest.fixture
def connections() -> Iterator[Connections]:
    made = Connections(_tls_context(None), most=2, monotonic=time.monotonic)
    yield made
    made.close()


async def test_nothing_goes_out_when_the_lease_ran_out_while_it_was_connected(
    tmp_path: Path,
) -> None:
    ca_file, certificate_file, key_file = (tmp_path / name for name in ("ca", "crt", "key"))
    write_server_certificate(ca_file, certificate_file, key_file, LOOPBACK)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate_file, key_file)
    lapsed = threading.Event()
    came: list[bytes] = []

    def guard() -> None:
        if lapsed.is_set():
            raise LeaseOver

    def serve() -> None:
        raw, _ = listener.accept()
        lapsed.set()
        with tls.wrap_socket(raw, server_side=True) as connection:
            came.append(connection.recv(65536))

    connections = Connections(_tls_context(ca_file), most=2, monotonic=time.monotonic)
    with socket.create_server((LOOPBACK, 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        url = "https://{}:{}/".format(*listener.getsockname())
        with guarded_by(guard), pytest.raises(LeaseOver):
            await connections.exchange(Request("POST", url, {}, b"{}"), time.monotonic() + 30)
        await asyncio.to_thread(server.join)
    assert came == [b""]


@contextmanager
def deaf(port: int) -> Iterator[str]:
    """An address at which nothing answers at a port, not even with a refusal: its queue is full."""
    address = "127.0.0.2"
    with socket.create_server((address, port), backlog=0):
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex((address, port))
        yield address
        for each in waiting:
            each.close()


def found_at(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """The system's resolver finds every name at these."""

    def resolve(_: str, port: int | None, *__: object, **___: object) -> list[tuple[Any, ...]]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return [(*kind, (address, port or 0)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


async def require_ok(connections: Connections, port: int) -> None:
    request = Request("GET", f"http://ca.test:{port}/", {})
    reply = await connections.exchange(request, time.monotonic() + 30)
    assert reply.body == b"ok"


async def test_next_address_is_tried_when_the_first_one_does_not_answer(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "CONNECT_SECONDS", 0.3)
    with serving([OK]) as server:
        port = server.listener.getsockname()[1]
        with deaf(port) as address:
            found_at(monkeypatch, address, LOOPBACK)
            await require_ok(connections, port)


async def test_next_address_is_tried_when_the_first_one_refuses(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving([OK]) as server:
        port = server.listener.getsockname()[1]
        found_at(monkeypatch, "127.0.0.2", LOOPBACK)
        await require_ok(connections, port)


async def test_resolver_that_hangs_keeps_no_thread_from_others(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()

    def hang(*_: object, **__: object) -> list[tuple[Any, ...]]:
        goes_on.wait()
        raise socket.gaierror

    monkeypatch.setattr(transport, "CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        asked = [
            connections.exchange(Request("GET", "http://ca.test/", {}), time.monotonic() + 30)
            for _ in range(100)
        ]
        faults = await asyncio.gather(*asked, return_exceptions=True)
        assert {str(fault) for fault in faults} == {"the CA's host name cannot be resolved"}
        async with asyncio.timeout(10):
            assert await asyncio.to_thread(lambda: True)
    finally:
        goes_on.set()


async def test_answer_that_drips_is_waited_for_until_the_deadline_at_most() -> None:
    now = 0.0
    connections = Connections(_tls_context(None), most=2, monotonic=lambda: now)
    late = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal now
        await reader.readuntil(b"\r\n\r\n")
        now = 29.9
        writer.write(OK[:9])
        await late.wait()
        writer.close()

    server = await asyncio.start_server(drip, LOOPBACK, 0)
    url = "http://{}:{}/".format(*server.sockets[0].getsockname())
    async with asyncio.timeout(10):
        with pytest.raises(NoAnswer, match="no answer from the CA in time"):
            await connections.exchange(Request("GET", url, {}), 30)
    late.set()
    server.close()
