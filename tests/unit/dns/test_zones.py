"""Which configured zone holds a name, and what a zone never shows."""

import dns.message
import pytest

from gateway.contract.names import ZoneName
from gateway.dns.names import to_name, to_text
from gateway.dns.zones import ALGORITHMS, Endpoint, TsigKey, Zone, Zones

SECRET = b"very-secret-bytes"


def zone(name: str) -> Zone:
    return Zone(ZoneName(name), Endpoint("192.0.2.1", 53), TsigKey("k", "hmac-sha256", SECRET))


ZONES = Zones([zone("example.test"), zone("sub.example.test"), zone("example.net.test")])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("relay.example.test", "example.test"),
        ("relay.example.test.", "example.test"),
        ("RELAY.Example.TEST", "example.test"),
        ("example.test", "example.test"),
        ("a.b.c.example.test", "example.test"),
        ("sub.example.test", "sub.example.test"),
        ("relay.sub.example.test", "sub.example.test"),
        ("relay.othersub.example.test", "example.test"),
        ("relay.example.net.test", "example.net.test"),
        ("badexample.test", None),
        ("net.test", None),
        ("test", None),
        ("relay.example.org", None),
        (r"relay\.example.test", None),
    ],
)
def test_holding_longest_suffix_of_whole_labels(name: str, expected: str | None) -> None:
    found = ZONES.holding(name)
    assert (found.name if found else None) == expected


def test_holding_takes_a_parsed_name() -> None:
    found = ZONES.holding(to_name("x.sub.example.test"))
    assert found is not None
    assert found.name == "sub.example.test"


def test_holding_refuses_what_is_no_name() -> None:
    with pytest.raises(ValueError, match="not a domain name"):
        ZONES.holding(".".join(["a" * 63] * 5))


def test_zones_refuse_the_same_zone_twice() -> None:
    with pytest.raises(ValueError, match="twice"):
        Zones([zone("example.test"), zone("Example.test")])


def test_secret_is_in_no_repr() -> None:
    one = zone("example.test")
    key = one.key.for_signing()
    shown = f"{one!r} {one} {one.key!r} {key!r} {key} {[key]}"
    assert "secret-bytes" not in shown
    assert "dmVyeS1zZWNyZXQ" not in shown


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [("k", "gss-tsig"), ("k", "HMAC-SHA256"), ("k", "hmac-md5"), ("k" * 64, "hmac-sha256")],
)
def test_key_that_could_not_sign_is_refused(name: str, algorithm: str) -> None:
    with pytest.raises(ValueError, match=r"one of hmac-sha256|not a domain name"):
        TsigKey(name, algorithm, SECRET)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_key_of_each_algorithm_signs(algorithm: str) -> None:
    message = dns.message.make_query("example.test", "SOA")
    message.use_tsig(TsigKey("k", algorithm, SECRET).for_signing())
    assert message.to_wire()


@pytest.mark.parametrize(
    ("host", "text"),
    [("192.0.2.1", "192.0.2.1:53"), ("2001:db8::1", "[2001:db8::1]:53"), ("ns1.x", "ns1.x:53")],
)
def test_endpoint_reads_as_host_and_port(host: str, text: str) -> None:
    assert str(Endpoint(host, 53)) == text


def test_names_have_one_spelling() -> None:
    assert to_text(to_name("Relay.Example.Test.")) == "relay.example.test"
