"""What of a document is sealed under which key, and what moves it to the first one."""

from dataclasses import replace

import pytest

from gateway.certificates.binding import KEY_PURPOSE, key_binding
from gateway.certificates.sealing import Keyring, SealBroken, key_id_of
from gateway.certificates.seals import Found, Thing, look_at_document, move_document
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store.documents import Document, Holder, Lease

NEW, OLD, LOST = (("new", b"n" * 32), ("old", b"o" * 32), ("lost", b"l" * 32))
RING = Keyring([NEW, OLD])
NOW_MS = 1_700_000_000_000
HOSTNAME = Hostname("a.example")
HOLDER = Holder(ClientId("client"), AppId("app"))
BINDING = key_binding(HOLDER, HOSTNAME)


def sealed(key: tuple[str, bytes], plaintext: bytes = b"pem") -> str:
    return Keyring([key]).seal(plaintext, purpose=KEY_PURPOSE, bound_to=BINDING)


def document(
    certificate: str | None = None, issuance: str | None = None, lease: Lease | None = None
) -> Document:
    return Document(
        HOSTNAME,
        version="1",
        holder=HOLDER,
        certificate=certificate and {"sealed_key": certificate, "serial": "01"},
        issuance=issuance and {"sealed_key": issuance, "state": "ordered"},
        lease=lease,
        fence=7,
    )


def keys_in(fields: object) -> dict[str, str]:
    assert isinstance(fields, dict)
    return {name: key_id_of(part["sealed_key"]) for name, part in fields.items() if part}


def test_both_keys_of_a_document_move_in_one_change() -> None:
    change, found = move_document(document(sealed(OLD), sealed(OLD)), RING, NOW_MS)
    assert found == Found(things=((Thing.PRIVATE_KEY, "old"),) * 2)
    assert change is not None
    assert not change.touches_due
    assert keys_in(change.fields) == {"certificate": "new", "issuance": "new"}


def test_moved_key_is_the_same_and_the_rest_stays() -> None:
    change, _ = move_document(document(sealed(OLD, b"the key")), RING, NOW_MS)
    assert change is not None
    certificate = change.fields["certificate"]
    assert isinstance(certificate, dict)
    assert certificate["serial"] == "01"
    alone = Keyring([NEW])
    plaintext = alone.open(certificate["sealed_key"], purpose=KEY_PURPOSE, bound_to=BINDING)
    assert plaintext == b"the key"


@pytest.mark.parametrize(
    "right",
    [document(), document(sealed(NEW)), document(sealed(NEW), sealed(NEW)), Document(HOSTNAME)],
)
def test_document_without_an_old_key_stays(right: Document) -> None:
    assert move_document(right, RING, NOW_MS) == (None, Found())


def test_issuance_that_has_no_key_yet_stays_out_of_it() -> None:
    before = replace(document(sealed(OLD)), issuance={"state": "requested"})
    change, _ = move_document(before, RING, NOW_MS)
    assert change is not None
    assert set(change.fields) == {"certificate"}


def test_document_that_a_worker_has_waits() -> None:
    """Its issuance lies in the worker's memory, and comes back with the key it had."""
    leased = document(issuance=sealed(OLD), lease=Lease("worker", 7, NOW_MS + 1))
    assert move_document(leased, RING, NOW_MS) == (None, Found(is_busy=True))


def test_lease_that_has_lapsed_is_taken_away() -> None:
    lapsed = document(issuance=sealed(OLD), lease=Lease("worker", 7, NOW_MS))
    change, _ = move_document(lapsed, RING, NOW_MS)
    assert change is not None
    assert change.fields["lease"] is None


def test_key_that_is_not_in_the_keyring_is_a_failure_that_names_it() -> None:
    change, found = move_document(document(sealed(LOST)), RING, NOW_MS)
    assert change is None
    assert [text for text in found.failures if HOSTNAME in text and "under lost" in text]
    assert found.unopened == ()


def test_key_that_was_moved_here_is_told_and_does_not_stop_the_other() -> None:
    foreign = Keyring([OLD]).seal(b"pem", purpose=KEY_PURPOSE, bound_to=("other", "app", "b"))
    change, found = move_document(document(foreign, sealed(OLD)), RING, NOW_MS)
    assert change is not None
    assert keys_in(change.fields) == {"issuance": "new"}
    assert [text for text in found.unopened if "certificate" in text]
    assert found.failures == ()


def test_foreign_key_under_the_first_key_is_told_as_well() -> None:
    foreign = RING.seal(b"pem", purpose=KEY_PURPOSE, bound_to=("other", "app", "b"))
    assert look_at_document(document(foreign), RING).unopened


def test_nothing_that_is_told_holds_a_key() -> None:
    secret = sealed(LOST, b"the key")
    _, found = move_document(document(secret), RING, NOW_MS)
    assert secret not in repr(found)


def test_resealing_binds_to_the_same_holder() -> None:
    change, _ = move_document(document(sealed(OLD)), RING, NOW_MS)
    assert change is not None
    certificate = change.fields["certificate"]
    assert isinstance(certificate, dict)
    with pytest.raises(SealBroken):
        RING.open(certificate["sealed_key"], purpose=KEY_PURPOSE, bound_to=("x", "app", "a"))
