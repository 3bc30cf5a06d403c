"""The page behind nginx with TLS, over two gateways, by the block that docs/operating.md shows."""

import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.page.browsing import SECURE_COOKIE, Html, PlainBrowser
from tests.integration.page.conftest import Browse
from tests.lab.gateway import running_gateway
from tests.lab.lab import Lab
from tests.lab.nginx_process import TEMPORARY_PATHS, ending_with_us, nginx_command
from tests.lab.ports import LOOPBACK, accepts_connections, free_port
from tests.lab.process import Process
from tests.lab.tls import write_server_certificate

PAGE = Path(__file__).parents[3] / "docs" / "operating.md"
TRUSTING = {
    "GATEWAY_HTTP__TRUSTED_PROXIES": f'["{LOOPBACK}"]',
    "GATEWAY_PAGE__ENABLED": "true",
}
CONFIG = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    {temporary_paths}
    upstream gateways {{
        server {loopback}:{ports[0]};
        server {loopback}:{ports[1]};
    }}
    server {{
        listen {loopback}:{port} ssl;
        ssl_certificate {folder}/tls.pem;
        ssl_certificate_key {folder}/tls.key;
        {location}
    }}
}}
"""


@pytest.fixture(scope="module")
def proxy(page_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """Nginx's port, and the folder with its authority."""
    folder, ports, port = tmp_path_factory.mktemp("proxy"), [free_port(), free_port()], free_port()
    authority, certificate, key = (folder / name for name in ("ca.pem", "tls.pem", "tls.key"))
    write_server_certificate(authority, certificate, key, LOOPBACK)
    (location,) = re.findall(r"```nginx\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    location = location.replace("allow 192.0.2.0/24;", f"allow {LOOPBACK};")
    text = CONFIG.format(
        folder=folder,
        loopback=LOOPBACK,
        ports=ports,
        port=port,
        location=location,
        temporary_paths=TEMPORARY_PATHS.format(folder=folder),
    )
    (folder / "temporary").mkdir()
    (folder / "nginx.conf").write_text(text)
    nginx = Process("nginx", ending_with_us(nginx_command(folder)), folder)
    config = page_lab.config
    with (
        running_gateway(config, "behind-1", port=ports[0], environ=TRUSTING),
        running_gateway(config, "behind-2", port=ports[1], environ=TRUSTING),
    ):
        nginx.start(lambda: accepts_connections(port))
        yield port, folder
        nginx.stop()


@pytest.fixture
def browser(proxy: tuple[int, Path], browse: Browse) -> PlainBrowser:
    port, folder = proxy
    tls = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    return browse(f"https://{LOOPBACK}:{port}", tls)


def test_page_works_behind_the_proxy_whichever_gateway_answers(
    page_lab: Lab, browser: PlainBrowser
) -> None:
    browser.log_in(page_lab.config.admin_token)
    assert browser.client.cookies.get(SECURE_COOKIE)
    for _ in range(4):
        shown = browser.get("/operator", **{"X-Forwarded-For": "198.51.100.66"})
        assert f"admin, from {LOOPBACK}" in Html(shown.text).text
        assert "strict-transport-security" not in shown.headers  # that is the proxy's to say
    assert browser.log_out().headers["location"] == "/operator/login"
    assert browser.get("/operator").status_code == 303


def test_form_of_another_site_is_refused_behind_the_proxy(
    page_lab: Lab, browser: PlainBrowser
) -> None:
    fields = {"token": page_lab.config.admin_token}
    for origin in ("https://evil.example", f"http://{browser.base_url.partition('//')[2]}"):
        browser.origin = origin
        assert browser.post("/operator/login", fields).status_code == 403
