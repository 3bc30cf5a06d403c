"""Hostnames and addresses at the edges of the contract, from the wire to BIND and to Pebble."""

import ipaddress
from typing import Any

import pytest
from cryptography import x509

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import PROVISION, SYNC, Ownership, World, spec
from tests.unit.contract.vectors import VECTORS

ADDRESS, IPV6 = "198.51.100.5", "2001:db8::5"
ANY_ADDRESS = ["0.0.0.0/0", "::/0"]
LONGEST, LONGEST_CERTIFIED = 253, 253 - len("_acme-challenge.")


def hostname_of(length: int, label: int, below: str) -> str:
    """A hostname of exactly `length` characters, of labels of `label` and a shorter first one."""
    room = length - len(below)
    whole, rest = divmod(room, label + 1)
    labels = ["a" * label] * whole
    if rest == 1:  # a dot and nothing before it
        labels[0] = "a" * (label - 1) if label > 1 else "aa"
        rest = 2 if label > 1 else 0
    return ".".join(["b" * (rest - 1)] * (rest > 0) + labels + [below])


def owned(world: World, hostname: str) -> Ownership:
    return Ownership(world.client(hostname), hostname)


def published(hand: Hand, hostname: str) -> set[tuple[str, str]]:
    """The addresses at a name: type and value, however the server spells it."""
    records = (record.split(" ", 2) for record in hand.records(hostname))
    return {
        (type_, str(ipaddress.ip_address(value)))
        for _, type_, value in records
        if type_ in {"A", "AAAA"}
    }


def names_in(certificate: dict[str, Any]) -> list[x509.GeneralName]:
    leaf = x509.load_pem_x509_certificates(certificate["chainPem"].encode())[0]
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return list(names)


@pytest.mark.parametrize("label", [1, 63])
def test_longest_hostname_has_its_record_and_is_refused_a_certificate(
    world: World, hand: Hand, fresh_label: str, label: int
) -> None:
    hostname = hostname_of(LONGEST, label, f"{fresh_label}.example.test")
    assert len(hostname) == LONGEST
    mine = owned(world, hostname)
    for value, status in ((ADDRESS, "created"), (IPV6, "updated"), (IPV6, "unchanged")):
        assert mine.publish(value)["status"] == f"managed-{status}"
    assert published(hand, hostname) == {("AAAA", IPV6)}
    answer = mine.get()
    assert (answer["status"], answer["reason"]) == ("refused", "zone-unavailable")
    assert answer["retryAfterMs"] is None
    assert "too long for a certificate" in answer["message"]
    assert "269 characters, and 253 are possible" in answer["message"]
    assert mine.withdraw()["status"] == "managed-deleted"
    assert hand.records(hostname) == set()


@pytest.mark.parametrize("label", [1, 63])
def test_longest_hostname_with_room_for_the_challenge_gets_its_certificate(
    world: World, fresh_label: str, label: int
) -> None:
    hostname = hostname_of(LONGEST_CERTIFIED, label, f"{fresh_label}.example.test")
    assert len(hostname) == LONGEST_CERTIFIED
    assert names_in(owned(world, hostname).certificate()) == [x509.DNSName(hostname)]


def test_hostname_one_character_longer_is_refused_a_certificate(
    world: World, fresh_label: str
) -> None:
    hostname = hostname_of(LONGEST_CERTIFIED + 1, 63, f"{fresh_label}.example.test")
    answer = owned(world, hostname).get()
    assert (answer["status"], answer["reason"]) == ("refused", "zone-unavailable")
    assert "254 characters" in answer["message"]


@pytest.mark.parametrize("label", ["xn--bcher-kva", "xn--mgbh0fb", "ab--c", "0", "1-2"])
def test_odd_labels_have_their_record_and_their_certificate(
    world: World, hand: Hand, fresh_label: str, label: str
) -> None:
    mine = owned(world, f"{label}.{fresh_label}.example.test")
    assert mine.publish(ADDRESS)["status"] == "managed-created"
    assert published(hand, mine.hostname) == {("A", ADDRESS)}
    assert names_in(mine.certificate()) == [x509.DNSName(mine.hostname)]


def test_international_name_is_refused_with_its_a_label(world: World) -> None:
    caller = world.client("**.example.test")
    ownership = {"appId": "relay", "hostname": "bücher.example.test"}
    refused = caller.refused(SYNC, ownership=ownership, delete=True)
    assert refused["code"] == "request-invalid"
    assert ["xn--bcher-kva.example.test" in each for each in refused["violations"]] == [True]


def test_every_accepted_address_is_published_as_it_is_spelled(world: World, hand: Hand) -> None:
    mine = world.ownership(allowedDnsRecordAddresses=ANY_ADDRESS)
    for family in ("ipv4", "ipv6"):
        for value in VECTORS[family]["valid"]:
            answer = mine.publish(value)
            type_ = "AAAA" if ":" in value else "A"
            assert answer["status"] in {"managed-created", "managed-updated"}
            assert answer["record"] == {"type": type_, "value": value, "ttl": 300}
            assert published(hand, mine.hostname) == {(type_, value)}
            assert mine.publish(value)["status"] == "managed-unchanged"


@pytest.mark.parametrize(("type_", "family"), [("A", "ipv4"), ("AAAA", "ipv6")])
def test_every_refused_address_is_a_violation_and_leaves_the_record(
    world: World, hand: Hand, type_: str, family: str
) -> None:
    mine = world.ownership(allowedDnsRecordAddresses=ANY_ADDRESS)
    mine.publish(ADDRESS)
    before = hand.records(mine.hostname)
    other_family = VECTORS["ipv6" if family == "ipv4" else "ipv4"]["valid"]
    for value in (*VECTORS[family]["invalid"], *other_family):
        record = {"type": type_, "value": value}
        refused = mine.caller.refused(SYNC, ownership=mine.wire, record=record)
        assert refused["code"] == "request-invalid", value
        assert any(each.startswith("record.value ") for each in refused["violations"]), value
    assert hand.records(mine.hostname) == before


def test_every_accepted_prefix_allows_its_own_addresses(world: World, hand: Hand) -> None:
    for prefix in VECTORS["prefix"]["valid"]:
        network = ipaddress.ip_network(prefix)
        value = "2001:db8::1" if network.version == 6 else "198.51.100.85"
        if ipaddress.ip_address(value) not in network:
            value = str(network[1])
        mine = world.ownership(allowedDnsRecordAddresses=[prefix])
        assert mine.publish(value)["status"] == "managed-created", prefix
        other = IPV6 if network.version == 4 else ADDRESS
        assert mine.publish(other)["status"] == "target-invalid", prefix
        assert published(hand, mine.hostname) == {("AAAA" if ":" in value else "A", value)}


def test_every_refused_prefix_is_a_violation(world: World, fresh_label: str) -> None:
    pattern = f"{fresh_label}.example.test"
    for prefix in VECTORS["prefix"]["invalid"]:
        policy = spec(fresh_label, pattern, allowedDnsRecordAddresses=[prefix])
        refused = world.admin.refused(PROVISION, action="ensure", spec=policy)
        assert refused["code"] == "request-invalid", prefix
        path = "spec.allowedDnsRecordAddresses[0] "
        assert any(each.startswith(path) for each in refused["violations"]), prefix
