"""Which conflicts are over, by the hostname's document and by what the trail has had since."""

from typing import Any

import pytest

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.http.page.conflicts import Conflict, Conflicts, conflicts_of
from gateway.store.documents import Document, Holder, Unreadable
from gateway.store.trail_reading import Told

NAME = Hostname("a.example.test")
ASKER = Holder(ClientId("cluster-a"), AppId("relay"))
OTHER = Holder(ClientId("cluster-b"), AppId("relay"))


def entry(at: int, what: str, outcome: str, who: Holder = ASKER, **more: Any) -> Told:
    return Told(
        f"{at}-0",
        at,
        {
            "at": at,
            "who": "client",
            "ofClient": who.client_id,
            "what": what,
            "outcome": outcome,
            "hostname": NAME,
            "clientId": who.client_id,
            "appId": who.app_id,
            **more,
        },
    )


IN_ZONE = entry(5, "record-sync", "record-conflict", after="A 192.0.2.1 300")
AT_REQUEST = entry(5, "certificate-request", "hostname-conflict")


def document(holder: Holder | None = None, **fields: Any) -> Document:
    return Document(NAME, version="v", holder=holder, **fields)


def left(conflict: Told, found: Document | Unreadable, *later: Told) -> list[Conflict]:
    return conflicts_of([conflict], [found], [*later, conflict])


def test_conflict_says_who_wanted_what_and_what_came_of_it() -> None:
    (told,) = left(IN_ZONE, document())
    assert (told.hostname, told.at_ms, told.is_claim) == (NAME, 5, False)
    assert (
        "cluster-a for relay: record-sync, wanted A 192.0.2.1, TTL 300 s, record-conflict"
        in told.why
    )


@pytest.mark.parametrize(
    ("what", "outcome"),
    [
        ("record-sync", "managed-created"),
        ("record-sync", "managed-updated"),
        ("record-sync", "managed-unchanged"),
        ("record-sync", "managed-deleted"),
        ("certificate-request", "begun"),
        ("certificate-issued", "issued"),
        ("hand-over", "handed-over"),
    ],
)
def test_conflict_is_over_once_its_asker_got_something(what: str, outcome: str) -> None:
    assert left(IN_ZONE, document(ASKER), entry(6, what, outcome)) == []
    assert left(IN_ZONE, document(), entry(4, what, outcome)) != []
    assert left(IN_ZONE, document(OTHER), entry(6, what, outcome, OTHER)) != []


@pytest.mark.parametrize(
    ("what", "outcome"),
    [
        ("claim-remove", "removed"),
        ("forget", "forgotten"),
        ("certificate-release", "released"),
        ("record-sync", "managed-deleted"),
    ],
)
def test_conflict_is_over_once_nobody_holds_the_hostname_any_more(what: str, outcome: str) -> None:
    given_up = entry(6, what, outcome, OTHER)
    assert left(IN_ZONE, document(), given_up) == []
    assert left(IN_ZONE, document(OTHER), given_up) != []


def test_conflict_over_a_certificate_is_over_once_its_asker_has_one_or_waits_for_it() -> None:
    assert left(AT_REQUEST, document(ASKER, certificate={"serial": "1"})) == []
    assert left(AT_REQUEST, document(ASKER, issuance={"state": "ordered"})) == []
    assert left(AT_REQUEST, document(OTHER, certificate={"serial": "1"})) != []


def test_record_that_is_remembered_does_not_end_a_conflict_in_the_zone() -> None:
    assert left(IN_ZONE, document(ASKER, record={"published": True})) != []


def test_conflict_with_a_claim_is_told_as_a_claim() -> None:
    (told,) = left(IN_ZONE, document(claim={"sinceMs": 1, "note": ""}), AT_REQUEST)
    assert told.is_claim
    assert told.why.startswith("cluster-a for relay asked for it")


def test_conflict_of_a_hostname_that_cannot_be_read_stays() -> None:
    assert left(IN_ZONE, Unreadable(NAME)) != []


def test_claims_alone_are_quiet_and_what_is_not_known_is_not() -> None:
    claim, live = Conflict(NAME, 5, "", is_claim=True), Conflict(NAME, 5, "")
    assert Conflicts((claim,)).are_quiet
    assert not Conflicts((claim, live)).are_quiet
    assert not Conflicts((), is_cut=True).are_quiet
