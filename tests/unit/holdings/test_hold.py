"""Who holds a hostname, judged from its document."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.certificates.states import Issuance, State
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.holdings.hold import Hold, given_up, hold_for, is_established, without_certificate
from gateway.store.documents import Document, Holder

ME = Holder(ClientId("client"), AppId("app"))
OTHER_APP = Holder(ClientId("client"), AppId("other"))
FREE = Document(Hostname("a.example"))
MINE = replace(FREE, holder=ME)


@pytest.mark.parametrize(
    ("document", "hold"),
    [
        (FREE, Hold.FREE),
        (MINE, Hold.MINE),
        (replace(FREE, holder=OTHER_APP), Hold.ANOTHERS),
        (replace(FREE, claim={"sinceMs": 1, "note": ""}), Hold.CLAIMED),
        (replace(MINE, claim={"sinceMs": 1, "note": ""}), Hold.CLAIMED),
    ],
)
def test_hold_is_told_from_claim_and_holder(document: Document, hold: Hold) -> None:
    assert hold_for(document, ME) is hold
    assert hold.is_conflict == (hold in {Hold.CLAIMED, Hold.ANOTHERS})


@pytest.mark.parametrize(
    ("document", "established"),
    [
        (FREE, False),
        (replace(FREE, certificate={"a": 1}), False),
        (replace(MINE, record={"published": False}), False),
        (replace(MINE, record={"published": True}), True),
        (replace(MINE, certificate={"a": 1}), True),
        (replace(MINE, issuance={"a": 1}), True),
    ],
)
def test_hold_is_established_by_what_was_judged_or_published(
    document: Document, established: bool
) -> None:
    assert is_established(document, ME) is established


def test_holder_goes_with_the_last_of_record_certificate_and_issuance() -> None:
    both = replace(MINE, record={"published": True}, certificate={"a": 1})
    assert given_up(both, {"record": None}) == {"record": None}
    assert given_up(both, {"certificate": None}) == {"certificate": None}
    last = replace(MINE, record={"published": True})
    assert given_up(last, {"record": None}) == {"record": None, "holder": None}


ORDERED = Issuance("i", State.ORDERED, 1, 1, 1, order_url="https://ca.example/order/1").to_json()


def test_order_of_an_issuance_that_is_given_up_is_owed_at_once() -> None:
    change = without_certificate(replace(MINE, issuance=ORDERED), 7)
    assert change.fields["holder"] is None
    assert change.fields["debts"][0]["url"] == "https://ca.example/order/1"  # type: ignore[index]
    assert (change.due_ms, change.touches_due) == (7, True)


def test_record_stays_with_its_holder_unless_it_is_given_up_too() -> None:
    document = replace(MINE, record={"published": True}, certificate={"a": 1})
    assert "holder" not in without_certificate(document, 7).fields
    assert without_certificate(document, 7, {"record": None}).fields["holder"] is None
