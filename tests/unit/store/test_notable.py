"""Which deeds are kept apart for an operator, and as what they are counted."""

from __future__ import annotations

from typing import get_args

import pytest

from gateway.access.audit import of_refused_provisioning
from gateway.contract import CertificateRefused, DnsRecord, SyncDnsRecordResponse
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.contract.provisioning import ProvisionAction
from gateway.dns.owner import Owner
from gateway.holdings import deeds
from gateway.store.deeds import Action, Actor, Deed, Role
from gateway.store.notable import Apart, Counted, counted_as, is_conflict, kept_apart

ADMIN = Actor(Role.ADMIN)
CLIENT = Actor(Role.CLIENT, "credential-1", "cluster-a")


@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        (Action.CERTIFICATE_FAILED, "issuance-failed"),
        (Action.CLIENT_REMOVE, "refused"),
        (Action.CLIENT_PROVISION, "forbidden"),
        (Action.CLAIM_ADD, "held-by-client"),
        (Action.HAND_OVER, "refused"),
        (Action.ACCOUNT_REPLACE, "refused"),
        (Action.ENTRIES_LOST, "lost"),
    ],
)
def test_what_a_person_has_to_look_at_is_notable(action: Action, outcome: str) -> None:
    changed = action in {Action.CERTIFICATE_FAILED, Action.ENTRIES_LOST}
    assert kept_apart(ADMIN, Deed(action, outcome, changed=changed)) is Apart.NOTABLE


@pytest.mark.parametrize("actor", [ADMIN, CLIENT], ids=["admin", "client"])
@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        (Action.RECORD_SYNC, "record-conflict"),
        (Action.CERTIFICATE_REQUEST, "hostname-conflict"),
    ],
)
def test_conflict_is_kept_among_conflicts(actor: Actor, action: Action, outcome: str) -> None:
    assert kept_apart(actor, Deed(action, outcome, changed=False)) is Apart.CONFLICT


@pytest.mark.parametrize(
    ("actor", "action", "outcome"),
    [
        (CLIENT, Action.CLIENT_ENSURE, "forbidden"),
        (CLIENT, Action.CLIENT_PROVISION, "refused"),
        (CLIENT, Action.RECORD_SYNC, "mutation-failed"),
        (ADMIN, Action.PAGE_LOGIN, "refused"),
    ],
)
def test_what_anybody_can_have_refused_in_a_loop_pushes_out_nothing(
    actor: Actor, action: Action, outcome: str
) -> None:
    assert kept_apart(actor, Deed(action, outcome, changed=False)) is None


@pytest.mark.parametrize(
    ("action", "outcome", "changed"),
    [
        (Action.RECORD_SYNC, "managed-created", True),
        (Action.RECORD_SYNC, "target-invalid", False),
        (Action.RECORD_SYNC, "zone-unavailable", False),
        (Action.RECORD_SYNC, "hostname-forbidden", False),
        (Action.RECORD_SYNC, "overloaded", False),
        (Action.CERTIFICATE_REQUEST, "begun", True),
        (Action.CERTIFICATE_REQUEST, "issuance-failed", False),
        (Action.CERTIFICATE_ISSUED, "issued", True),
        (Action.CLIENT_REVOKE, "changed", True),
        (Action.CLAIM_ADD, "claimed", True),
    ],
)
def test_what_was_done_or_passes_by_itself_is_not(
    action: Action, outcome: str, changed: bool
) -> None:
    assert kept_apart(ADMIN, Deed(action, outcome, changed=changed)) is None


def test_what_the_layers_above_tell_of_refusals_is_notable() -> None:
    """The words are theirs, and the rule has them once more."""
    owner = Owner(ClientId("cluster-a"), AppId("relay"), Hostname("relay.example.com"))
    record = DnsRecord.of("198.51.100.5")
    in_the_way = SyncDnsRecordResponse(
        status="record-conflict", hostname=owner.hostname, conflicting_records=(), message=""
    )
    held = CertificateRefused(reason="hostname-conflict", message="")
    told = [
        deeds.of_sync(owner, in_the_way, wanted=record),
        deeds.of_request(owner, held),
        deeds.of_refused_claim(owner.hostname),
        deeds.of_refused_command(Action.FORGET, owner.hostname, "why"),
        *(
            of_refused_provisioning(each, owner.client_id, "why")
            for each in get_args(ProvisionAction)
        ),
    ]
    assert [kept_apart(ADMIN, each) for each in told] == [
        *(Apart.CONFLICT, Apart.CONFLICT),
        *[Apart.NOTABLE] * (len(told) - 2),
    ]
    assert [counted_as(each) for each in told[:3]] == [Counted.CONFLICT, Counted.CONFLICT, None]


def test_each_sort_of_issuance_and_each_conflict_is_counted() -> None:
    assert {
        (action, outcome): counted_as(Deed(action, outcome))
        for action, outcome in [
            (Action.CERTIFICATE_ISSUED, "issued"),
            (Action.CERTIFICATE_RENEWED, "issued"),
            (Action.CERTIFICATE_FAILED, "rate-limited"),
            (Action.RECORD_SYNC, "record-conflict"),
            (Action.CERTIFICATE_REQUEST, "hostname-conflict"),
            (Action.CERTIFICATE_REQUEST, "begun"),
            (Action.RECORD_SYNC, "managed-created"),
        ]
    } == {
        (Action.CERTIFICATE_ISSUED, "issued"): Counted.ISSUED,
        (Action.CERTIFICATE_RENEWED, "issued"): Counted.RENEWED,
        (Action.CERTIFICATE_FAILED, "rate-limited"): Counted.FAILED,
        (Action.RECORD_SYNC, "record-conflict"): Counted.CONFLICT,
        (Action.CERTIFICATE_REQUEST, "hostname-conflict"): Counted.CONFLICT,
        (Action.CERTIFICATE_REQUEST, "begun"): None,
        (Action.RECORD_SYNC, "managed-created"): None,
    }


def test_conflict_is_told_by_an_entrys_own_words() -> None:
    assert is_conflict("record-sync", "record-conflict")
    assert not is_conflict("certificate-request", "record-conflict")
    assert not is_conflict("a later action", "record-conflict")
