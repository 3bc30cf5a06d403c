"""What the tests of this folder rely on: a page that does what it must not is noted.

The pages here are made up: the gateway has none that does such things.
"""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser

from tests.lab.browser import Visit, visiting
from tests.lab.ports import LOOPBACK

_POLICY = "default-src 'self'"
_PAGES = {
    "/": "<p>all is well</p>",
    "/log": "<script src=/log.js></script>",
    "/log.js": "console.error('a word on the console')",
    "/throw": "<script src=/throw.js></script>",
    "/throw.js": "throw new Error('on purpose')",
    "/ask": "<script src=/ask.js></script>",
    "/ask.js": "alert('who is there?')",
    "/inline": "<p style='color: red'>red</p>",
    "/elsewhere": "<a href=http://127.0.0.1:1/>elsewhere</a>",
    "/gone": "<img src=/nothing.png alt=nothing>",
    "/unlabelled": "<html lang=en><title>A form</title><main><input></main>",
}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = _PAGES.get(self.path)
        self.send_response(404 if text is None else 200)
        kind = "text/javascript" if self.path.endswith(".js") else "text/html"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", _POLICY)
        self.end_headers()
        self.wfile.write((text or "").encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's own name)
        """Say nothing."""


@pytest.fixture
def made_up(browser: Browser) -> Iterator[Visit]:
    server = ThreadingHTTPServer((LOOPBACK, 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        with visiting(browser, f"http://{LOOPBACK}:{server.server_port}") as visit:
            # The browser asks for it by itself, of a page that names none.
            visit.expected.append("/favicon.ico")
            yield visit
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_quiet_page_has_no_fault(made_up: Visit) -> None:
    made_up.page.goto("/")
    assert made_up.faults == []


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/log", "console: a word on the console"),
        ("/throw", "threw: on purpose"),
        ("/ask", "dialog: who is there?"),
        ("/inline", "Content Security Policy"),
        ("/gone", "404: "),
    ],
)
def test_a_fault_is_noted_on_a_page(made_up: Visit, path: str, told: str) -> None:
    made_up.page.goto(path)
    made_up.page.wait_for_load_state("networkidle")
    assert any(told in fault for fault in made_up.faults), made_up.faults


def test_another_origin_is_noted_when_it_is_asked(made_up: Visit) -> None:
    made_up.page.goto("/elsewhere")
    with made_up.page.expect_event("requestfailed"):
        made_up.page.get_by_role("link").click(no_wait_after=True)
    assert made_up.faults == ["another origin: http://127.0.0.1:1/"]


def test_axe_objects_to_a_field_without_a_label(made_up: Visit) -> None:
    made_up.page.goto("/unlabelled")
    assert any(line.startswith("label (critical)") for line in made_up.axe())
