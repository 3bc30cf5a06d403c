"""`[limits]` and `http.trusted_proxies`: defaults, bounds, and one client's own figures."""

from ipaddress import ip_network

import pytest

from gateway.configured import build_bounds, quota_of
from gateway.contract.names import ClientId
from tests.unit.config.conftest import MINIMAL, Faults, Load

OWN = (
    MINIMAL
    + """
    [limits]
    calls_per_minute = 10
    certificates = 5

    [limits.clients."relay/1"]
    records = 2
    certificates = 0
    """
)


def test_small_users_are_limited_in_what_they_would_never_do(load: Load) -> None:
    limits = load().limits
    assert limits.of("anybody") == (1200, 0, 0)
    assert (limits.unauthenticated_per_minute, limits.unauthenticated_per_second) == (60, 200)
    assert (limits.concurrent_calls, limits.concurrent_calls_per_credential) == (512, 64)


def test_client_has_its_own_figures_and_the_common_ones_where_it_has_none(load: Load) -> None:
    settings = load(OWN)
    assert settings.limits.of("relay/1") == (10, 2, 0)
    assert settings.limits.of("relay/2") == (10, 0, 5)
    assert quota_of(settings, ClientId("relay/1")).records == 2


def test_variable_sets_all_clients_as_json(load: Load) -> None:
    environ = {"GATEWAY_LIMITS__CLIENTS": '{"A": {"calls_per_minute": 7}}'}
    assert load(OWN, environ).limits.of("A").calls_per_minute == 7


def test_bounds_take_what_the_file_says(load: Load) -> None:
    settings = load(
        MINIMAL
        + """
        [limits]
        unauthenticated_per_minute = 1
        unauthenticated_per_second = 2
        concurrent_calls = 3
        concurrent_calls_per_credential = 4

        [http]
        trusted_proxies = ["10.0.0.0/8", "::1", "::ffff:192.0.2.0/120"]
        """
    )
    bounds = build_bounds(settings)
    assert (bounds.flood.per_minute, bounds.flood.per_second) == (1, 2)
    assert (bounds.crowd.all, bounds.crowd.each) == (3, 4)
    assert bounds.trusted_proxies == (
        ip_network("10.0.0.0/8"),
        ip_network("::1/128"),
        ip_network("192.0.2.0/24"),
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[limits]\nrecords = -1", "limits.records: must be greater than or equal to 0, not -1"),
        ("[limits]\nrecords = true", "limits.records: must be a number, not true"),
        (
            "[limits]\ncalls_per_hour = 1",
            "limits.calls_per_hour: is not a key of the configuration; "
            "did you mean calls_per_minute?",
        ),
        (
            '[limits.clients."a"]\nrecord = 1',
            "limits.clients.a.record: is not a key of the configuration; did you mean records?",
        ),
        (
            '[limits.clients."a b"]\nrecords = 1',
            'limits.clients: must have tables by client id, and "a b" is none',
        ),
        ("[limits]\nclients = 3", "limits.clients: must be a table"),
        (
            '[http]\ntrusted_proxies = ["10.0.0.1/8"]',
            "http.trusted_proxies[0]: must be an address, or a prefix without bits behind its "
            'length, such as 10.0.0.0/8, not "10.0.0.1/8"',
        ),
        (
            '[http]\ntrusted_proxies = ["10.0.0.0/255.0.0.0"]',
            "http.trusted_proxies[0]: must be an address, or a prefix without bits behind its "
            'length, such as 10.0.0.0/8, not "10.0.0.0/255.0.0.0"',
        ),
        ("[http]\ntrusted_proxies = [7]", "http.trusted_proxies[0]: must be text, not 7"),
    ],
)
def test_fault_is_told_with_its_key(faults: Faults, text: str, fault: str) -> None:
    assert faults(f"{MINIMAL}\n{text}") == [fault]
