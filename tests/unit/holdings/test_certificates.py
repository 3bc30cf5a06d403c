"""Beginning an issuance, judged from the document as it is when it is begun."""

from __future__ import annotations

from dataclasses import replace

from gateway.certificates import machine
from gateway.certificates.moves import Moment
from gateway.certificates.states import StoredCertificate
from gateway.contract.names import Hostname
from gateway.holdings.certificates import begun
from gateway.store.documents import Change, Document

NOW_MS = 1_000_000
FREE = Document(Hostname("a.example"))
ISSUANCE = machine.request("new", Moment(NOW_MS, 0))


def certificate(valid_until_ms: int) -> dict[str, object]:
    return StoredCertificate(
        "old", "chain", "key", 0, valid_until_ms, 1, 2, 1, "1", "ca", "d", 3
    ).to_json()


def test_issuance_begins_and_is_due_at_once() -> None:
    change = begun(FREE, ISSUANCE, None)
    assert change == Change({"issuance": ISSUANCE.to_json()}, NOW_MS, touches_due=True)


def test_issuance_under_way_is_left_alone() -> None:
    other = machine.request("other", Moment(NOW_MS - 5, 0))
    assert begun(replace(FREE, issuance=other.to_json()), ISSUANCE, None) == Change()


def test_certificate_that_came_meanwhile_is_left_alone() -> None:
    document = replace(FREE, certificate=certificate(NOW_MS + 1))
    assert begun(document, ISSUANCE, None) == Change()


def test_expired_certificate_is_replaced() -> None:
    document = replace(FREE, certificate=certificate(NOW_MS))
    assert begun(document, ISSUANCE, None).fields == {"issuance": ISSUANCE.to_json()}


def test_certificate_that_cannot_be_handed_out_is_replaced() -> None:
    document = replace(FREE, certificate=certificate(NOW_MS + 1))
    assert begun(document, ISSUANCE, "old").fields == {"issuance": ISSUANCE.to_json()}
    assert begun(document, ISSUANCE, "older") == Change()
