"""What a reload of nginx does to connections that are there: why swaps lose nothing."""

import os
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.integration.relay.relays import Relay
from tests.lab.process import LabFault, pause, wait_until
from tests.lab.tls_load import VERSIONS, shown_serial

_REQUEST = b"GET / HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n"
_WAITING = 20


def test_a_new_certificate_is_served_after_a_reload(relay: Relay, hostname: str) -> None:
    serial = relay.install(hostname)
    relay.nginx.reload()
    assert relay.served(hostname) == serial


def test_a_certificate_that_was_only_installed_is_not_served_yet(
    relay: Relay, hostname: str
) -> None:
    before = relay.served(hostname)
    relay.install(hostname)
    assert relay.served(hostname) == before


def test_connections_that_nobody_accepted_get_the_new_certificate_after_a_reload(
    relay: Relay, hostname: str
) -> None:
    nginx = relay.nginx
    with _paused_workers(relay) as old, ExitStack() as stack:
        waiting = [
            stack.enter_context(socket.create_connection(nginx.address)) for _ in range(_WAITING)
        ]
        assert nginx.unaccepted() == _WAITING
        serial = relay.install(hostname)
        os.kill(nginx.pid, signal.SIGHUP)
        wait_until(lambda: nginx.unaccepted() == 0, "new workers accept")
        shown = [_shake_hands(relay, tcp, hostname) for tcp in waiting]
        assert set(nginx.workers()) > old
    assert shown == [serial] * _WAITING


def test_a_connection_accepted_before_a_reload_is_served_to_its_end_with_the_old_certificate(
    relay: Relay, hostname: str
) -> None:
    before = relay.served(hostname)
    with socket.create_connection(relay.nginx.address) as tcp:
        wait_until(lambda: relay.nginx.unaccepted() == 0, "a worker accepts")
        relay.install(hostname)
        relay.nginx.reload()
        with relay.context().wrap_socket(tcp, server_hostname=hostname) as tls:
            tls.sendall(_REQUEST)
            assert (shown_serial(tls), tls.recv(15)) == (before, b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_a_session_is_resumed_while_nothing_is_reloaded(
    relay: Relay, hostname: str, version: ssl.TLSVersion
) -> None:
    context = relay.context(version)
    with relay.connect(hostname, context, _session(relay, hostname, context)) as tls:
        assert tls.session_reused


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_a_session_of_the_old_certificate_is_not_resumed_after_a_reload(
    relay: Relay, hostname: str, version: ssl.TLSVersion
) -> None:
    context = relay.context(version)
    session = _session(relay, hostname, context)
    serial = relay.install(hostname)
    relay.nginx.reload()
    with relay.connect(hostname, context, session) as tls:
        assert (tls.session_reused, shown_serial(tls)) == (False, serial)


def test_a_key_of_another_certificate_is_refused_and_the_old_pair_is_served(
    relay: Relay, hostname: str
) -> None:
    before = relay.served(hostname)
    relay.live_file(hostname, "privkey.pem").write_text(relay.issue(hostname).private_key_pem)
    with pytest.raises(LabFault, match="key values mismatch"):
        relay.nginx.reload()
    assert relay.served(hostname) == before


@contextmanager
def _paused_workers(relay: Relay) -> Iterator[set[int]]:
    """Workers that accept nothing, as if busy with other clients, for the whole block."""
    workers = relay.nginx.workers()
    for pid in workers:
        pause(pid)
    try:
        yield set(workers)
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGCONT)


def _shake_hands(relay: Relay, tcp: socket.socket, hostname: str) -> int:
    with relay.context().wrap_socket(tcp, server_hostname=hostname) as tls:
        return shown_serial(tls)


def _session(relay: Relay, hostname: str, context: ssl.SSLContext) -> ssl.SSLSession:
    with relay.connect(hostname, context) as tls:
        tls.sendall(_REQUEST)
        # TLS 1.3 hands out a session after the handshake, with the first answer.
        assert tls.recv(15) == b"HTTP/1.1 200 OK"
        assert tls.session is not None
        return tls.session
