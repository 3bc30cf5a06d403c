"""Health: `/healthz` says that the process lives, `/readyz` whether it can do its job.

A `Monitor` probes each part on its own beat, so a page is answered at once from what was last seen
and a part that hangs delays nothing. The service is not ready while Redis or the worker is down, or
every zone's primary. Without its CA it is only degraded, for it still serves records and every
certificate it has, and a load balancer that dropped it would take those away.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import structlog
from starlette.responses import JSONResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

PROBE_BOUND_SECONDS: Final = 5.0
FIRST_PAUSE_SECONDS: Final = 0.1

_log = structlog.get_logger(__name__)


class Need(Enum):
    """What the failure of a part means for the service."""

    ALWAYS = "always"
    ONE_OF_ITS_KIND = "one-of-its-kind"
    NICE = "nice"


class PartFailed(Exception):
    """A part of the gateway says that it is not well; the text may be shown to anybody."""


class PartUnknown(PartFailed):
    """How a part is can't be told, since what tells it fails: that one's own part says so."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part to watch. `probe` returns normally when all is well; its exception's text is shown.

    So a probe must raise with a sentence that holds no secret: `PartFailed` is for that.
    """

    name: str
    kind: str
    need: Need
    every_seconds: float
    probe: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was last seen of a part: since when (epoch milliseconds) it is in this state."""

    state: str
    since_ms: int
    detail: str | None = None


class Monitor:
    """Probes parts until cancelled and remembers what it saw.

    What the monitor `before` has seen of a part by the same name is where that part's state goes on
    from: a reload is no change of what it does not touch.
    """

    def __init__(
        self, parts: Sequence[Part], now_ms: Callable[[], int], before: Monitor | None = None
    ) -> None:
        self._parts = tuple(parts)
        self._now_ms = now_ms
        started_ms = now_ms()
        self._seen = {part.name: Seen("unknown", started_ms) for part in parts}
        self._before = {} if before is None else dict(before._seen)
        self._looked_at: set[str] = set()
        self._all_looked_at = asyncio.Event()
        self._is_stopping = False

    async def looked(self, within_seconds: float) -> None:
        """Return once every part was looked at, or after that time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                await self._all_looked_at.wait()

    def tell_stopping(self) -> None:
        """From now on the service is not ready, since it ends: for whoever sends calls here."""
        self._is_stopping = True

    async def run(self) -> None:
        """Probe every part on its beat."""
        await asyncio.gather(*(self._watch(part) for part in self._parts))

    def states(self) -> list[tuple[Part, str]]:
        """Every part with the state that it was last seen in: up, down, or unknown."""
        return [(part, self._seen[part.name].state) for part in self._parts]

    @property
    def is_ready(self) -> bool:
        """Whether the service can do its job, and is not about to end."""
        return not self._is_stopping and self._has_what_it_needs()

    def report(self) -> tuple[bool, dict[str, Any]]:
        """Whether the service is ready, and the page that says why."""
        parts = {}
        for part in self._parts:
            seen = self._seen[part.name]
            parts[part.name] = {"state": seen.state, "sinceMs": seen.since_ms}
            if seen.detail is not None:
                parts[part.name]["detail"] = seen.detail
        is_ready = self.is_ready
        all_up = all(seen.state == "up" for seen in self._seen.values())
        status = "ready" if is_ready and all_up else "degraded" if is_ready else "unready"
        if self._is_stopping:
            status = "stopping"
        return is_ready, {"status": status, "parts": parts}

    def _has_what_it_needs(self) -> bool:
        shared: dict[str, bool] = {}
        for part in self._parts:
            is_up = self._seen[part.name].state == "up"
            if part.need is Need.ALWAYS and not is_up:
                return False
            if part.need is Need.ONE_OF_ITS_KIND:
                shared[part.kind] = shared.get(part.kind, False) or is_up
        return all(shared.values())

    async def _watch(self, part: Part) -> None:
        """Probe a part on its beat; soon again at first while it is not up, as at the start."""
        pause_seconds = FIRST_PAUSE_SECONDS
        while True:
            state, detail = await _probe(part)
            self._note(part, state, detail)
            if state == "up":
                pause_seconds = FIRST_PAUSE_SECONDS
                await asyncio.sleep(part.every_seconds)
            else:
                await asyncio.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, part.every_seconds)

    def _note(self, part: Part, state: str, detail: str | None) -> None:
        if self._is_stopping:
            return  # what ends by itself now is not down
        before = self._seen[part.name]
        if part.name not in self._looked_at:
            before = self._before.get(part.name, before)
        since_ms = before.since_ms if before.state == state else self._now_ms()
        self._seen[part.name] = Seen(state, since_ms, detail)
        self._looked_at.add(part.name)
        if self._looked_at == self._seen.keys():
            self._all_looked_at.set()
        if before.state != state:
            say = _log.info if detail is None else _log.warning
            say(
                "part changed",
                part=part.name,
                state=state,
                **({"detail": detail} if detail else {}),
            )


async def _probe(part: Part) -> tuple[str, str | None]:
    try:
        async with asyncio.timeout(PROBE_BOUND_SECONDS):
            await part.probe()
    except TimeoutError:
        return "down", f"It gave no answer within {PROBE_BOUND_SECONDS:.0f} seconds."
    except PartUnknown as fault:
        return "unknown", str(fault)
    except Exception as error:  # noqa: BLE001 (whatever fails, the page must say so)
        return "down", str(error)
    return "up", None


class HealthPages:
    """The two pages. `monitor` answers the one that watches the parts of now."""

    def __init__(self, monitor: Callable[[], Monitor]) -> None:
        self._monitor = monitor

    def routes(self) -> list[Route]:
        """Where they are."""
        return [
            Route("/healthz", self.alive, methods=["GET"]),
            Route("/readyz", self.ready, methods=["GET"]),
        ]

    async def alive(self, _: Request) -> Response:
        """`GET /healthz`."""
        return JSONResponse({"status": "alive"})

    async def ready(self, _: Request) -> Response:
        """`GET /readyz`."""
        is_ready, page = self._monitor().report()
        return JSONResponse(page, 200 if is_ready else 503)
