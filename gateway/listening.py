"""The process's HTTP listener, as the configuration wants it: socket, TLS, bounds, server.

Joins the parts of `gateway.http.listener` with the settings and with the gateway's own
certificate. Called by `gateway.running`; `judge_tls` by the command line too.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

import structlog

from gateway.config import is_loopback
from gateway.configured import build_bounds
from gateway.contract.names import Hostname
from gateway.holdings.own_certificate import NotThere, OwnCertificate
from gateway.http.app import RESPONSE_HEADERS
from gateway.http.entrance import Entrance
from gateway.http.health import Need, Part, PartFailed
from gateway.http.listener.admission import Admission
from gateway.http.listener.binding import bound_socket
from gateway.http.listener.contexts import Pair, Piece, TlsInvalid, substitute
from gateway.http.listener.descriptors import KEPT_FREE, connections_within, raised_limit
from gateway.http.listener.identity import (
    CertificateFiles,
    Identity,
    Missing,
    read_pem,
    utc_now,
)
from gateway.http.listener.server import Server
from gateway.store.connection import StoreUnavailable
from gateway.store.documents import Contended, Unreadable
from gateway.wiring import new_id

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from gateway.config import Settings
    from gateway.config.http_settings import HttpSettings
    from gateway.contract.names import ClientId
    from gateway.wiring import Gateway

TLS_PROBE_SECONDS: Final = 1.0
_SOCKETS_OF_A_CALL: Final = 2
"""So many DNS servers a call asks at once, at most; while one is waited for, its socket is open."""

_KEYS: Final = {
    Piece.CERTIFICATE: "http.certificate_file",
    Piece.KEY: "http.key_file",
    Piece.CLIENT_CA: "http.client_ca_file",
}

_log = structlog.get_logger(__name__)


class Listener:
    """A bound listener; made by `open_listener`."""

    def __init__(self, settings: Settings, bound: socket.socket, identity: Identity | None) -> None:
        self._http = settings.http
        self._bound = bound
        self._identity = identity
        self._files = None if self._http.certificate_file is None else _files(self._http)
        self.entrance = Entrance(build_bounds(settings))
        """What calls pass before they are answered."""
        self._connections = _connections(settings)
        self._admission = Admission(
            self._connections, self._http.connections_per_address, self._http.trusted_proxies
        )

    @property
    def address(self) -> str:
        """Where it listens, for a person."""
        return str(self._http.listen)

    def server(self, app: Any, grace_seconds: float) -> Server:
        """The server of an ASGI application here; it runs by `serve`."""
        identity = self._identity
        return Server(
            app,
            headers=RESPONSE_HEADERS,
            grace_seconds=grace_seconds,
            admission=self._admission,
            context=lambda: None if identity is None else identity.context,
        )

    async def serve(self, server: Server) -> None:
        """Serve until the server is told to exit."""
        await server.serve([self._bound])

    async def keep_identity(self, gateway: Gateway) -> None:
        """Keep what is shown in TLS current, until cancelled."""
        if self._identity is None:
            await asyncio.Event().wait()
        else:
            await self._identity.keep(self._files or _Own(self._http, gateway))

    def follow(self, settings: Settings) -> None:
        """Be as these settings want it, as far as a listener can change; never blocks."""
        self._admission.exempt_from_now_on(settings.http.trusted_proxies)
        self.entrance.use(build_bounds(settings))

    def parts(self) -> list[Part]:
        """What of it can fail, for `/readyz`."""
        identity = self._identity
        if identity is None:
            return []
        # Its own certificate is all that stands between it and its clients. A file that cannot be
        # used leaves the one from before.
        is_own = self._http.tls == "self"

        async def probe() -> None:
            fault = identity.useless() if is_own else identity.fault()
            if fault is not None:
                raise PartFailed(fault)

        need = Need.ALWAYS if is_own else Need.NICE
        return [Part("tls", "tls", need, TLS_PROBE_SECONDS, probe)]

    def say_how_it_is_reached(self) -> None:
        """Warn of what an operator may not have meant."""
        if self._identity is None and not is_loopback(self._http.host):
            _log.warning("plain HTTP beyond loopback: put TLS in front", host=self._http.host)
        if self._connections < self._http.connections:
            _log.warning(
                "fewer connections than configured: the limit of open files is too low",
                connections=self._connections,
                configured=self._http.connections,
            )


@contextlib.contextmanager
def open_listener(settings: Settings) -> Iterator[Listener]:
    """The listener of the configuration, bound and with its TLS ready.

    Raises:
        AddressTaken: the address cannot be bound.
        TlsInvalid: as `judge_tls`.
    """
    http = settings.http
    identity = judge_tls(settings)
    with bound_socket("http.listen", http.host, http.port) as bound:
        yield Listener(settings, bound, identity)


def judge_tls(settings: Settings) -> Identity | None:
    """What the listener shows at first; None without TLS.

    Raises:
        TlsInvalid: the configured files cannot be used; a sentence with the one's key.
    """
    http = settings.http
    if http.tls == "off":
        return None
    client_ca_pem = None
    try:
        if http.client_ca_file is not None:
            client_ca_pem = read_pem(http.client_ca_file, Piece.CLIENT_CA)
        is_own = http.tls == "self"
        first = substitute(http.tls_hostname or "", utc_now()) if is_own else _files(http).read()
        return Identity(first, utc_now, client_ca_pem=client_ca_pem, stands_in=is_own)
    except TlsInvalid as invalid:
        raise TlsInvalid(f"{_KEYS[invalid.piece]}: {invalid}", invalid.piece) from None


def _files(http: HttpSettings) -> CertificateFiles:
    if http.certificate_file is None or http.key_file is None:
        raise TlsInvalid("the certificate's files are not named")
    return CertificateFiles(http.certificate_file, http.key_file)


class _Own:
    """The gateway's own certificate as the identity's source."""

    def __init__(self, http: HttpSettings, gateway: Gateway) -> None:
        worker = gateway.worker
        self._certificate = OwnCertificate(
            Hostname(http.tls_hostname or ""),
            gateway.documents,
            gateway.keyring,
            wake=_nobody_to_wake if worker is None else worker.kick,
            new_id=new_id,
            now_ms=gateway.clock.now_ms,
        )

    async def look(self) -> Pair:
        """The certificate as it is now; raises Missing."""
        try:
            opened = await self._certificate.look()
        except NotThere as why:
            raise Missing(str(why), is_coming=why.is_coming) from None
        except (StoreUnavailable, Contended, Unreadable) as fault:
            raise Missing(f"{fault}.") from None
        return Pair(opened.chain_pem.encode(), opened.key_pem)


def _nobody_to_wake(_: Hostname, _client: ClientId) -> None:
    """Another process's worker finds the work in the queue."""


def _connections(settings: Settings) -> int:
    """How many there may be, once the limit of open files is raised as far as it may be."""
    connections = settings.http.connections
    calls = settings.limits.concurrent_calls or connections
    wanted = connections + KEPT_FREE + _SOCKETS_OF_A_CALL * calls
    return connections_within(raised_limit(wanted), connections)
