"""`http.tls = "self"`: the gateway issues and renews its listener's certificate through itself."""

import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.integration.cli.running import run
from tests.integration.dns.hand import Hand
from tests.integration.listener.serving import presented
from tests.integration.service.calling import GET, SYNC, Caller, World
from tests.lab.bind import BindPair
from tests.lab.gateway import (
    GatewayConfig,
    GatewayProcess,
    prepare_gateway,
    running_gateway,
    start_gateway,
    write_gateway_config,
)
from tests.lab.pebble import PebbleProcess, start_pebble
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import wait_until
from tests.lab.redis import running_redis

HOSTNAME = "own-listener.example.test"
OWN = {"GATEWAY_HTTP__TLS": "self", "GATEWAY_HTTP__TLS_HOSTNAME": HOSTNAME}
RENEWED_EARLY = {"GATEWAY_ACME__0__RENEW_AT": "0.1"}


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@pytest.fixture(scope="module")
def own(listener_config: GatewayConfig, hand: Hand) -> Iterator[tuple[GatewayProcess, ...]]:
    """Two gateways with the one certificate, ready; the hostname has an operator's address."""
    hand.add(f"{HOSTNAME}. 300 A 192.0.2.77")
    with ExitStack() as stack:
        yield tuple(
            stack.enter_context(
                running_gateway(
                    listener_config, name, port=free_port(), environ=OWN, tls=unverified()
                )
            )
            for name in ("own-1", "own-2")
        )


def test_all_processes_present_the_one_certificate_that_the_authority_issued(
    own: tuple[GatewayProcess, ...], pebble: PebbleProcess
) -> None:
    trusting = ssl.create_default_context(cafile=pebble.root_file)
    first, second = (presented(gateway.port, trusting, HOSTNAME) for gateway in own)
    assert first == second


def test_address_of_the_hostname_is_not_touched(
    own: tuple[GatewayProcess, ...], hand: Hand
) -> None:
    assert own
    assert hand.records(HOSTNAME) == {"300 A 192.0.2.77"}


def test_no_client_can_take_the_hostname(
    own: tuple[GatewayProcess, ...], listener_config: GatewayConfig
) -> None:
    gateway = own[0]
    verify = unverified()

    class OverTls(Caller):
        def post(self, body: object) -> httpx.Response:
            return httpx.post(self.url, json=body, trust_env=False, timeout=15, verify=verify)

    world = World(gateway.url, listener_config.admin_token)
    world.admin = OverTls(gateway.url, listener_config.admin_token)
    client = OverTls(gateway.url, world.client(HOSTNAME).token)
    ownership = {"appId": "its listener", "hostname": HOSTNAME}
    assert "ownership.appId" in str(client.refused(GET, ownership=ownership))
    ownership = {"appId": "relay", "hostname": HOSTNAME}
    assert client.call(GET, ownership=ownership)["reason"] == "hostname-conflict"
    record = {"type": "A", "value": "198.51.100.9"}
    assert client.call(SYNC, ownership=ownership, record=record)["status"] == "record-conflict"
    assert presented(gateway.port, verify, HOSTNAME)


def test_former_hostname_is_given_up_and_the_configured_one_is_not(
    own: tuple[GatewayProcess, ...], listener_config: GatewayConfig
) -> None:
    environ = {**OWN, "GATEWAY_HTTP__TLS_HOSTNAME": "other-listener.example.test"}

    def give_up(hostname: str, environ: dict[str, str]) -> tuple[int, str]:
        config_file = listener_config.config_file
        ended = run("holdings", "give-up", hostname, "--config", config_file, environ=environ)
        return ended.returncode, ended.stdout + ended.stderr

    assert own
    code, said = give_up(HOSTNAME, OWN)
    assert (code, said) == (1, f"{HOSTNAME} is http.tls_hostname: change that first, everywhere.\n")
    assert give_up("never-held.example.test", environ) == (
        1,
        "never-held.example.test is not held by the gateway itself: nobody holds it.\n",
    )
    port = free_port()
    former = start_gateway(listener_config, "former", port=port, environ=environ, tls=unverified())
    former.stop()
    assert give_up("other-listener.example.test", OWN)[0] == 0
    listed = run("holdings", "list", "--json", "--config", listener_config.config_file)
    held = {each["hostname"]: each["clientId"] for each in json.loads(listed.stdout)}
    assert held[HOSTNAME] == "the gateway"
    assert held.get("other-listener.example.test") is None


def test_before_there_is_one_clients_fail_at_once_and_readiness_says_why(
    listener_config: GatewayConfig, pebble: PebbleProcess
) -> None:
    environ = {
        **OWN,
        "GATEWAY_HTTP__TLS_HOSTNAME": "never-there.example.test",
        "GATEWAY_ACME__0__DIRECTORY": f"https://{LOOPBACK}:{free_port()}/dir",
    }
    gateway = prepare_gateway(
        listener_config, "never", port=free_port(), environ=environ, tls=unverified()
    )

    def parts() -> dict[str, dict[str, str]]:
        try:
            page = httpx.get(f"{gateway.base_url}/readyz", verify=unverified(), trust_env=False)
        except httpx.TransportError:
            return {}
        assert page.status_code == 503
        found: dict[str, dict[str, str]] = page.json()["parts"]
        return found

    try:
        gateway.process.start(lambda: "never-there" in parts().get("tls", {}).get("detail", ""))
        trusting = ssl.create_default_context(cafile=pebble.root_file)
        with pytest.raises(ssl.SSLCertVerificationError):
            presented(gateway.port, trusting, HOSTNAME)
    finally:
        gateway.stop()


def test_renewed_one_is_presented_without_a_restart(tmp_path: Path, bind: BindPair) -> None:
    (tmp_path / "pebble").mkdir()
    (tmp_path / "redis").mkdir()
    with ExitStack() as stack:
        redis = stack.enter_context(running_redis(tmp_path / "redis"))
        ca = start_pebble(tmp_path / "pebble", bind.primary, validity_seconds=60)
        stack.callback(ca.stop)
        config = write_gateway_config(tmp_path / "gateway", bind, redis.url, ca)
        environ = {**OWN, **RENEWED_EARLY, "GATEWAY_HTTP__TLS_HOSTNAME": "renewed.example.test"}
        gateway = stack.enter_context(running_gateway(config, environ=environ, tls=unverified()))
        trusting = ssl.create_default_context(cafile=ca.root_file)
        first = presented(gateway.port, trusting, "renewed.example.test")
        wait_until(
            lambda: presented(gateway.port, trusting, "renewed.example.test") != first,
            "the renewed certificate",
        )
