"""The rules that make a client of a client."""

from __future__ import annotations

from dataclasses import replace

from gateway.access.clients import (
    MAX_CREDENTIALS,
    Client,
    created,
    revoked,
    rotated,
    with_policy,
)
from gateway.access.tokens import new_client_token
from gateway.contract import ClientSpec, read_request

NOW_MS = 1_700_000_000_000
SPEC = read_request(
    ClientSpec,
    {
        "clientId": "cluster-a",
        "clientType": "cloudly",
        "hostnamePatterns": ["relay.*.example.com"],
        "allowedDnsRecordAddresses": ["198.51.100.0/24"],
        "capabilities": ["syncDnsRecords"],
    },
)


def fresh() -> Client:
    return created(SPEC, new_client_token("cluster-a"), NOW_MS)


def test_new_client_has_its_policy_and_one_credential() -> None:
    client = fresh()
    assert client.policy_generation == 1
    assert client.hostname_patterns == ("relay.*.example.com",)
    assert client.newest_credential(NOW_MS) == client.credentials[0]


def test_same_policy_changes_nothing() -> None:
    client = fresh()
    assert with_policy(client, SPEC) == client


def test_other_policy_grows_the_generation_and_keeps_credentials() -> None:
    client = fresh()
    wider = SPEC.model_copy(update={"capabilities": frozenset({"readCertificates"})})
    changed = with_policy(client, wider)
    assert changed.policy_generation == 2
    assert changed.capabilities == {"readCertificates"}
    assert changed.credentials == client.credentials


def test_rotation_without_overlap_ends_the_old_credential_at_once() -> None:
    client = fresh()
    token = new_client_token("cluster-a")
    changed = rotated(client, token, 0, NOW_MS)
    assert [each.credential_id for each in changed.credentials] == [token.credential_id]
    assert changed.policy_generation == 2


def test_rotation_with_overlap_lets_the_old_credential_live_so_long() -> None:
    changed = rotated(fresh(), new_client_token("cluster-a"), 60, NOW_MS)
    old, new = changed.credentials
    assert old.is_live_at(NOW_MS + 59_999)
    assert not old.is_live_at(NOW_MS + 60_000)
    assert new.expires_at_ms is None


def test_second_rotation_never_prolongs_an_overlap() -> None:
    once = rotated(fresh(), new_client_token("cluster-a"), 60, NOW_MS)
    twice = rotated(once, new_client_token("cluster-a"), 600, NOW_MS)
    assert twice.credentials[0].expires_at_ms == NOW_MS + 60_000


def test_rotation_repeated_with_its_own_token_keeps_that_token_alive() -> None:
    token = new_client_token("cluster-a")
    once = rotated(fresh(), token, 60, NOW_MS)
    again = rotated(once, token, 60, NOW_MS)
    assert again.credentials == once.credentials


def test_credentials_are_bounded_in_number() -> None:
    client = fresh()
    for _ in range(MAX_CREDENTIALS + 5):
        client = rotated(client, new_client_token("cluster-a"), 600, NOW_MS)
    assert len(client.credentials) == MAX_CREDENTIALS


def test_revocation_leaves_no_credential_and_is_idempotent() -> None:
    ended = revoked(fresh())
    assert ended.credentials == ()
    assert ended.newest_credential(NOW_MS) is None
    assert revoked(ended) == ended


def test_expired_credential_is_not_the_newest() -> None:
    client = fresh()
    expired = replace(client.credentials[0], expires_at_ms=NOW_MS)
    assert replace(client, credentials=(expired,)).newest_credential(NOW_MS) is None
