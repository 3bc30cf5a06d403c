"""Who holds a hostname, judged from its document."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.holdings.hold import Hold, given_up, hold_for, is_established
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
