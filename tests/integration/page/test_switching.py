"""Where the page is on, how a reload turns it off and on, and what is left while Redis is away."""

import hashlib
import secrets
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.page.browsing import Html, PlainBrowser
from tests.integration.page.conftest import Browse
from tests.integration.running.site import Site, replaced, running_site
from tests.lab.bind import BindPair
from tests.lab.gateway import running_gateway
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.redis import RedisProcess, running_redis
from tests.lab.tls import write_server_certificate

OFF, ON = "\n[page]\nenabled = false\n", "\n[page]\nenabled = true\n"


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with running_redis(tmp_path_factory.mktemp("switching-redis")) as server:
        yield server


@pytest.fixture(scope="module")
def one_site(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair, redis: RedisProcess
) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("switching"), bind, redis, None) as site:
        yield site


@pytest.fixture
def site(one_site: Site) -> Iterator[Site]:
    yield one_site
    one_site.reload(one_site.text)


@pytest.fixture
def browser(site: Site, browse: Browse) -> PlainBrowser:
    browser = browse(site.gateway.base_url)
    browser.log_in(site.config.admin_token)
    return browser


def test_page_follows_a_reload_and_sessions_outlive_it(site: Site, browser: PlainBrowser) -> None:
    site.reload(site.text + OFF)
    for path in ("/operator", "/operator/login", "/operator/static/page.css"):
        answer = browser.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
    site.reload(site.text + ON)
    assert browser.get("/operator").status_code == 200


def test_page_is_off_behind_a_proxy_until_it_is_turned_on(
    site: Site, browser: PlainBrowser
) -> None:
    proxied = replaced(site.text, "[redis]", 'trusted_proxies = ["192.0.2.1"]\n[redis]')
    site.reload(proxied)
    assert browser.get("/operator").status_code == 404
    site.reload(proxied + ON)
    assert browser.get("/operator").status_code == 200


def test_every_session_ends_with_the_admin_token(site: Site, browser: PlainBrowser) -> None:
    former = hashlib.sha256(site.config.admin_token.encode()).hexdigest()
    token = f"gwa_{secrets.token_urlsafe(32)}"
    site.reload(replaced(site.text, former, hashlib.sha256(token.encode()).hexdigest()))
    assert browser.get("/operator").status_code == 303
    fields = {"token": site.config.admin_token}
    assert browser.post("/operator/login", fields).status_code == 403
    browser.log_in(token)
    assert browser.get("/operator").status_code == 200


def test_page_tells_that_redis_is_away(
    site: Site, browser: PlainBrowser, redis: RedisProcess
) -> None:
    redis.stop()
    try:
        shown = browser.get("/operator")
        login = browser.get("/operator/login")
        refused = browser.post("/operator/login", {"token": site.config.admin_token})
    finally:
        redis.start()
    assert (shown.status_code, refused.status_code, login.status_code) == (503, 503, 200)
    for answer in (shown, refused):
        assert "Redis cannot be reached" in Html(answer.text).text
        assert "content-security-policy" in answer.headers
    assert "set-cookie" not in refused.headers


def test_form_that_does_not_arrive_ends_in_a_page(site: Site, browser: PlainBrowser) -> None:
    head = (
        "POST /operator/login HTTP/1.1\r\n"
        f"Host: {LOOPBACK}\r\nOrigin: http://{LOOPBACK}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ntoken="
    )
    with socket.create_connection((LOOPBACK, site.gateway.port), timeout=30) as slow:
        slow.sendall(head.encode())
        assert browser.get("/operator").status_code == 200  # others are not held up
        answer = slow.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in answer.lower()


def test_browser_of_a_listener_with_tls_keeps_to_it(
    site: Site, browse: Browse, tmp_path: Path
) -> None:
    authority, certificate, key = (tmp_path / name for name in ("ca.pem", "tls.pem", "tls.key"))
    write_server_certificate(authority, certificate, key, LOOPBACK)
    environ = {
        "GATEWAY_HTTP__TLS": "files",
        "GATEWAY_HTTP__CERTIFICATE_FILE": str(certificate),
        "GATEWAY_HTTP__KEY_FILE": str(key),
    }
    tls = ssl.create_default_context(cafile=str(authority))
    with running_gateway(site.config, "tls", port=free_port(), environ=environ, tls=tls) as gateway:
        browser = browse(gateway.base_url, tls)
        told = browser.submit("/operator/login", token=site.config.admin_token).headers
        assert told["strict-transport-security"] == "max-age=31536000"
        assert told["set-cookie"].startswith("__Host-gateway-session=")
        assert browser.get("/operator").status_code == 200
        assert browser.cookie is not None
