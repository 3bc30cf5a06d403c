"""Certificates swapped under load, by the agent's own parts: no client may notice."""

import asyncio
from pathlib import Path

import pytest

from tests.integration.relay.relays import Relay
from tests.integration.relay.swapping import Options, Run, run
from tests.lab.certificates import LabAuthority
from tests.lab.process import wait_until
from tests.lab.tls_load import TlsLoad

_SWAPS = 12
_OVERLAPPING_SWAPS = 30


@pytest.fixture(scope="module")
def swaps(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return asyncio.run(run(tmp_path_factory.mktemp("swaps"), Options(_SWAPS)))


@pytest.fixture(scope="module")
def overlapping(tmp_path_factory: pytest.TempPathFactory) -> Run:
    options = Options(_OVERLAPPING_SWAPS, overlap=True)
    return asyncio.run(run(tmp_path_factory.mktemp("overlapping"), options))


def test_no_handshake_fails_while_certificates_are_swapped(swaps: Run) -> None:
    assert not swaps.load.failed_handshakes, swaps.figures()


def test_no_request_fails_while_certificates_are_swapped(swaps: Run) -> None:
    assert not swaps.load.failed_requests, swaps.figures()


def test_every_certificate_that_is_installed_gets_served(swaps: Run) -> None:
    assert sum(len(serials) for serials in swaps.installed.values()) >= _SWAPS
    assert not swaps.never_served


def test_certificates_are_served_in_the_order_of_their_installation(swaps: Run) -> None:
    assert {name: swaps.load.serials(name) for name in swaps.installed} == swaps.installed


def test_nginx_never_reads_a_certificate_and_a_key_that_do_not_fit(swaps: Run) -> None:
    assert (swaps.failed_hooks, swaps.complaints) == ((), ())


def test_clients_of_every_kind_were_there(swaps: Run) -> None:
    versions, ways = ("TLSv1.2", "TLSv1.3"), ("full", "resumed")
    assert set(swaps.load.kinds()) == {f"{version} {way}" for version in versions for way in ways}
    assert swaps.load.kept_requests > 0


def test_clients_notice_a_restart(relay: Relay) -> None:
    """So they would notice as well if swaps lost anything."""
    with TlsLoad(relay.nginx.address, relay.hostnames, relay.root_file) as load:
        relay.nginx.stop()
        wait_until(lambda: bool(load.findings().failed_handshakes), "handshakes fail")
        relay.nginx.start()


def test_clients_notice_a_certificate_of_another_authority(relay: Relay, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger.pem"
    stranger.write_text(LabAuthority().root_pem)
    with TlsLoad(relay.nginx.address, relay.hostnames, stranger) as load:
        wait_until(lambda: bool(load.findings().failed_handshakes), "handshakes fail")
    assert not load.findings().handshakes


def test_no_client_notices_when_nginx_reads_files_as_they_are_swapped(overlapping: Run) -> None:
    load = overlapping.load
    assert (load.failed_handshakes, load.failed_requests) == ((), ()), overlapping.figures()


def test_the_last_certificate_is_what_is_served_after_overlapping_swaps(overlapping: Run) -> None:
    last = {name: serials[-1] for name, serials in overlapping.installed.items()}
    assert overlapping.served == last
