"""The process's metrics listener: its address, taken at the start, and the server on it.

In every process that serves or works, if the configuration has `metrics.listen`; the same for all
generations of parts, which are read through the current one's monitor. Called by `gateway.running`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import structlog

from gateway.config import is_loopback
from gateway.http.app import RESPONSE_HEADERS
from gateway.http.listener.admission import Admission
from gateway.http.listener.binding import bound_socket
from gateway.http.listener.patience import Patience
from gateway.http.listener.server import Server
from gateway.http.metrics import build_metrics_app

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from gateway.config import Settings
    from gateway.http.health import Monitor

CONNECTIONS: Final = 64
"""Prometheus has one; the rest is for people, and for whoever forgets to close theirs."""

CONNECTIONS_PER_ADDRESS: Final = 16
"""Whoever holds all of his keeps others from no scrape."""

PATIENCE: Final = Patience(
    handshake_seconds=2.0,
    head_seconds=2.0,
    keep_alive_seconds=75,
    reading_seconds=10.0,
)
"""A scrape's head comes at once; between two scrapes there may be a minute."""

GRACE_SECONDS: Final = 1

_log = structlog.get_logger(__name__)


class MetricsListener:
    """A bound metrics listener; made by `open_metrics_listener`."""

    def __init__(self, bound: socket.socket) -> None:
        self._bound = bound
        self._server: Server | None = None

    async def serve(self, monitor: Callable[[], Monitor]) -> None:
        """Show the figures until `stop`; `monitor` answers that of the current generation."""
        self._server = Server(
            build_metrics_app(monitor),
            headers=RESPONSE_HEADERS,
            grace_seconds=GRACE_SECONDS,
            admission=Admission(CONNECTIONS, CONNECTIONS_PER_ADDRESS),
            context=lambda: None,
            patience=PATIENCE,
        )
        await self._server.serve([self._bound])

    def stop(self) -> None:
        """Have `serve` end."""
        if self._server is not None:
            self._server.should_exit = True


@contextlib.contextmanager
def open_metrics_listener(settings: Settings) -> Iterator[MetricsListener | None]:
    """The metrics listener of the configuration, bound; None where it has none.

    Raises:
        AddressTaken: the address cannot be bound.
    """
    address = settings.metrics.listen
    if address is None:
        yield None
        return
    with bound_socket("metrics.listen", address.host, address.port) as bound:
        _log.info("metrics shown", listen=str(address))
        if not is_loopback(address.host):
            _log.warning("metrics beyond loopback: plain HTTP without a token", host=address.host)
        yield MetricsListener(bound)
