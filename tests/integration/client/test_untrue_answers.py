"""Answers in the contract's form about something else than was asked, and what is never sent.

A liar gives them, since no real gateway does.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from gateway.client import AnswerInvalid, AsyncGatewayClient, DnsRecord, RequestInvalid
from tests.integration.client.conftest import RELAY, TOKEN
from tests.lab.certificates import Issued, LabAuthority, key_pem, new_key
from tests.lab.liar import Answer, Liar, response

AUTHORITY = LabAuthority()
NOW = datetime.now(UTC)
DAY = timedelta(days=1)
ADDRESS = DnsRecord(type="A", value="198.51.100.5", ttl=60)

SPOILED: dict[str, tuple[Callable[[], Issued], str]] = {
    "another name": (
        lambda: AUTHORITY.issue("other.example.test"),
        "is for other.example.test, not for relay.example.test",
    ),
    "a wildcard": (lambda: AUTHORITY.issue("", names=["*.example.test"]), r"is for \*"),
    "expired": (
        lambda: AUTHORITY.issue(RELAY.hostname, not_before=NOW - 9 * DAY, not_after=NOW - DAY),
        "expired on",
    ),
    "not yet valid": (
        lambda: AUTHORITY.issue(RELAY.hostname, not_before=NOW + DAY),
        "is not valid before",
    ),
    "another key": (
        lambda: _with_key(AUTHORITY.issue(RELAY.hostname), key_pem(new_key())),
        "private key does not fit",
    ),
    "a broken key": (
        lambda: _with_key(AUTHORITY.issue(RELAY.hostname), "-----BEGIN PRIVATE KEY-----\nMIGH"),
        "not a PEM key",
    ),
}


def _with_key(issued: Issued, private_key_pem: str) -> Issued:
    return Issued(issued.chain_pem, private_key_pem, issued.not_before, issued.not_after)


@pytest.mark.parametrize("what", SPOILED)
async def test_certificate_that_does_not_hold_together_is_refused(
    liar: Liar, deceived: AsyncGatewayClient, what: str
) -> None:
    make, reason = SPOILED[what]
    liar.ready_with(make().as_certificate(RELAY.hostname))
    with pytest.raises(AnswerInvalid, match=reason) as refused:
        await deceived.get_certificate(RELAY)
    assert "MIGH" not in refused.value.text


def synced(**changes: object) -> Answer:
    wire = {
        "status": "managed-created",
        "hostname": RELAY.hostname,
        "record": ADDRESS.to_wire(),
        "conflictingRecords": [],
        "retryAfterMs": None,
        "message": "The record is published.",
    }
    return response(wire | changes)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (synced(hostname="other.example.test"), "is about other.example.test, which was not"),
        (synced(record=None), "names another record than was sent"),
        (synced(record=ADDRESS.to_wire() | {"value": "192.0.2.1"}), "names another record"),
        (synced(status="managed-maybe"), "status"),
        (synced(hostname="*.example.test"), "hostname"),
        (synced(retryAfterMs="soon"), "retryAfterMs"),
    ],
)
async def test_answer_about_something_else_than_was_asked_is_refused(
    liar: Liar, deceived: AsyncGatewayClient, answer: Answer, reason: str
) -> None:
    liar.answers(answer)
    with pytest.raises(AnswerInvalid, match=reason):
        await deceived.sync_dns_record(RELAY, ADDRESS)


async def test_record_that_was_published_is_not_answered_as_withdrawn(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    liar.answers(synced(status="managed-deleted"))
    with pytest.raises(AnswerInvalid, match="is managed-deleted, which was not asked for"):
        await deceived.sync_dns_record(RELAY, ADDRESS)


@pytest.mark.parametrize("record", [None, ADDRESS.to_wire()])
async def test_record_that_was_withdrawn_is_not_answered_as_published(
    liar: Liar, deceived: AsyncGatewayClient, record: object
) -> None:
    liar.answers(synced(record=record))
    with pytest.raises(AnswerInvalid, match="is managed-created, which was not asked for"):
        await deceived.delete_dns_record(RELAY)


CREDENTIAL = {"credentialId": "c7f3", "createdAt": 1_795_000_000_000, "expiresAt": None}


def provisioned(**changes: object) -> Answer:
    client = {
        "clientId": "cluster-a",
        "clientType": "relay",
        "policyGeneration": 1,
        "hostnamePatterns": [],
        "allowedDnsRecordAddresses": [],
        "capabilities": [],
    }
    return response({"client": client, "credential": CREDENTIAL, "apiToken": TOKEN} | changes)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (provisioned(apiToken=None), "apiToken"),
        (provisioned(credential=None), "credential"),
        *(
            (provisioned(apiToken=token), "not one word of printable ASCII")
            for token in ("", "gwc_a gwc_b", "gwc_a\n", "gwc_\x1b[2J", "gwc_ü")
        ),
    ],
)
async def test_rotation_without_a_token_that_can_be_used_is_refused(
    liar: Liar, deceived: AsyncGatewayClient, answer: Answer, reason: str
) -> None:
    liar.answers(answer)
    with pytest.raises(AnswerInvalid, match=reason) as refused:
        await deceived.rotate_credential("cluster-a")
    assert "gwc_" not in refused.value.text


async def test_answer_about_another_client_is_refused(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    liar.answers(provisioned())
    with pytest.raises(AnswerInvalid, match="is about the client cluster-a, which was not asked"):
        await deceived.rotate_credential("cluster-b")


async def test_token_that_was_not_asked_for_is_refused(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    liar.answers(provisioned())
    with pytest.raises(AnswerInvalid, match="to revoke has a token") as refused:
        await deceived.revoke_credentials("cluster-a")
    assert TOKEN not in refused.value.text


async def test_token_without_its_credential_is_refused(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    liar.answers(provisioned(credential=None))
    spec = {"clientId": "cluster-a", "clientType": "relay", "hostnamePatterns": []}
    with pytest.raises(AnswerInvalid, match="has a token without its credential"):
        await deceived.ensure_client(spec | {"capabilities": []})


async def test_call_goes_out_as_the_contract_has_it(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    liar.answers(synced())
    await deceived.sync_dns_record(RELAY, ADDRESS)
    (sent,) = liar.requests
    assert (sent.method, sent.path) == ("POST", "/typedrequest")
    assert sent.headers["content-type"] == "application/json"
    envelope = json.loads(sent.body)
    assert envelope == {
        "method": "syncGatewayClientDnsRecord",
        "request": {
            "apiToken": TOKEN,
            "ownership": {"appId": "relay", "hostname": "relay.example.test"},
            "record": {"type": "A", "value": "198.51.100.5", "ttl": 60},
        },
        "response": None,
        "correlation": {"id": envelope["correlation"]["id"], "phase": "request"},
    }
    assert TOKEN not in str(sent.headers)


VIOLATING: dict[str, Callable[[AsyncGatewayClient], object]] = {
    "ownership": lambda client: client.get_certificate({"appId": "", "hostname": "A"}),
    "no object": lambda client: client.release_certificate(None),  # type: ignore[arg-type]
    "record": lambda client: client.sync_dns_record(RELAY, {"type": "A", "value": "::1"}),
    "withdrawal": lambda client: client.delete_dns_record({"appId": "relay"}),
    "spec": lambda client: client.ensure_client({"clientId": "a b"}),
    "client": lambda client: client.revoke_credentials(""),
    "overlap": lambda client: client.rotate_credential("a", overlap_seconds=-1),
    "flag": lambda client: client.remove_client("a", release_holdings=1),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", VIOLATING)
async def test_violation_is_refused_before_anything_is_sent(
    liar: Liar, deceived: AsyncGatewayClient, what: str
) -> None:
    with pytest.raises(RequestInvalid):
        await VIOLATING[what](deceived)  # type: ignore[misc]
    assert not liar.connections


async def test_violations_are_told_all_at_once(deceived: AsyncGatewayClient) -> None:
    with pytest.raises(RequestInvalid) as refused:
        await deceived.sync_dns_record(
            {"appId": "", "hostname": "Relay.example.test"}, {"type": "A", "value": "x", "ttl": 1}
        )
    assert sorted(violation.split(" ")[0] for violation in refused.value.violations) == [
        *("ownership.appId", "ownership.hostname", "record.ttl", "record.value")
    ]
