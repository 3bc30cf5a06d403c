"""The page's frame in this process: pages of the test's own, on a real Redis, at any time of day.

So that pages can hang and fail, and hours pass. Used by the tests of this folder.
"""

import asyncio
import hashlib
import secrets
from dataclasses import dataclass, field

import httpx
from starlette.applications import Starlette

from gateway.http.crowd import CrowdLimits
from gateway.http.entrance import Bounds, Entrance
from gateway.http.flood import FloodLimits
from gateway.http.page.confirmations import Confirmation
from gateway.http.page.frame import Fields, Frame, Page, Redirect, Shown, Visit
from gateway.http.page.parts import FrameParts
from gateway.http.page.sessions import Sessions
from gateway.store.connection import Store
from gateway.store.trail import NO_TRAIL
from tests.integration.page.browsing import Html

HOST = "gateway.example.test"
START_MS = 1_800_000_000_000
ANY_CROWD = CrowdLimits(all=0, each=0)
FORM = "application/x-www-form-urlencoded"


def a_page(path: str = "/plain", sentence: str = "what was asked for") -> Page:
    """A page that shows a sentence, and takes forms."""

    async def show(_: Visit) -> Shown:
        asked = Confirmation("A page", "Do it", (sentence,), (), "", "/operator")
        return Shown({"ask": asked}, template="confirm.html")

    async def act(visit: Visit, form: Fields) -> Redirect:
        return Redirect(visit.path, form.text("told") or "done")

    return Page(path, "error.html", show, act)


def a_failing_page(error: Exception) -> Page:
    async def show(_: Visit) -> Shown:
        raise error

    return Page("/failing", "error.html", show)


def a_hanging_page(begun: asyncio.Event | None = None) -> Page:
    async def show(_: Visit) -> Shown:
        if begun is not None:
            begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    return Page("/hanging", "error.html", show)


@dataclass
class Clock:
    now_ms: int = START_MS

    def __call__(self) -> int:
        return self.now_ms

    def pass_by(self, milliseconds: int) -> None:
        self.now_ms += milliseconds


@dataclass
class Framed:
    """One process's frame on a Redis; several may share it. `scheme` is the listener's own."""

    store: Store
    clock: Clock
    pages: list[Page] = field(default_factory=lambda: [a_page()])
    admin_token: str = field(default_factory=lambda: f"gwa_{secrets.token_urlsafe(32)}")
    scheme: str = "http"
    bound_seconds: float = 5.0
    crowd: CrowdLimits = ANY_CROWD

    def __post_init__(self) -> None:
        digest = hashlib.sha256(self.admin_token.encode()).hexdigest()
        sessions = Sessions(self.store, digest, self.clock)
        entrance = Entrance(Bounds([], FloodLimits(0, 0), self.crowd))
        parts = FrameParts(sessions, digest, NO_TRAIL, self.clock)
        frame = Frame(parts, entrance, bound_seconds=self.bound_seconds)
        app = Starlette(routes=frame.routes(self.pages))
        self.client = self.browser(app)

    def browser(self, app: Starlette) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url=f"{self.scheme}://{HOST}"
        )

    async def get(self, path: str = "/operator/plain", **headers: str) -> httpx.Response:
        return await self.client.get(path, headers=headers)

    async def post(
        self, path: str, fields: dict[str, str], origin: str | None = None, **headers: str
    ) -> httpx.Response:
        own = {"Origin": origin or f"{self.scheme}://{HOST}"} if origin != "" else {}
        body = str(httpx.QueryParams(fields))
        kind = {"Content-Type": FORM}
        return await self.client.post(path, content=body, headers=kind | own | headers)

    async def log_in(self, **headers: str) -> httpx.Response:
        return await self.post("/operator/login", {"token": self.admin_token}, **headers)

    async def keys(self, path: str = "/operator/plain") -> dict[str, str]:
        """What the form of a fresh page shows as its own; `/operator/logout` is on each of them."""
        is_logout = path == "/operator/logout"
        page = Html((await self.get("/operator/plain" if is_logout else path)).text)
        return dict(page.form(path if is_logout else None).fields)

    async def is_logged_in(self) -> bool:
        status = (await self.get()).status_code
        assert status in {200, 303}
        return status == 200
