"""The parts that one configuration makes of a process, alive: worker, monitor, and what answers.

A reload makes another generation beside the one that works, and has the former end when its calls
and steps have. Two at once are no more than two processes on one Redis, which is what every part is
made for: leases keep their workers apart, and nothing is in the memory of one that the other needs.

Responsible for the order in which parts begin and end. Must not: know signals, or choose the
configuration. Called by `gateway.running` and `gateway.reloading`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from gateway.configured import build_bounds
from gateway.ending import end
from gateway.figures import look_after
from gateway.http.app import build_app
from gateway.http.entrance import Entrance
from gateway.http.health import HealthPages, Monitor
from gateway.operating import page_routes
from gateway.probes import parts_of
from gateway.wiring import open_gateway

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from gateway.config import Settings
    from gateway.http.switch import Turn
    from gateway.listening import Listener
    from gateway.wiring import Gateway

STEPS_SECONDS: Final = 60.0
"""How long a former generation's steps may take; a call to an authority is bounded by 30."""

CALLS_SECONDS: Final = 30.0
"""How long a former generation's calls may take: 10 seconds each, and its client's own pace."""

_log = structlog.get_logger(__name__)


class PartDied(Exception):
    """A part has ended that runs as long as its generation; closing that tells of what."""


@dataclass(frozen=True, slots=True)
class Roles:
    """What a process does. Whether it works is up to the configuration where it serves, too."""

    serves_http: bool
    works: bool

    def works_under(self, settings: Settings) -> bool:
        """Whether there is a worker in this process."""
        return self.works and (settings.worker.enabled or not self.serves_http)


class Generation:
    """The parts of one configuration. `start` first; then `retire`, or `stop_working` and `close`.

    `redis_url` is of an `open_redis` that outlives it. `died` is set when a part ends by itself
    that the process relies on.
    """

    def __init__(
        self,
        settings: Settings,
        roles: Roles,
        redis_url: str,
        listener: Listener | None,
        died: asyncio.Event,
    ) -> None:
        self.settings = settings
        self._listener = listener
        self._died = died
        self._works = roles.works_under(settings)
        self._redis_url = redis_url
        self._parts: _Parts | None = None
        self._is_open = asyncio.Event()
        self._is_over = asyncio.Event()
        self._is_ending = False
        self._is_relied_on = False
        self._has_died = False
        self._former: Monitor | None = None
        self._life: asyncio.Task[None] | None = None

    @property
    def gateway(self) -> Gateway:
        """Its parts; only once it has started."""
        return self._started.gateway

    @property
    def app(self) -> ASGIApp:
        """What answers calls; only once it has started."""
        return self._started.app

    @property
    def monitor(self) -> Monitor:
        """What watches its parts; only once it has started."""
        return self._started.monitor

    @property
    def summary(self) -> str:
        """One line for whoever watches the process."""
        gateway = self._started.gateway
        works = "with" if gateway.worker is not None else "without"
        return f"{len(gateway.zones.all)} zones, {len(gateway.authorities)} CAs, {works} a worker"

    @property
    def _started(self) -> _Parts:
        if self._parts is None:
            raise LookupError("the parts are not open")
        return self._parts

    async def start(self, former: Generation | None = None) -> None:
        """Open the parts and begin to work, in the place of a former one if there is one.

        Raises what `open_gateway` does; nothing is left of it then.
        """
        self._former = None if former is None else former.monitor
        self._life = asyncio.create_task(self._live(), name="parts")
        opened = asyncio.create_task(self._is_open.wait())
        try:
            await asyncio.wait({self._life, opened}, return_when=asyncio.FIRST_COMPLETED)
            if self._life.done():
                self._life.result()
        except BaseException:
            await end(self._life)
            raise
        finally:
            opened.cancel()

    async def retire(self, turn: Turn) -> None:
        """End, once its steps and the calls of its turn have ended; bounded, loses no lease."""
        self.stop_working(STEPS_SECONDS)
        await self.worked()
        try:
            await asyncio.wait_for(turn.ended(), CALLS_SECONDS)
        except TimeoutError:
            _log.warning("calls of the former configuration are cut off")
        await self.close()

    def rely_on(self) -> None:
        """From now on the process ends with any of its parts.

        Raises PartDied when one has ended already.
        """
        if self._has_died:
            raise PartDied
        self._is_relied_on = True

    def stop_working(self, within_seconds: float) -> None:
        """Have the worker begin nothing more; its steps under way go on, leases are handed over."""
        self._is_ending = True
        worker = self._started.gateway.worker
        if worker is not None:
            worker.stop(within_seconds)

    async def worked(self) -> None:
        """Return when the worker has ended."""
        worker = self._started.worker
        if worker is not None:
            await asyncio.wait({worker})

    async def close(self) -> None:
        """End what is left, and close the parts. Raises what a part has died of."""
        self._is_over.set()
        if self._life is not None:
            await asyncio.wait({self._life})
            self._life.result()

    async def _live(self) -> None:
        """Hold the parts open: opened and closed in one task, whichever way it ends."""
        async with open_gateway(
            self.settings, works=self._works, redis_url=self._redis_url
        ) as gateway:
            self._parts = parts = _Parts.begin(
                gateway, self.settings, self._redis_url, self._listener, self._former
            )
            self._former = None
            for task in parts.tasks:
                task.add_done_callback(self._note_end)
            self._is_open.set()
            try:
                await self._is_over.wait()
            finally:
                for task in parts.tasks:
                    await end(task)
            for task in parts.tasks:
                if not task.cancelled():
                    task.result()

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not (self._is_ending or self._is_over.is_set()):
            _log.error("a part has ended by itself", part=task.get_name())
            self._has_died = True
            if self._is_relied_on:
                self._died.set()


@dataclass(frozen=True, slots=True)
class _Parts:
    gateway: Gateway
    monitor: Monitor
    app: ASGIApp
    worker: asyncio.Task[None] | None
    watching: tuple[asyncio.Task[None], ...]
    """What runs until it is cancelled."""

    @classmethod
    def begin(
        cls,
        gateway: Gateway,
        settings: Settings,
        redis_url: str,
        listener: Listener | None,
        former: Monitor | None,
    ) -> _Parts:
        shown = [] if listener is None else listener.parts()
        entrance = Entrance(build_bounds(settings)) if listener is None else listener.entrance
        monitor = Monitor([*parts_of(gateway), *shown], gateway.clock.now_ms, former)
        beside = {"monitor": monitor.run()}
        if _shows_figures(settings, listener):
            beside["figures"] = look_after(gateway, settings)
        if listener is not None:
            beside["tls"] = listener.keep_identity(gateway)
        worker = gateway.worker
        page = (
            []
            if listener is None
            else page_routes(gateway, settings, redis_url, entrance, lambda: monitor)
        )
        return cls(
            gateway,
            monitor,
            build_app(gateway.calls, HealthPages(lambda: monitor), entrance, page),
            None if worker is None else asyncio.create_task(worker.run(), name="worker"),
            tuple(asyncio.create_task(each, name=name) for name, each in beside.items()),
        )

    @property
    def tasks(self) -> tuple[asyncio.Task[None], ...]:
        """All that runs beside calls."""
        return self.watching if self.worker is None else (self.worker, *self.watching)


def _shows_figures(settings: Settings, listener: Listener | None) -> bool:
    """Whether something in this process shows what the census counts."""
    has_page = listener is not None and settings.page_is_on
    return settings.metrics.listen is not None or has_page
