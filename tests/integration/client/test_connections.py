"""Connections: kept and used again, trusted or not, and closed whatever ends a call."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gateway.client import AsyncGatewayClient, DeadlinePassed, Unreachable, exchange
from tests.integration.client.conftest import RELAY, TOKEN
from tests.integration.client.counting import counted_connections
from tests.integration.service.calling import Ownership as Mine
from tests.lab.lab import Lab
from tests.lab.liar import CUT, HANG, Answer, Liar, Says, response, spoiled
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import read_until
from tests.lab.tls import write_server_certificate

RELEASED = response({"status": "released"})


async def closed(liar: Liar) -> None:
    """Wait until no client is connected to the liar any more."""

    async def count() -> int:
        return liar.open_connections

    await read_until(count, lambda open_connections: not open_connections)


async def heard(liar: Liar, requests: int = 1) -> None:
    """Wait until the liar has got so many requests."""

    async def count() -> int:
        return len(liar.requests)

    await read_until(count, lambda got: got >= requests)


async def test_many_calls_in_a_row_take_one_connection(mine: Mine, lab: Lab) -> None:
    async with counted_connections(lab.config.port) as counted:
        async with AsyncGatewayClient(counted.url, mine.caller.token or "") as client:
            for _ in range(20):
                await client.get_context()
        assert counted.connections == 1


async def test_connections_of_calls_at_once_are_used_again(mine: Mine, lab: Lab) -> None:
    async with counted_connections(lab.config.port) as counted:
        async with AsyncGatewayClient(counted.url, mine.caller.token or "") as client:
            for _ in range(3):
                await asyncio.gather(*(client.get_context() for _ in range(10)))
        assert counted.connections <= 10


async def test_connection_that_was_idle_for_too_long_is_not_used_again(
    liar: Liar, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A test has no time for the real limit, which is a little below the gateway's own.
    monkeypatch.setattr(exchange, "IDLE_SECONDS", 0.0)
    liar.answers(RELEASED)
    async with AsyncGatewayClient(liar.url, TOKEN) as client:
        for _ in range(3):
            await client.release_certificate(RELAY)
    assert liar.connections == 3


async def test_client_with_another_token_uses_the_same_connection(liar: Liar) -> None:
    liar.answers(RELEASED)
    async with AsyncGatewayClient(liar.url, TOKEN) as client:
        async with client.with_token("gwc_other") as other:
            await other.release_certificate(RELAY)
        await client.release_certificate(RELAY)
    tokens = [request.envelope["request"]["apiToken"] for request in liar.requests]
    assert tokens == ["gwc_other", TOKEN]
    assert liar.connections == 1


async def test_errors_keep_the_connection(liar: Liar) -> None:
    liar.answers(b"garbage", RELEASED)
    async with AsyncGatewayClient(liar.url, TOKEN) as client:
        for _ in range(3):
            await asyncio.gather(client.release_certificate(RELAY), return_exceptions=True)
    assert (len(liar.requests), liar.connections) == (3, 1)


async def test_closed_client_leaves_no_connection(liar: Liar) -> None:
    liar.answers(RELEASED)
    async with AsyncGatewayClient(liar.url, TOKEN) as client:
        await client.release_certificate(RELAY)
        await client.aclose()
    await closed(liar)


@pytest.mark.parametrize(
    "answer",
    [
        HANG,
        spoiled(RELEASED, seconds_per_byte=0.02),
        spoiled(RELEASED, cut_after=150, hangs=True),
    ],
    ids=["never answered", "byte by byte", "half answered"],
)
async def test_deadline_ends_a_call_and_its_connection(liar: Liar, answer: Answer) -> None:
    liar.answers(answer)
    async with AsyncGatewayClient(liar.url, TOKEN, deadline=0.3) as client:
        with pytest.raises(
            DeadlinePassed, match=r"^releaseGatewayClientCertificate at http://.* within 0\.3 sec"
        ):
            await client.release_certificate(RELAY)
        await closed(liar)


async def test_deadline_tells_that_the_call_may_have_arrived(liar: Liar) -> None:
    liar.answers(HANG)
    async with AsyncGatewayClient(liar.url, TOKEN, deadline=0.3) as client:
        with pytest.raises(DeadlinePassed) as raised:
            await client.release_certificate(RELAY)
    assert raised.value.may_have_arrived


@pytest.fixture
def full() -> Iterator[str]:
    """The URL of a server to which no connection comes about: others wait to be accepted."""
    with ExitStack() as sockets:
        server = sockets.enter_context(socket.create_server((LOOPBACK, 0), backlog=0))
        for _ in range(4):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield f"http://{LOOPBACK}:{server.getsockname()[1]}"


async def test_deadline_tells_that_no_call_can_have_arrived(full: str) -> None:
    async with AsyncGatewayClient(full, TOKEN, deadline=0.3) as client:
        with pytest.raises(DeadlinePassed) as raised:
            await client.release_certificate(RELAY)
    assert not raised.value.may_have_arrived


async def test_deadline_names_what_went_wrong_before(liar: Liar) -> None:
    liar.answers(spoiled(RELEASED, status=503), HANG)
    async with AsyncGatewayClient(liar.url, TOKEN, deadline=1.0) as client:
        with pytest.raises(DeadlinePassed, match=r"before that: .* HTTP status 503"):
            await client.release_certificate(RELAY)


async def test_cancelled_call_closes_its_connection_and_no_other(liar: Liar) -> None:
    liar.answers(HANG, RELEASED)
    async with AsyncGatewayClient(liar.url, TOKEN) as client:
        call = asyncio.create_task(client.release_certificate(RELAY))
        await heard(liar)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await closed(liar)
        assert (await client.release_certificate(RELAY)).status == "released"


async def test_cancelled_waiting_ends_at_once(liar: Liar) -> None:
    liar.answers(response({"status": "pending", "retryAfterMs": 60_000}))
    async with AsyncGatewayClient(liar.url, TOKEN) as client:
        waiting = asyncio.create_task(client.wait_for_certificate(RELAY))
        await heard(liar)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_programs_own_timeout_ends_a_call(liar: Liar) -> None:
    liar.answers(HANG)
    async with AsyncGatewayClient(liar.url, TOKEN) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.release_certificate(RELAY)
        await closed(liar)


class Tls:
    """A liar behind TLS, and the file of the authority that made its certificate."""

    def __init__(self, folder: Path, address: str) -> None:
        self.ca_file = folder / f"ca-{address}.pem"
        files = folder / f"{address}.pem", folder / f"{address}-key.pem"
        write_server_certificate(self.ca_file, *files, address)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
        self.liar = Liar(context)


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[Tls]:
    tls = Tls(tmp_path, LOOPBACK)
    with tls.liar:
        tls.liar.answers(RELEASED)
        yield tls


@pytest.fixture
def tls_of_another(tmp_path: Path) -> Iterator[Tls]:
    """Its certificate is for another address than it listens on."""
    tls = Tls(tmp_path, "127.0.0.9")
    with tls.liar:
        tls.liar.answers(RELEASED)
        yield tls


@pytest.fixture
def nobody() -> int:
    """A port where nobody listens."""
    return free_port()


async def distrusted(tls: Tls, ca_file: Path | None, reason: str) -> None:
    async with AsyncGatewayClient(tls.liar.url, TOKEN, ca_file=ca_file) as client:
        with pytest.raises(
            Unreachable, match=f"^The TLS certificate of https://.* is not trusted: {reason}"
        ) as raised:
            await client.release_certificate(RELAY)
    assert raised.value.is_lasting
    assert not raised.value.may_have_arrived
    assert not tls.liar.requests


async def test_gateway_with_a_trusted_certificate_is_called(tls: Tls) -> None:
    async with AsyncGatewayClient(tls.liar.url, TOKEN, ca_file=tls.ca_file) as client:
        assert (await client.release_certificate(RELAY)).status == "released"
    assert tls.liar.connections == 1


async def test_gateway_is_not_trusted_by_the_systems_authorities(tls: Tls) -> None:
    await distrusted(tls, None, "unable to get local issuer certificate")


async def test_variable_that_says_whom_to_trust_is_named_when_nobody_is(
    tls: Tls, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing"))
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    await distrusted(tls, None, r"unable .*; whom to trust is said by \$SSL_CERT_FILE\.$")


async def test_gateway_is_not_trusted_by_another_authority(tls: Tls, tls_of_another: Tls) -> None:
    await distrusted(tls, tls_of_another.ca_file, ".*(certificate|signature)")


async def test_gateway_with_a_certificate_of_another_address_is_not_trusted(
    tls_of_another: Tls,
) -> None:
    await distrusted(
        tls_of_another, tls_of_another.ca_file, r"IP address mismatch, .* '127\.0\.0\.1'\.$"
    )


async def test_plain_http_to_a_tls_port_is_unreachable(tls: Tls) -> None:
    url = tls.liar.url.replace("https", "http")
    async with AsyncGatewayClient(url, TOKEN) as client:
        # A call that is not repeated.
        with pytest.raises(Unreachable, match="broke before an answer"):
            await client.rotate_credential("cluster-a")


async def test_tls_to_a_plain_port_is_unreachable_and_says_why(lab: Lab) -> None:
    url = lab.config.url.replace("http", "https")
    async with AsyncGatewayClient(url, TOKEN, deadline=0.5) as client:
        # Which of the two depends on whether the deadline meets an attempt or a pause.
        with pytest.raises((Unreachable, DeadlinePassed), match="speaks no TLS"):
            await client.release_certificate(RELAY)


async def test_proxy_of_the_environment_never_gets_a_plain_call(
    liar: Liar, monkeypatch: pytest.MonkeyPatch
) -> None:
    liar.answers(RELEASED)
    with Liar() as proxy:
        for name in ("http_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.base_url)
        async with AsyncGatewayClient(liar.url, TOKEN) as client:
            assert await client.release_certificate(RELAY)
        assert not proxy.connections


async def test_proxy_that_is_not_there_is_named_as_what_was_asked(
    nobody: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://{LOOPBACK}:{nobody}")
    async with AsyncGatewayClient("https://gateway.invalid", TOKEN, deadline=0.5) as client:
        with pytest.raises(
            (Unreachable, DeadlinePassed), match=r"refused \(\$HTTPS_PROXY names a proxy\)"
        ):
            await client.release_certificate(RELAY)


async def test_closed_client_says_that_it_is(liar: Liar) -> None:
    async with AsyncGatewayClient(liar.url, TOKEN) as client:
        pass
    with pytest.raises(RuntimeError, match="This client is closed"):
        await client.release_certificate(RELAY)


async def test_failure_is_not_explained_by_the_one_that_is_being_handled(
    tls: Tls, liar: Liar
) -> None:
    liar.answers(CUT)
    async with (
        AsyncGatewayClient(tls.liar.url, TOKEN) as first,
        AsyncGatewayClient(liar.url, TOKEN) as second,
    ):
        try:
            await first.rotate_credential("cluster-a")
        except Unreachable:
            with pytest.raises(Unreachable, match="broke before an answer") as raised:
                await second.rotate_credential("cluster-a")
    assert raised.value.may_have_arrived
    assert not raised.value.is_lasting


async def test_proxy_that_makes_no_connection_has_passed_no_call_on(
    liar: Liar, monkeypatch: pytest.MonkeyPatch
) -> None:
    liar.answers(Says(status=403))
    monkeypatch.setenv("HTTPS_PROXY", liar.base_url)
    async with AsyncGatewayClient("https://gateway.invalid", TOKEN, deadline=0.5) as client:
        # Which of the two depends on whether the deadline meets an attempt or a pause.
        with pytest.raises((Unreachable, DeadlinePassed), match="be reached: 403") as raised:
            await client.rotate_credential("cluster-a")
    assert not raised.value.may_have_arrived
    assert {request.method for request in liar.requests} == {"CONNECT"}
