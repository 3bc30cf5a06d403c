"""All that Redis tells of one hostname, as the page shows it."""

from dataclasses import replace
from typing import Any

import pytest
from cryptography import x509

from gateway.certificates.keys import KeyType, new_private_key
from gateway.certificates.states import Reason, State
from gateway.contract import DnsRecord
from gateway.contract.names import Hostname
from gateway.store.documents import Document, Lease, Unreadable
from gateway.views.hostname import ClaimView, RecordView, hostname_view
from gateway.views.stages import Status
from tests.unit.certificates.issuing import new_root, pem
from tests.unit.certificates.test_outlook import (
    CERTIFICATE,
    HOLDER,
    HOUR_MS,
    NAMES,
    NOW_MS,
    RECORD,
    issuance,
)

NAME = Hostname("a.example")
LEAF = new_root().issue(new_private_key(KeyType.ECDSA_P256), [x509.DNSName(NAME)])
STORED = replace(
    CERTIFICATE,
    chain_pem=pem(LEAF),
    valid_from_ms=NOW_MS - HOUR_MS,
    valid_until_ms=NOW_MS + HOUR_MS,
)


def document(**changes: Any) -> Document:
    return replace(Document(NAME, version="1", holder=HOLDER), **changes)


def test_hostname_that_is_only_held_has_no_more_than_its_holder() -> None:
    view = hostname_view(document(), NOW_MS, NAMES)
    assert (view.hostname, view.holder) == (NAME, HOLDER)
    assert (view.record, view.certificate, view.issuance, view.next, view.debts) == (
        *(None,) * 4,
        (),
    )
    assert not view.is_under_way


def test_record_is_told_with_what_the_zone_may_carry_instead() -> None:
    kept = {"type": "A", "value": "192.0.2.1", "ttl": 60, "published": False, "edition": "e"}
    older = {"type": "A", "value": "192.0.2.2", "ttl": 60}
    view = hostname_view(document(record={**kept, "sought": [older]}), NOW_MS, NAMES)
    record, before = (DnsRecord(type="A", value=f"192.0.2.{n}", ttl=60) for n in (1, 2))
    assert view.record == RecordView(record, is_published=False, sought=(before,))


def test_claim_is_told() -> None:
    view = hostname_view(document(claim={"sinceMs": 5, "note": "<b>"}), NOW_MS, NAMES)
    assert view.claim == ClaimView(5, "<b>")


def test_certificate_is_told_with_its_names_and_the_kind_of_its_key() -> None:
    view = hostname_view(document(certificate=STORED.to_json()), NOW_MS, NAMES).certificate
    assert view is not None
    assert (view.names, view.key, view.authority) == ((NAME,), "ECDSA P-256", "ca")
    assert (view.is_valid, view.ask_at_ms) == (True, None)
    assert view.stages == ()


def test_no_key_is_in_a_view_neither_sealed_nor_open() -> None:
    sealed = "SEALED-KEY"
    certificate = replace(STORED, sealed_key=sealed).to_json()
    under_way = issuance(State.ORDERED, sealed_key=sealed).to_json()
    view = hostname_view(document(certificate=certificate, issuance=under_way), NOW_MS, NAMES)
    assert sealed not in repr(view)


def test_certificate_that_cannot_be_parsed_is_told_without_its_names() -> None:
    view = hostname_view(document(certificate=CERTIFICATE.to_json()), NOW_MS, NAMES).certificate
    assert view is not None
    assert (view.serial, view.names, view.key) == ("01", None, None)


@pytest.mark.parametrize(
    ("now_ms", "is_valid"),
    [(NOW_MS - 9 * HOUR_MS, True), (NOW_MS + HOUR_MS - 1, True), (NOW_MS + 9 * HOUR_MS, False)],
)
def test_certificate_is_valid_until_its_end(now_ms: int, is_valid: bool) -> None:
    view = hostname_view(document(certificate=STORED.to_json()), now_ms, NAMES).certificate
    assert view is not None
    assert view.is_valid is is_valid


def test_window_is_told_with_when_it_is_asked_for_again() -> None:
    suggested = replace(STORED, window_ms=(NOW_MS, NOW_MS + 9), ask_at_ms=NOW_MS + 7)
    view = hostname_view(document(certificate=suggested.to_json()), NOW_MS, NAMES).certificate
    assert view is not None
    assert (view.window_ms, view.ask_at_ms) == ((NOW_MS, NOW_MS + 9), NOW_MS + 7)


def test_failed_issuance_is_told_in_the_authoritys_words() -> None:
    failed = issuance(
        State.FAILED,
        reason=Reason.AUTHORITY_REFUSED,
        message="<script>no</script>",
        directory_url=None,
        failed_at="https://ca.example/directory",
        passed_over={"https://gone.example": NOW_MS + 5, "https://back.example": NOW_MS},
        failures=2,
    )
    view = hostname_view(document(issuance=failed.to_json()), NOW_MS, NAMES)
    shown = view.issuance
    assert shown is not None
    assert (shown.reason, shown.message) == ("authority-refused", "<script>no</script>")
    assert (shown.authority, shown.failures) == ("ca", 2)
    assert shown.passed_over == (("https://gone.example", NOW_MS + 5),)
    assert [each.status for each in shown.stages][:2] == [Status.PASSED, Status.FAILED]
    assert not view.is_under_way


def test_what_is_worked_on_is_under_way_and_names_who_does() -> None:
    leased = document(
        issuance=issuance(State.WAITING, resume=State.ORDERED).to_json(),
        lease=Lease("worker", 3, NOW_MS + 1_000),
    )
    view = hostname_view(leased, NOW_MS, NAMES)
    assert (view.worker, view.is_under_way) == ("worker", True)
    assert view.next == "ask ca again how the order stands, in 3 s"
    assert view.next_at_ms == NOW_MS + 3_000


def test_debts_are_told() -> None:
    owing = document(debts=(replace(RECORD, tries=2, due_at_ms=NOW_MS + 5).to_json(),))
    (debt,) = hostname_view(owing, NOW_MS, NAMES).debts
    assert (debt.words, debt.tries, debt.due_at_ms) == (
        "remove the TXT record txt at _acme-challenge.a",
        2,
        NOW_MS + 5,
    )


def test_document_of_a_newer_release_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        hostname_view(document(issuance={"state": "unheard-of"}), NOW_MS, NAMES)
