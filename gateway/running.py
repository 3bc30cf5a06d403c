"""Running a process: the listener and one generation of parts, from start to a graceful stop.

SIGTERM and SIGINT stop it: calls under way are answered, the worker ends its steps and hands its
leases over; all within 10 seconds (`gateway.ending`). SIGHUP reads the configuration anew
(`gateway.reloading`), SIGUSR1 has the log say everything, and again what it is to say. A part that
dies takes the process down, so that whatever supervises it starts a whole one. Called by the
command line.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
from typing import TYPE_CHECKING, Any, Final

import structlog

from gateway import early_signals, tracing
from gateway.ending import Budget, end
from gateway.generation import Generation, Roles
from gateway.http.switch import Switch
from gateway.listening import open_listener
from gateway.metering import open_metrics_listener
from gateway.notify import Notifier
from gateway.reloading import Reloader
from gateway.store.connection import StoreUnavailable
from gateway.store.persistence import Loss, losses, read_persistence
from gateway.stores import open_redis
from gateway.wiring import new_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from gateway.config import Settings, TracesSettings
    from gateway.http.listener.server import Server
    from gateway.listening import Listener
    from gateway.metering import MetricsListener
    from gateway.wiring import Gateway

COLLECT_AFTER: Final = 10_000
"""After so many new objects garbage is looked for, not after 700: calls in their thousands make and
drop that many in no time, and looking took a fifteenth of their processor time."""

GRACE_SECONDS: Final = 8.2
"""How long calls and steps under way may take once the process is to stop. An authority may take
seconds to answer an order, and an answer that nobody hears is an order that is placed twice; what
is left of the 10 seconds after which Docker kills is for closing."""

FLUSH_SECONDS: Final = 1.0
"""How long the last spans may take to be sent, when all else has ended."""

_NO_WATCHDOG_SECONDS: Final = 3600.0

_MAY_LOSE_DATA: Final = "redis may lose data; `gateway check` says more"

_log = structlog.get_logger(__name__)


async def run(settings: Settings, roles: Roles, reread: Callable[[], Settings]) -> None:
    """Run until a signal comes. `reread` reads the configuration as it was read at the start.

    Raises:
        AddressTaken, TlsInvalid: as `open_listener`.
        KeyringInvalid, EmbeddedRedisFault: as `open_gateway`.
    """
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
    stop = _Stop(Budget())
    try:
        await _run(settings, roles, reread, stop)
    except asyncio.CancelledError:
        if not stop.wanted.is_set():
            raise
        _log.info("stopped while it started")


async def _run(
    settings: Settings, roles: Roles, reread: Callable[[], Settings], stop: _Stop
) -> None:
    own = open_listener(settings) if roles.serves_http else contextlib.nullcontext()
    with own as listener, open_metrics_listener(settings) as metrics:
        async with (
            _traced(settings.traces, stop.budget),
            open_redis(settings, serves=True, stop_within=stop.budget.left_seconds) as redis_url,
        ):
            await _say_durability(settings)
            await _Process(settings, roles, redis_url, listener, metrics, reread, stop).run()


class _Stop:
    """Hears SIGTERM and SIGINT from its making on: `wanted` is set, and a start is given up."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.wanted = asyncio.Event()
        self._starting = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ask)
        early_signals.release_stop()

    def started(self) -> None:
        """From now on whoever waits for `wanted` winds up."""
        self._starting = None

    def _ask(self) -> None:
        self.budget.begin()
        self.wanted.set()
        starting, self._starting = self._starting, None
        if starting is not None:  # once: a second signal must not cut short what it winds up
            starting.cancel()


@contextlib.asynccontextmanager
async def _traced(settings: TracesSettings, budget: Budget) -> AsyncIterator[None]:
    """Have what happens meanwhile traced, if the configuration says where to."""
    if settings.endpoint is None:
        yield
        return
    from gateway.trace_export import TraceExport

    export = TraceExport(settings, new_id())
    tracing.record_with(export.recorder)
    try:
        yield
    finally:
        tracing.record_with(None)
        await export.close(min(FLUSH_SECONDS, budget.left_seconds()))


class _Process:
    """What a process consists of besides its parts, and in which order all of it ends."""

    def __init__(
        self,
        settings: Settings,
        roles: Roles,
        redis_url: str,
        listener: Listener | None,
        metrics: MetricsListener | None,
        reread: Callable[[], Settings],
        stop: _Stop,
    ) -> None:
        self._settings = settings
        self._roles = roles
        self._redis_url = redis_url
        self._listener = listener
        self._metrics = metrics
        self._reread = reread
        self._notifier = Notifier(os.environ)
        self._died = asyncio.Event()
        self._stop = stop
        self._server: Server | None = None

    async def run(self) -> None:
        """Serve and work until told to stop, or until something has died."""
        current = self._make(self._settings)
        await current.start()
        current.rely_on()
        switch = Switch(current.app)
        reloader = Reloader(
            current,
            switch,
            self._notifier,
            reread=self._reread,
            make=self._make,
            follow=self._follow,
        )
        self._hear_signals(reloader)
        watching = {
            asyncio.create_task(self._stop.wanted.wait(), name="signal"),
            asyncio.create_task(self._died.wait(), name="a part that died"),
            asyncio.create_task(reloader.run(), name="reloads"),
            asyncio.create_task(self._beat(reloader), name="systemd"),
        }
        serving = self._serve(switch, reloader)
        _say_started(current.gateway, self._listener)
        first, _ = await asyncio.wait(serving | watching, return_when=asyncio.FIRST_COMPLETED)
        _log.info("stopping", because=", ".join(task.get_name() for task in first))
        self._stop.budget.begin()
        self._notifier.stopping()
        for task in watching:
            await end(task)
        switch.stop()
        await self._wind_up(reloader.generations, serving)
        for task in first:
            task.result()

    def _serve(self, switch: Switch, reloader: Reloader) -> set[asyncio.Task[Any]]:
        """Begin to answer, at each listener that there is."""
        serving = set()
        if self._listener is not None:
            self._server = self._listener.server(switch, GRACE_SECONDS)
            http = self._listener.serve(self._server)
            serving.add(asyncio.create_task(http, name="http"))
        if self._metrics is not None:
            shown = self._metrics.serve(lambda: reloader.current.monitor)
            serving.add(asyncio.create_task(shown, name="metrics"))
        return serving

    async def _wind_up(
        self, generations: Sequence[Generation], serving: set[asyncio.Task[Any]]
    ) -> None:
        """Have everything end that ends by itself, then the rest; raises what a part died of."""
        if self._server is not None:
            self._server.should_exit = True
        if self._metrics is not None:
            self._metrics.stop()
        ending = set(serving)
        for generation in generations:
            generation.monitor.tell_stopping()
            generation.stop_working(GRACE_SECONDS)
            ending.add(asyncio.create_task(generation.worked()))
        await asyncio.wait(ending, timeout=GRACE_SECONDS)
        for task in ending:
            await end(task)
        closed = await asyncio.gather(
            *(generation.close() for generation in generations), return_exceptions=True
        )
        for fault in closed:
            if isinstance(fault, BaseException):
                raise fault

    def _make(self, settings: Settings) -> Generation:
        return Generation(settings, self._roles, self._redis_url, self._listener, self._died)

    def _follow(self, settings: Settings) -> None:
        if self._listener is not None:
            self._listener.follow(settings)

    def _hear_signals(self, reloader: Reloader) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, reloader.ask)
        loop.add_signal_handler(signal.SIGUSR1, reloader.toggle_debug)
        early_signals.release_requests()
        self._stop.started()

    async def _beat(self, reloader: Reloader) -> None:
        """Tell systemd that the process is alive, once it is up."""
        await reloader.is_up.wait()
        while True:
            self._notifier.alive()
            await asyncio.sleep(self._notifier.beat_seconds or _NO_WATCHDOG_SECONDS)


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


def _say_started(gateway: Gateway, listener: Listener | None) -> None:
    _log.info(
        "started",
        listen=None if listener is None else listener.address,
        zones=[zone.name for zone in gateway.zones.all],
        worker=gateway.worker is not None,
    )
    if listener is not None:
        listener.say_how_it_is_reached()
