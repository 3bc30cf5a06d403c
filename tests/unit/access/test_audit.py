"""What the audit trail is told of calls: who, what changed, and nothing that was not read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from gateway.access import audit
from gateway.access.clients import Client, Credential, revoked, rotated, with_policy
from gateway.access.gate import Admin, ClientCaller
from gateway.access.tokens import new_client_token
from gateway.contract import ClientSpec, Forbidden
from gateway.contract.names import ClientId, CredentialId
from gateway.store.deeds import Action, Actor, Role

CLIENT = Client(
    client_id=ClientId("cluster-a"),
    client_type="cloudly",
    hostname_patterns=("relay.*.example.com",),
    allowed_dns_record_addresses=("198.51.100.0/24",),
    capabilities=frozenset({"syncDnsRecords"}),
    policy_generation=1,
    credentials=(Credential(CredentialId("first"), "0" * 64, 0),),
)
CALLER = ClientCaller(CLIENT, CredentialId("first"))
REFUSAL = Forbidden("syncDnsRecords", "The credential lacks the capability syncDnsRecords.")
SYNC = "syncGatewayClientDnsRecord"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def test_client_acts_by_its_credential_and_the_admin_by_no_name() -> None:
    assert audit.actor_of(CALLER) == Actor(Role.CLIENT, "first", "cluster-a")
    assert audit.actor_of(Admin()) == Actor(Role.ADMIN)


@given(st.dictionaries(st.sampled_from(["ownership", "record", "more"]), JSON))
def test_request_that_was_not_read_gives_no_more_than_a_valid_hostname(
    parameters: dict[str, Any],
) -> None:
    deed = audit.of_refused_call(CALLER, SYNC, parameters, REFUSAL)
    assert deed is not None
    assert deed.hostname is None
    assert (deed.outcome, deed.changed, deed.client_id) == ("forbidden", False, "cluster-a")
    assert deed.detail == REFUSAL.text


def test_refused_call_is_told_with_its_hostname() -> None:
    ownership = {"ownership": {"appId": "relay", "hostname": "a.example.com"}}
    deed = audit.of_refused_call(CALLER, SYNC, ownership, REFUSAL)
    assert deed is not None
    assert (deed.action, deed.hostname) == (Action.RECORD_SYNC, "a.example.com")


@pytest.mark.parametrize("method", ["getGatewayCapabilities", "getGatewayClientContext", "other"])
def test_refused_call_that_changes_nothing_is_not_told(method: str) -> None:
    assert audit.of_refused_call(CALLER, method, {}, REFUSAL) is None


def test_change_of_policy_tells_what_differs() -> None:
    spec = ClientSpec.of(
        "cluster-a",
        "cloudly",
        hostname_patterns=["relay.*.example.com", "b.example.com"],
        allowed_dns_record_addresses=["198.51.100.0/24"],
        capabilities=["readCertificates"],
    )
    deed = audit.of_provisioning("ensure", CLIENT, with_policy(CLIENT, spec))
    assert (deed.action, deed.outcome, deed.credential_id) == (
        Action.CLIENT_ENSURE,
        "changed",
        None,
    )
    assert deed.before == "hostnames: relay.*.example.com; capabilities: syncDnsRecords"
    assert deed.after == (
        "hostnames: relay.*.example.com, b.example.com; capabilities: readCertificates"
    )


def test_new_client_tells_its_whole_policy_and_its_credential() -> None:
    deed = audit.of_provisioning("ensure", None, CLIENT)
    assert (deed.outcome, deed.before, deed.credential_id) == ("created", None, "first")
    assert deed.after == (
        "type: cloudly; hostnames: relay.*.example.com; addresses: 198.51.100.0/24;"
        " capabilities: syncDnsRecords"
    )


def test_rotation_tells_the_new_credential_and_never_its_token() -> None:
    token = new_client_token(CLIENT.client_id)
    deed = audit.of_provisioning("rotate", CLIENT, rotated(CLIENT, token, 60, 0))
    assert (deed.credential_id, deed.before, deed.after) == (token.credential_id, None, None)
    assert deed.detail == "policy generation 2, 2 credentials"
    assert token.token not in repr(deed)
    assert token.digest not in repr(deed)


def test_revocation_tells_that_no_credential_is_left() -> None:
    deed = audit.of_provisioning("revoke", CLIENT, revoked(CLIENT))
    assert (deed.action, deed.credential_id) == (Action.CLIENT_REVOKE, None)
    assert deed.detail == "policy generation 2, 0 credentials"


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=200, unique=True))
def test_long_list_is_told_by_its_first_ones_and_their_number(numbers: list[int]) -> None:
    patterns = tuple(f"n{number}.example.com" for number in numbers)
    spec = ClientSpec.of("cluster-a", "cloudly", hostname_patterns=patterns, capabilities=[])
    after = audit.of_provisioning("ensure", CLIENT, with_policy(CLIENT, spec)).after
    assert after is not None
    assert after.count("example.com") == min(len(patterns), 8)
    assert (f"and {len(patterns) - 8} more" in after) is (len(patterns) > 8)
