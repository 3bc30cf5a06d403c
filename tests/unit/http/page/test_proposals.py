"""What an action on a hostname is told to do, and where it is told that it can't be done."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gateway.certificates.states import Issuance, Reason, State, StoredCertificate
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.holdings.as_seen import mark_of
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.http.page.fields import Fields
from gateway.http.page.proposals import Act, proposal
from gateway.store.documents import Document, Holder

if TYPE_CHECKING:
    from gateway.http.page.confirmations import Confirmation

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
NAME = Hostname("www.example.com")
HOLDER = Holder(ClientId("cluster-a"), AppId("relay"))
RECORD = {"type": "A", "value": "198.51.100.7", "ttl": 300, "published": True, "edition": "e"}
CLAIM = {"sinceMs": NOW_MS, "note": "the web team's"}
STORED = StoredCertificate(
    issuance_id="issuance-0",
    chain_pem="pem",
    sealed_key="sealed",
    valid_from_ms=NOW_MS - HOUR_MS,
    valid_until_ms=NOW_MS + 3 * HOUR_MS,
    renew_at_ms=NOW_MS + HOUR_MS,
    renew_after_ms=NOW_MS + HOUR_MS,
    share_at_ms=NOW_MS + HOUR_MS,
    serial="0a",
    issuer="CN=ca",
    directory_url="https://ca.example/dir",
    ask_at_ms=NOW_MS,
)
CERTIFICATE = STORED.to_json()


def issuance(state: State) -> dict[str, object]:
    return Issuance(
        "issuance-1",
        state,
        NOW_MS,
        NOW_MS,
        NOW_MS,
        reason=Reason.ISSUANCE_FAILED if state is State.FAILED else None,
        message="The CA said <b>no</b>." if state is State.FAILED else None,
    ).to_json()


FREE = Document(NAME)
HELD = Document(NAME, holder=HOLDER, record=RECORD, certificate=CERTIFICATE)
RECORD_ONLY = replace(HELD, certificate=None)
CERTIFICATE_ONLY = replace(HELD, record=None)
FAILED = replace(CERTIFICATE_ONLY, certificate=None, issuance=issuance(State.FAILED))
UNDER_WAY = replace(FAILED, issuance=issuance(State.PUBLISHED))
CLAIMED = Document(NAME, claim=CLAIM)
OWN = replace(CERTIFICATE_ONLY, holder=THE_GATEWAY)


def asked(act: Act, document: Document) -> Confirmation:
    return proposal(act, document, NOW_MS)


@pytest.mark.parametrize(
    ("act", "document"),
    [
        (Act.RETRY, FAILED),
        (Act.RETRY, replace(FAILED, issuance=issuance(State.WAITING))),
        (Act.RENEW, HELD),
        (Act.RENEW, OWN),
        (Act.RELEASE, HELD),
        (Act.RELEASE, UNDER_WAY),
        (Act.WITHDRAW, RECORD_ONLY),
        (Act.CLAIM, FREE),
        (Act.CLAIM, CLAIMED),
        (Act.CLAIM, OWN),
        (Act.UNCLAIM, CLAIMED),
    ],
)
def test_what_can_be_done_has_a_form(act: Act, document: Document) -> None:
    found = asked(act, document)
    assert found.refusal is None
    assert found.shown().status == 200
    assert all(sentence.endswith(".") for sentence in found.would)


@pytest.mark.parametrize(
    ("act", "document", "why"),
    [
        (Act.RETRY, FREE, "Nobody holds www.example.com."),
        (Act.RETRY, RECORD_ONLY, "Nothing is issued or under way for www.example.com."),
        (Act.RETRY, UNDER_WAY, "is under way already, in the state published."),
        (Act.RETRY, HELD, "has a certificate whose renewal is due at "),
        (Act.RENEW, UNDER_WAY, "is under way already"),
        (Act.RELEASE, RECORD_ONLY, "There is no certificate to release at www.example.com."),
        (Act.RELEASE, OWN, "`gateway holdings give-up www.example.com`"),
        (Act.RELEASE, CLAIMED, "Nobody holds www.example.com."),
        (Act.WITHDRAW, CERTIFICATE_ONLY, "There is no record to withdraw at www.example.com."),
        (Act.WITHDRAW, OWN, "is the gateway's own"),
        (Act.CLAIM, HELD, "www.example.com is held by a client; release it first."),
        (Act.UNCLAIM, FREE, "There is no claim on www.example.com."),
    ],
)
def test_what_cannot_be_done_says_why_and_has_no_form(
    act: Act, document: Document, why: str
) -> None:
    found = asked(act, document)
    assert why in (found.refusal or "")
    assert found.shown().status == 409


def test_release_of_an_issuance_is_not_called_that_of_a_certificate() -> None:
    found = asked(Act.RELEASE, FAILED)
    assert (found.title, found.button) == (
        "Give up the issuance for www.example.com",
        "Give up the issuance",
    )


def test_renewal_that_is_due_can_be_tried_now() -> None:
    due = replace(STORED, renew_at_ms=NOW_MS - 1).to_json()
    assert asked(Act.RETRY, replace(HELD, certificate=due)).refusal is None


def test_facts_tell_what_is_there() -> None:
    told = dict(asked(Act.RELEASE, replace(HELD, issuance=issuance(State.FAILED))).facts)
    assert told["Held by"] == "cluster-a for relay"
    assert told["Record"] == "A 198.51.100.7, TTL 300 s"
    assert told["Certificate"].startswith("valid until ")
    assert told["Issuance"] == "failed: The CA said <b>no</b>."
    intent = replace(HELD, record={**RECORD, "published": False})
    assert dict(asked(Act.WITHDRAW, intent).facts)["Record"].endswith("not yet published")
    assert dict(asked(Act.UNCLAIM, CLAIMED).facts) == {
        "Held by": "nobody",
        "Claim": "the web team's",
    }


def test_what_stays_is_told() -> None:
    assert "The record stays" in " ".join(asked(Act.RELEASE, HELD).would)
    assert "The certificate stays" in " ".join(asked(Act.WITHDRAW, HELD).would)
    for act, document in ((Act.RELEASE, CERTIFICATE_ONLY), (Act.WITHDRAW, RECORD_ONLY)):
        assert "Nothing else holds the hostname" in " ".join(asked(act, document).would)


def test_only_what_takes_something_is_grave() -> None:
    grave = {act for act in Act if asked(act, HELD).is_grave}
    assert grave == {Act.RELEASE, Act.WITHDRAW}


def test_note_of_a_claim_stands_in_its_field() -> None:
    (note,) = asked(Act.CLAIM, CLAIMED).fields
    assert note.value == "the web team's"
    assert "only the note" in " ".join(asked(Act.CLAIM, CLAIMED).would)


@pytest.mark.parametrize(
    "changed",
    [
        replace(HELD, holder=Holder(ClientId("cluster-b"), AppId("relay"))),
        replace(HELD, holder=Holder(ClientId("cluster-a"), AppId("other"))),
        replace(HELD, holder=None),
        replace(HELD, record=None),
        replace(HELD, record={**RECORD, "value": "198.51.100.8"}),
        replace(HELD, certificate=None),
        replace(HELD, certificate={**CERTIFICATE, "issuance_id": "another"}),
        replace(HELD, issuance=issuance(State.REQUESTED)),
        replace(HELD, claim=CLAIM),
    ],
)
def test_form_for_what_is_there_no_more_is_not_carried_out(changed: Document) -> None:
    form = Fields([("seen", asked(Act.RELEASE, HELD).seen)])
    assert asked(Act.RELEASE, HELD).stale(form) is None
    stale = asked(Act.RELEASE, changed).stale(form)
    assert stale is not None
    assert stale.status == 409


def test_mark_is_the_same_while_a_worker_goes_on() -> None:
    on = {**issuance(State.PROPAGATED), "due_at_ms": NOW_MS + HOUR_MS}
    assert mark_of(replace(UNDER_WAY, version="2", issuance=on)) == mark_of(UNDER_WAY)
    renewed = {**CERTIFICATE, "renew_at_ms": NOW_MS + HOUR_MS}
    assert mark_of(replace(HELD, certificate=renewed)) == mark_of(HELD)
    repeated = {**RECORD, "ttl": 60, "edition": "another"}
    assert mark_of(replace(HELD, record=repeated)) == mark_of(HELD)


def test_form_without_a_mark_is_not_carried_out() -> None:
    assert asked(Act.RELEASE, HELD).stale(Fields()) is not None
