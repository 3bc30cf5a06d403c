"""Loads a TLS server with real clients, and keeps what became of each handshake and request.

Responsible for: clients in threads that connect again and again, verify the chain and the hostname,
and ask one thing; some resume sessions, some keep their connection; TLS 1.2 and 1.3. Bounded in
time and count, whatever the server does.
Must not: know what serves, or judge; the tests do.
Called by: tests of relays, `scripts/relay-swap`.

Threads, because asyncio cannot be given a session to resume. OpenSSL works without the lock of the
interpreter, so the clients hold each other up little.
"""

import itertools
import ssl
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from socket import socket
from types import TracebackType
from typing import Self

_ANSWER_LIMIT_SECONDS = 10.0
_THINK_SECONDS = 0.005
"""Between two requests on a kept connection, so that most of the time it is idle, as in life; and
after a failure, so that a server that is down is not besieged."""

_HUNG_UP = (ConnectionError, ssl.SSLEOFError)

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


@dataclass(frozen=True, slots=True)
class Handshake:
    """One that succeeded; `serial` is the leaf's: of a resumed session, the one it began with.

    `at` is its end in seconds of `time.monotonic`; `seconds` include the TCP connection.
    """

    hostname: str
    version: str
    resumed: bool
    serial: int
    at: float
    seconds: float


@dataclass(frozen=True)
class Findings:
    """What all clients saw; failures are told in words, each with its hostname and TLS version.

    `closed_under_request`: a kept connection was closed before the answer to its next request
    began, for which HTTP clients have to be prepared. They ask again on a new connection; where
    that fails, and where an answer breaks off, it is one of the `failed_requests`.
    """

    seconds: float
    handshakes: tuple[Handshake, ...]
    failed_handshakes: tuple[str, ...]
    failed_requests: tuple[str, ...]
    kept_requests: int
    closed_under_request: int

    def serials(self, hostname: str) -> list[int]:
        """The serial numbers of the certificates that were shown, each at its first time."""
        shown = (done for done in self.handshakes if not done.resumed and done.hostname == hostname)
        return list(dict.fromkeys(done.serial for done in sorted(shown, key=lambda done: done.at)))

    def kinds(self) -> Counter[str]:
        """How many handshakes of each kind succeeded."""
        return Counter(
            f"{done.version} {'resumed' if done.resumed else 'full'}" for done in self.handshakes
        )

    @property
    def longest_handshake_seconds(self) -> float:
        return max((done.seconds for done in self.handshakes), default=0.0)


@dataclass(frozen=True)
class Bounds:
    """When the clients stop by themselves."""

    seconds: float = 60.0
    handshakes: int = 200_000


class TlsLoad:
    """Clients that are at work within the `with` block, against one address and all hostnames.

    `fresh` of each kind (either TLS version, with and without resumption) make a new connection for
    every request; one of each version keeps its own. `ca_file` holds the only root they trust.
    """

    def __init__(
        self,
        address: tuple[str, int],
        hostnames: Sequence[str],
        ca_file: Path,
        *,
        fresh: int = 1,
        bounds: Bounds | None = None,
    ) -> None:
        self._address = address
        self._hostnames = tuple(hostnames)
        self._ca_file = ca_file
        self._bounds = bounds or Bounds()
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._handshakes: list[Handshake] = []
        self._shown: set[tuple[str, int]] = set()
        self._failed_handshakes: list[str] = []
        self._failed_requests: list[str] = []
        self._kept_requests = 0
        self._closed_under_request = 0
        self._began = self._ended = 0.0
        jobs = [
            partial(self._come_again, version, resumes)
            for version, resumes in itertools.product(VERSIONS, (False, True))
            for _ in range(fresh)
        ]
        jobs += [partial(self._stay, version) for version in VERSIONS]
        self._threads = [threading.Thread(target=job, daemon=True) for job in jobs]

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        self._ended = time.monotonic()

    def has_shown(self, hostname: str, serial: int) -> bool:
        """Whether a client was shown this certificate, in a full handshake, by now."""
        with self._lock:
            return (hostname, serial) in self._shown

    def findings(self) -> Findings:
        """What was seen so far; of the whole block, once it was left."""
        with self._lock:
            return Findings(
                (self._ended or time.monotonic()) - self._began,
                tuple(self._handshakes),
                tuple(self._failed_handshakes),
                tuple(self._failed_requests),
                self._kept_requests,
                self._closed_under_request,
            )

    def _goes_on(self) -> bool:
        return (
            not self._is_over.is_set()
            and time.monotonic() < self._began + self._bounds.seconds
            and len(self._handshakes) < self._bounds.handshakes
        )

    def _come_again(self, version: ssl.TLSVersion, resumes: bool) -> None:
        context = client_context(self._ca_file, version)
        sessions: dict[str, ssl.SSLSession | None] = {}
        for hostname in itertools.cycle(self._hostnames):
            if not self._goes_on():
                return
            tls = self._connect(context, hostname, sessions.get(hostname))
            if tls is None:
                continue
            with closing(tls):
                self._ask_first(_http(tls, hostname), hostname, version)
                # TLS 1.3 hands out sessions after the handshake: there is one by now.
                sessions[hostname] = tls.session if resumes else None

    def _stay(self, version: ssl.TLSVersion) -> None:
        context = client_context(self._ca_file, version)
        for hostname in itertools.cycle(self._hostnames):
            if not self._goes_on():
                return
            tls = self._connect(context, hostname, None)
            if tls is None:
                continue
            with closing(tls):
                self._ask_often(_http(tls, hostname), hostname, version)

    def _ask_often(self, http: HTTPConnection, hostname: str, version: ssl.TLSVersion) -> None:
        goes_on = self._ask_first(http, hostname, version)
        while goes_on and self._goes_on():
            self._is_over.wait(_THINK_SECONDS)
            try:
                goes_on = _ask(http)
            except _HUNG_UP:
                with self._lock:
                    self._closed_under_request += 1
                return
            except (OSError, HTTPException) as fault:
                self._note_failed_request(hostname, version, fault)
                return
            with self._lock:
                self._kept_requests += 1

    def _connect(
        self, context: ssl.SSLContext, hostname: str, session: ssl.SSLSession | None
    ) -> ssl.SSLSocket | None:
        began = time.monotonic()
        try:
            tls = connect(self._address, context, hostname, session)
        except OSError as fault:
            with self._lock:
                version = context.minimum_version.name
                self._failed_handshakes.append(f"{hostname}, {version}: {fault!r}")
            self._is_over.wait(_THINK_SECONDS)
            return None
        ended = time.monotonic()
        resumed = bool(tls.session_reused)
        serial = shown_serial(tls)
        done = Handshake(hostname, tls.version() or "?", resumed, serial, ended, ended - began)
        with self._lock:
            self._handshakes.append(done)
            if not resumed:
                self._shown.add((hostname, serial))
        return tls

    def _ask_first(self, http: HTTPConnection, hostname: str, version: ssl.TLSVersion) -> bool:
        """Ask on a new connection, where nothing excuses a server; whether it may be kept."""
        try:
            return _ask(http)
        except (OSError, HTTPException) as fault:
            self._note_failed_request(hostname, version, fault)
            return False

    def _note_failed_request(
        self, hostname: str, version: ssl.TLSVersion, fault: Exception
    ) -> None:
        with self._lock:
            self._failed_requests.append(f"{hostname}, {version.name}: {fault!r}")


def client_context(ca_file: Path, version: ssl.TLSVersion) -> ssl.SSLContext:
    """A client that trusts `ca_file` only, wants the right hostname and speaks one TLS version."""
    context = ssl.create_default_context(cafile=ca_file)
    context.minimum_version = context.maximum_version = version
    # Python's default since 3.13.
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def connect(
    address: tuple[str, int],
    context: ssl.SSLContext,
    hostname: str,
    session: ssl.SSLSession | None = None,
) -> ssl.SSLSocket:
    """Open a connection and shake hands; `session` is offered to be resumed.

    Raises: OSError, of which `ssl.SSLError` is one.
    """
    # Wrapped before it connects: of a connected one whose peer has hung up meanwhile, CPython 3.11
    # loses the wrapper without closing it.
    with ExitStack() as on_failure:
        tcp = on_failure.enter_context(closing(socket()))
        tls = context.wrap_socket(tcp, server_hostname=hostname, session=session)
        on_failure.enter_context(closing(tls))
        tls.settimeout(_ANSWER_LIMIT_SECONDS)
        tls.connect(address)
        on_failure.pop_all()
    return tls


def shown_serial(tls: ssl.SSLSocket) -> int:
    """The serial number of the leaf that the server showed."""
    certificate = tls.getpeercert() or {}
    return int(str(certificate["serialNumber"]), 16)


def _http(tls: ssl.SSLSocket, hostname: str) -> HTTPConnection:
    http = HTTPConnection(hostname)
    # It must not open a connection of its own when this one is closed.
    http.auto_open = 0
    http.sock = tls
    return http


def _ask(http: HTTPConnection) -> bool:
    """Send one request and read its answer; whether the connection may be kept.

    Raises: OSError, HTTPException.
    """
    http.request("GET", "/")
    answer = http.getresponse()
    answer.read()
    if answer.status != 200:
        raise HTTPException(f"status {answer.status}")
    return not answer.will_close
