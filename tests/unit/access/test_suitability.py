"""Whether a client may be handed a record, and why not."""

from dataclasses import replace

import pytest

from gateway.access.clients import Client
from gateway.access.suitability import why_not
from gateway.contract import DnsRecord
from gateway.contract.names import ClientId, Hostname

CLIENT = Client(
    client_id=ClientId("relay"),
    client_type="test",
    hostname_patterns=("*.example.test",),
    allowed_dns_record_addresses=("198.51.100.0/24",),
    capabilities=frozenset({"syncDnsRecords"}),
    policy_generation=1,
)
RECORD = DnsRecord(type="A", value="198.51.100.1")
NAME = Hostname("a.example.test")


def test_record_within_the_policy_is_allowed() -> None:
    assert why_not(CLIENT, NAME, RECORD) is None


@pytest.mark.parametrize(
    ("client", "why"),
    [
        (replace(CLIENT, hostname_patterns=("a.b.example.test",)), "none of the hostname patterns"),
        (replace(CLIENT, capabilities=frozenset({"requestCertificates"})), "lacks the capability"),
        (replace(CLIENT, allowed_dns_record_addresses=()), "198.51.100.1 lies in none"),
        (replace(CLIENT, allowed_dns_record_addresses=("::/0",)), "198.51.100.1 lies in none"),
    ],
)
def test_record_outside_of_the_policy_is_refused(client: Client, why: str) -> None:
    refusal = why_not(client, NAME, RECORD)
    assert refusal is not None
    assert why in refusal
    assert "relay" in refusal
