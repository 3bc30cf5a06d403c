"""HTTP itself: what each kind of request is answered, and that no answer may ever be stored."""

import json
import socket

import httpx
import pytest

from tests.integration.service.calling import CONTEXT, NO_TLS, SYNC, Ownership, World, envelope
from tests.lab.lab import Lab

LIMIT_SECONDS = 15


def exchanged(lab: Lab, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send these bytes and read until the gateway closes: status, headers, body."""
    with socket.create_connection(("127.0.0.1", lab.config.port), timeout=LIMIT_SECONDS) as peer:
        peer.sendall(request)
        received = b""
        while chunk := peer.recv(65_536):
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    pairs = [line.split(": ", 1) for line in lines]
    return int(first.split()[1]), {name.lower(): value for name, value in pairs}, body


@pytest.mark.parametrize(
    "method", ["HEAD", "TRACE", "CONNECT", "PROPFIND", "QUERY", "SEARCH", "MKCALENDAR"]
)
def test_every_other_http_method_is_refused_alike(service_lab: Lab, method: str) -> None:
    request = f"{method} /typedrequest HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    status, headers, body = exchanged(service_lab, request.encode())
    assert (status, headers["allow"], headers["cache-control"]) == (405, "POST", "no-store")
    if method != "HEAD":
        assert json.loads(body)["error"]["data"] == {"code": "envelope-invalid"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("HEAD", "/healthz", 200),
        ("POST", "/healthz", 405),
        ("PROPFIND", "/readyz", 405),
        ("GET", "/", 404),
        ("POST", "/typedrequest/", 404),
        ("POST", "/typedrequest/more", 404),
        ("GET", "//elsewhere.test/typedrequest", 404),
    ],
)
def test_no_page_redirects_or_may_be_stored(
    service_lab: Lab, method: str, path: str, status: int
) -> None:
    request = f"{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    answered, headers, _ = exchanged(service_lab, request.encode())
    assert (answered, headers["cache-control"]) == (status, "no-store")
    assert "location" not in headers


def test_refusal_of_the_http_parser_may_not_be_stored_either(service_lab: Lab) -> None:
    status, headers, _ = exchanged(service_lab, b"NONSENSE /typedrequest HTTP/1.1\r\n\r\n")
    assert (status, headers["cache-control"]) == (400, "no-store")


def test_body_declared_too_long_is_refused_before_it_is_sent(service_lab: Lab) -> None:
    request = (
        b"POST /typedrequest HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        b"Content-Length: 65537\r\n\r\n"
    )
    status, headers, body = exchanged(service_lab, request)
    assert (status, headers["connection"]) == (413, "close")
    assert json.loads(body)["error"]["data"] == {"code": "envelope-invalid"}


def test_connection_goes_on_after_refused_calls(mine: Ownership) -> None:
    good = json.dumps(envelope(CONTEXT, {"apiToken": mine.caller.token})).encode()
    address = httpx.URL(mine.caller.url)
    expected = []
    wire = b""
    for body, kind, status in (
        (b"{", "application/json", 400),
        (b"<a/>", "text/xml", 415),
        (b'{"method":"m"}', "application/json", 200),
        (good, "application/json", 200),
    ):
        closing = "Connection: close\r\n" if body == good else ""
        head = f"POST /typedrequest HTTP/1.1\r\nHost: a\r\nContent-Type: {kind}\r\n{closing}"
        wire += f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        expected.append(f"HTTP/1.1 {status}")
    with socket.create_connection((address.host, address.port), timeout=LIMIT_SECONDS) as peer:
        peer.sendall(wire)
        received = b""
        while chunk := peer.recv(65_536):
            received += chunk
    lines = received.decode().replace("}HTTP/1.1", "}\r\nHTTP/1.1").split("\r\n")
    assert [line[:12] for line in lines if line.startswith("HTTP/1.1 ")] == expected
    assert '"gatewayClient"' in received.decode()


@pytest.mark.parametrize("number", ["1e999", "9" * 5_000, "-" + "9" * 60_000])
def test_number_without_bounds_is_its_fields_fault(mine: Ownership, number: str) -> None:
    record = {"type": "A", "value": "198.51.100.5", "ttl": "here"}
    request = {"apiToken": mine.caller.token, "ownership": mine.wire, "record": record}
    body = json.dumps(envelope(SYNC, request)).replace('"here"', number)
    answer = httpx.post(
        mine.caller.url,
        content=body,
        headers={"Content-Type": "application/json"},
        trust_env=False,
        timeout=LIMIT_SECONDS,
        verify=NO_TLS,
    ).json()
    (violation,) = answer["error"]["data"]["violations"]
    assert violation.startswith("record.ttl ")


def test_method_name_is_logged_without_what_it_may_hide(service_lab: Lab, world: World) -> None:
    token = world.client().token or ""
    # More than the credential's id: its secret begins here.
    beginning, clear_screen = token[:50], "\x1b[2J"
    for method in (token, clear_screen + beginning):
        assert world.admin.refused(method) == {"code": "method-unknown"}
    logs = "".join(each.process.log_file.read_text() for each in service_lab.gateways)
    assert "method-unknown" in logs
    assert beginning not in logs
    assert clear_screen not in logs
