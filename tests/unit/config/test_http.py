"""`[http]`: which listeners may be plain, and what each way to have TLS takes."""

from pathlib import Path

import pytest

from tests.unit.config.conftest import ACME, MINIMAL, ZONE, Faults, Load

FILES = 'tls = "files"\ncertificate_file = "tls.pem"\nkey_file = "/keys/tls.key"'
OWN = 'tls = "self"\ntls_hostname = "gateway.example.test"'
BEYOND = 'listen = "0.0.0.0:443"'


def http(*lines: str) -> str:
    return "\n".join([MINIMAL, "[http]", *lines, ""])


def test_listener_is_plain_and_for_this_machine_unless_told_otherwise(load: Load) -> None:
    settings = load().http
    assert (settings.tls, str(settings.listen)) == ("off", "127.0.0.1:8053")
    assert (settings.connections, settings.connections_per_address) == (2048, 512)


@pytest.mark.parametrize("lines", [(BEYOND,), (BEYOND, 'tls = "off"')])
def test_plain_http_for_other_machines_is_a_fault(faults: Faults, lines: tuple[str, ...]) -> None:
    (fault,) = faults(http(*lines))
    assert fault.startswith("http.listen: must be a loopback address without TLS")
    assert fault.endswith('not "0.0.0.0:443"')


@pytest.mark.parametrize("line", ["allow_plain_http = true", FILES, OWN])
def test_other_machines_may_be_served_with_tls_or_where_it_is_wanted(load: Load, line: str) -> None:
    assert load(http(BEYOND, line) + ZONE + ACME).http.port == 443


def test_files_are_found_beside_the_configuration(load: Load, tmp_path: Path) -> None:
    settings = load(http(FILES, 'client_ca_file = "clients.pem"'))
    assert settings.http.certificate_file == tmp_path / "tls.pem"
    assert settings.http.client_ca_file == tmp_path / "clients.pem"
    assert settings.http.key_file == Path("/keys/tls.key")
    assert Path("/keys/tls.key") in settings.secret_files


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ('tls = "files"',),
            [
                'http.certificate_file: is required with http.tls = "files"',
                'http.key_file: is required with http.tls = "files"',
            ],
        ),
        (('tls = "self"',), ['http.tls_hostname: is required with http.tls = "self"']),
        (('tls = "on"',), ["http.tls: must be one of 'off', 'files' or 'self', not \"on\""]),
        (
            ('key_file = "tls.key"',),
            ['http.key_file: must be left out unless http.tls is "files"'],
        ),
        (
            ('client_ca_file = "ca.pem"',),
            ['http.client_ca_file: must be left out while http.tls is "off"'],
        ),
        (("connections = 0",), ["http.connections: must be greater than or equal to 1, not 0"]),
    ],
)
def test_fault_is_told_with_its_key(
    faults: Faults, lines: tuple[str, ...], expected: list[str]
) -> None:
    # What was written is told as well, with the folder that it starts at.
    told = [fault.partition(', not "/')[0] for fault in faults(http(*lines))]
    assert told == expected


@pytest.mark.parametrize("name", ["Gateway.example.test", "gateway.example.test.", "*.test", ""])
def test_own_hostname_is_one_that_a_client_could_have(faults: Faults, name: str) -> None:
    told = faults(http('tls = "self"', f'tls_hostname = "{name}"') + ZONE + ACME)
    assert [fault.split(":")[0] for fault in told] == ["http.tls_hostname"]


def test_own_certificate_takes_a_zone_and_an_authority(faults: Faults) -> None:
    assert faults(http(OWN)) == [
        'http.tls: needs an [[acme]] table to be "self"',
        'http.tls_hostname: must lie in one of the zones, which "gateway.example.test" does not',
    ]
    assert len(faults(http(OWN.replace("gateway.example", "gatewayexample")) + ZONE + ACME)) == 1
