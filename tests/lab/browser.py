"""Runs Debian's Chromium without a window, and notes whatever a page must not do in it.

Responsible for: one browser that reaches loopback only, visits with cookies of their own, and the
faults seen during each: errors on the console (a broken Content-Security-Policy is one), scripts
that threw, dialogs, requests to another origin, and files that were not there.
Must not: know the operator's page; tests do.
Called by: `tests.browser`, `scripts/screenshots`.

Playwright's blocking interface keeps an event loop running in its thread for as long as it is in
use: end it before anything asynchronous runs there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    Response,
    StorageState,
    expect,
    sync_playwright,
)

from tests.lab.process import LabFault, find_program

LIMIT_SECONDS = 15.0
"""How long anything that a visit waits for may take."""

AXE_FILE = Path(__file__).parents[1] / "npm" / "node_modules" / "axe-core" / "axe.min.js"

_OPTIONS = (
    "--no-proxy-server",
    # Whatever a page or the browser itself asks for: there is loopback, and nothing else.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    # Containers have a /dev/shm of 64 MB.
    "--disable-dev-shm-usage",
    # The same pixels on every machine.
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
)
# Chromium says it of each such answer; those that matter are noted by `_note_response`.
_TOLD_OF_STATUS = "Failed to load resource: the server responded with a status of"


@dataclass(frozen=True, slots=True)
class Look:
    """How a visitor looks at pages: the window's size in CSS pixels, the scheme, and script."""

    width: int = 1280
    height: int = 900
    scheme: Literal["light", "dark"] = "light"
    has_script: bool = True


DESKTOP = Look()
PHONE = Look(390, 844)


@dataclass
class Visit:
    """One visitor with one tab; `faults` are what the pages did that they must not.

    What is in `expected` (a part of a fault's text) is no fault: the test is about it.
    """

    context: BrowserContext
    page: Page
    origin: str
    noted: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        return [each for each in self.noted if not any(part in each for part in self.expected)]

    def axe(self) -> list[str]:
        """What axe-core has against the page as it is shown now, a line for each element.

        Raises: LabFault when axe-core is not installed.
        """
        if not AXE_FILE.exists():
            raise LabFault("axe-core is missing: run scripts/setup")
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE_FILE.read_text())
        options = {"resultTypes": ["violations"], "preload": False}
        found: dict[str, Any] = self.page.evaluate("options => axe.run(options)", options)
        return [
            f"{each['id']} ({each['impact']}): {each['help']}: {node['html'][:200]}: "
            f"{node['failureSummary']}"
            for each in found["violations"]
            for node in each["nodes"]
        ]

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(_TOLD_OF_STATUS):
            self.noted.append(f"console: {message.text}")

    def _note_request(self, request: Request) -> None:
        url = urlsplit(request.url)
        if f"{url.scheme}://{url.netloc}" != self.origin:
            self.noted.append(f"another origin: {request.url[:200]}")

    def _note_response(self, response: Response) -> None:
        if response.status >= 400 and not response.request.is_navigation_request():
            self.noted.append(f"{response.status}: {response.url}")

    def _note_dialog(self, dialog: Dialog) -> None:
        self.noted.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def watch(self) -> None:
        """Begin to note faults."""
        self.context.on("console", self._note_console)
        self.context.on("weberror", lambda error: self.noted.append(f"threw: {error.error}"))
        self.context.on("request", self._note_request)
        self.context.on("response", self._note_response)
        self.context.on("dialog", self._note_dialog)


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Run the browser as long as the block does.

    Raises: LabFault when it is not installed.
    """
    program = find_program("chromium", "chromium")
    expect.set_options(timeout=LIMIT_SECONDS * 1000)
    with sync_playwright() as driver:
        # Playwright starts it without a sandbox, which root needs; it sees the lab's pages only.
        browser = driver.chromium.launch(executable_path=program, args=_OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visiting(
    browser: Browser, origin: str, look: Look = DESKTOP, state: StorageState | None = None
) -> Iterator[Visit]:
    """Open a visit to the server at `origin` (no slash at its end), with the cookies of `state`.

    Paths are enough for `page.goto`. What is waited for may take `LIMIT_SECONDS`.
    """
    context = browser.new_context(
        base_url=origin,
        viewport={"width": look.width, "height": look.height},
        color_scheme=look.scheme,
        java_script_enabled=look.has_script,
        storage_state=state,
        locale="en-GB",
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    try:
        context.set_default_timeout(LIMIT_SECONDS * 1000)
        visit = Visit(context, context.new_page(), origin)
        visit.watch()
        yield visit
    finally:
        context.close()
