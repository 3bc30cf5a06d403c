"""Running a process: the HTTP server, the worker and the monitor, from start to a graceful stop.

On SIGTERM or SIGINT the listener closes, calls under way are answered, the worker ends its steps
and hands its leases over; all within 10 seconds. A part that dies takes the process down, so that
whatever supervises it starts a whole one. Called by the command line.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import structlog
import uvicorn

from gateway.config import is_loopback
from gateway.http.app import RESPONSE_HEADERS, build_app
from gateway.http.health import HealthPages, Monitor
from gateway.probes import parts_of
from gateway.store.connection import StoreUnavailable
from gateway.store.persistence import Loss, losses, read_persistence
from gateway.wiring import open_gateway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.config import Settings
    from gateway.wiring import Gateway

GRACE_SECONDS: Final = 8
CANCEL_SECONDS: Final = 0.2
BACKLOG: Final = 1024
KEEP_ALIVE_SECONDS: Final = 75

_MAY_LOSE_DATA: Final = "redis may lose data; `gateway check` says more"

_log = structlog.get_logger(__name__)


class AddressTaken(Exception):
    """The listener's address cannot be bound; one sentence says which and why."""


class _Server(uvicorn.Server):
    """uvicorn's server under our own signal handling.

    uvicorn 0.54 raises the signal again once it has stopped, which would end the process before
    the worker has handed over.
    """

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@dataclass(frozen=True, slots=True)
class Roles:
    """What a process does."""

    serves_http: bool
    works: bool


async def run(settings: Settings, roles: Roles) -> None:
    """Run until a signal comes.

    Raises:
        AddressTaken: the listener's address cannot be bound.
        KeyringInvalid, EmbeddedRedisFault: as `open_gateway`.
    """
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(_bound(settings)) if roles.serves_http else None
        async with open_gateway(settings, serves=True, works=roles.works) as gateway:
            await _say_durability(settings)
            await _run_parts(settings, gateway, listener)


async def _run_parts(settings: Settings, gateway: Gateway, listener: socket.socket | None) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stopping.set)
    # What ends by itself once it is told to, and what only watches.
    ending: set[asyncio.Task[Any]] = set()
    watching: set[asyncio.Task[Any]] = {asyncio.create_task(stopping.wait(), name="signal")}
    if gateway.worker is not None:
        ending.add(asyncio.create_task(gateway.worker.run(), name="worker"))
    server = None
    if listener is not None:
        monitor = Monitor(parts_of(gateway), gateway.clock.now_ms)
        watching.add(asyncio.create_task(monitor.run(), name="monitor"))
        server = _server(gateway, monitor)
        ending.add(asyncio.create_task(server.serve([listener]), name="http"))
    _say_started(settings, gateway, listener)
    first, _ = await asyncio.wait(ending | watching, return_when=asyncio.FIRST_COMPLETED)
    _log.info("stopping", because=", ".join(task.get_name() for task in first))
    if server is not None:
        server.should_exit = True
    if gateway.worker is not None:
        gateway.worker.stop()
    if ending:
        await asyncio.wait(ending, timeout=GRACE_SECONDS)
    for task in ending | watching:
        await _end(task)
    for task in first:
        task.result()


async def _end(task: asyncio.Task[Any]) -> None:
    """Cancel a task until it has ended: one cancellation may be lost (see `Worker.run`)."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_SECONDS)


def _server(gateway: Gateway, monitor: Monitor) -> _Server:
    return _Server(
        uvicorn.Config(
            build_app(gateway.calls, HealthPages(monitor)),
            http="httptools",
            lifespan="off",
            log_config=None,
            access_log=False,
            headers=list(RESPONSE_HEADERS),
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )


@contextlib.contextmanager
def _bound(settings: Settings) -> Iterator[socket.socket]:
    address = settings.http.listen
    try:
        infos = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, bind_to = infos[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise AddressTaken(f"http.listen {address}: {error.strerror or error}") from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(bind_to)
        except OSError as error:
            raise AddressTaken(f"http.listen {address}: {error.strerror}") from error
        listener.listen(BACKLOG)
        yield listener


async def _say_durability(settings: Settings) -> None:
    """Warn of a Redis that would lose what it is trusted with; the embedded one would not."""
    if settings.redis.is_embedded:
        return
    try:
        found = await read_persistence(settings.redis.url)
    except StoreUnavailable:
        return  # the monitor says so, and goes on saying it
    awaited = settings.redis.awaited_replicas
    for redis in found:
        for loss in losses(redis):
            if loss is not Loss.NOTHING:
                _log.warning(_MAY_LOSE_DATA, node=redis.node, loses=loss.value)
        if redis.is_primary and redis.replicas < awaited:
            _log.warning(_MAY_LOSE_DATA, node=redis.node, replicas=redis.replicas, awaited=awaited)


def _say_started(settings: Settings, gateway: Gateway, listener: socket.socket | None) -> None:
    _log.info(
        "started",
        listen=None if listener is None else str(settings.http.listen),
        zones=[zone.name for zone in gateway.zones.all],
        worker=gateway.worker is not None,
    )
    if listener is not None and not is_loopback(settings.http.host):
        _log.warning("plain HTTP beyond loopback: put TLS in front", host=settings.http.host)
