"""Certificates that are handed out: which are taken, and what is said of the others.

No real gateway hands out any of the bad ones, so they are made here.
"""

import re
from base64 import encodebytes
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from hypothesis import example, given, settings, strategies as st

from gateway.client import AnswerInvalid, Bundle, judge_certificate, read_bundle
from tests.lab.certificates import Issued, LabAuthority, key_pem, new_key
from tests.unit.client.forging import (
    certificate_of_version,
    with_date_of_year_zero,
    with_names,
    with_repeated_names,
)

HOSTNAME = "relay.example.test"
BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
END = datetime(2026, 5, 30, 12, tzinfo=UTC)
NOW = datetime(2026, 4, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)

AUTHORITY = LabAuthority()
RSA_KEY = rsa.generate_private_key(65537, 2048)
KEY = new_key()


def issued(hostname: str = HOSTNAME, **changes: Any) -> Issued:
    given = {"not_before": BEGIN, "not_after": END, "key": KEY, **changes}
    return AUTHORITY.issue(hostname, **given)


def _good() -> tuple[Issued, str, x509.Certificate]:
    """A good certificate, its leaf as PEM and read, whose signature ends in a bit that is set.

    Where it ends in a zero, DER may as well count that bit as unused: two spellings of one
    certificate, of which neither is damaged. Every other signature is such, by chance.
    """
    while True:
        good = issued(serial=4711)
        leaf_pem = good.chain_pem.removesuffix(AUTHORITY.intermediate_pem)
        leaf = x509.load_pem_x509_certificate(leaf_pem.encode())
        if leaf.signature[-1] & 1:
            return good, leaf_pem, leaf


GOOD, LEAF_PEM, LEAF = _good()
ENDLESS = x509.load_pem_x509_certificate(
    issued(not_after=END.replace(year=2050)).chain_pem.encode()
)


def judged(chain: Issued, hostname: str = HOSTNAME, now: datetime = NOW) -> Bundle:
    return judge_certificate(chain.as_certificate(HOSTNAME), hostname, now)


def chained(*parts: str) -> Issued:
    return replace(GOOD, chain_pem="".join(parts))


def keyed(private_key_pem: str) -> Issued:
    return replace(GOOD, private_key_pem=private_key_pem)


def forged(der: bytes) -> Issued:
    return chained(x509_pem(der), AUTHORITY.intermediate_pem)


def x509_pem(der: bytes) -> str:
    # Not by cryptography: it would have to read the certificate first.
    body = encodebytes(der).decode()
    return f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n"


def test_good_certificate_is_taken_with_what_it_says() -> None:
    bundle = judged(GOOD)
    assert bundle == Bundle(
        hostname=HOSTNAME,
        leaf_pem=LEAF_PEM,
        chain_pem=GOOD.chain_pem,
        private_key_pem=GOOD.private_key_pem,
        not_before=BEGIN,
        not_after=END,
        serial_number=4711,
        fingerprint=LEAF.fingerprint(hashes.SHA256()).hex(),
    )


def test_rsa_certificate_is_taken() -> None:
    assert judged(issued(key=RSA_KEY)).private_key_pem == key_pem(RSA_KEY)


def test_leaf_alone_is_taken() -> None:
    assert judged(chained(LEAF_PEM)).chain_pem == LEAF_PEM


@pytest.mark.parametrize("now", [BEGIN, END])
def test_first_and_last_second_are_within_the_dates(now: datetime) -> None:
    assert judged(GOOD, now=now).is_valid_at(now)


@pytest.mark.parametrize("now", [BEGIN - SECOND, END + SECOND])
def test_bundle_tells_when_its_dates_are_over(now: datetime) -> None:
    assert not judged(GOOD).is_valid_at(now)


def test_bundle_never_shows_its_key() -> None:
    assert "PRIVATE" not in repr(judged(GOOD))


def test_what_stands_beside_the_pem_is_not_kept() -> None:
    chain = f"first\n{LEAF_PEM}between\n{AUTHORITY.intermediate_pem}junk"
    key = f"first\n{GOOD.private_key_pem}junk"
    bundle = judged(replace(GOOD, chain_pem=chain, private_key_pem=key))
    assert (bundle.chain_pem, bundle.private_key_pem) == (GOOD.chain_pem, GOOD.private_key_pem)


def test_key_in_another_form_is_kept_as_pkcs8() -> None:
    sec1 = KEY.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    assert judged(keyed(sec1.decode())).private_key_pem == GOOD.private_key_pem


LOCKED = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))

BAD: dict[str, tuple[Callable[[], Issued], str]] = {
    "another name": (
        lambda: issued("other.example.test"),
        "is for other.example.test, not for relay.example.test alone",
    ),
    "two names": (
        lambda: issued(names=(HOSTNAME, "other.example.test")),
        "is for relay.example.test, other.example.test, not for",
    ),
    "the same name twice": (lambda: issued(names=(HOSTNAME, HOSTNAME)), "not for"),
    "a wildcard": (
        lambda: issued(names=("*.example.test",)),
        r"is for \*.example.test, not for relay.example.test",
    ),
    "another case": (lambda: issued(names=("Relay.example.test",)), "is for Relay.example.test"),
    "no name": (lambda: issued(names=()), "is for nothing, not for relay.example.test"),
    "a thousand names": (
        lambda: issued(names=tuple(f"{n}.example.test" for n in range(1000))),
        "is for 0.example.test, 1.example.test, 2.example.test, 3.example.test, not",
    ),
    "a name that is no host's": (
        lambda: forged(with_names(LEAF, KEY, [x509.RFC822Name(HOSTNAME)])),
        "is for relay.example.test, not for relay.example.test alone",
    ),
    "a name that would clear the terminal": (
        lambda: forged(with_names(LEAF, KEY, [x509.DNSName("a\x1b[2J.example.test")])),
        r"is for a\\x1b\[2J.example.test, not",
    ),
    "names twice": (lambda: forged(with_repeated_names(LEAF, KEY)), "extensions cannot be read"),
    "a version that nobody knows": (
        lambda: forged(certificate_of_version(LEAF, 4)),
        "chain is not PEM of certificates",
    ),
    "a date that no calendar has": (
        lambda: chained(x509_pem(with_date_of_year_zero(ENDLESS))),
        "dates cannot be read",
    ),
    "another key": (
        lambda: keyed(key_pem(new_key())),
        "private key does not fit the certificate of relay.example.test",
    ),
    "a key of another kind": (lambda: keyed(key_pem(RSA_KEY)), "private key does not fit"),
    "an EC key for an RSA certificate": (
        lambda: replace(issued(key=RSA_KEY), private_key_pem=GOOD.private_key_pem),
        "private key does not fit",
    ),
    "a locked key": (lambda: keyed(LOCKED.decode()), "not a PEM key without a password"),
    "no key": (lambda: keyed(""), "not a PEM key"),
    "garbage for a key": (lambda: keyed("\0garbage \ud800"), "not a PEM key"),
    "a certificate for a key": (lambda: keyed(LEAF_PEM), "not a PEM key"),
    "half a key": (lambda: keyed(GOOD.private_key_pem[:100]), "not a PEM key"),
    "no chain": (lambda: chained(), "chain is not PEM of certificates"),
    "garbage for a chain": (lambda: chained("\0garbage \ud800"), "chain is not PEM"),
    "a key for a chain": (lambda: chained(GOOD.private_key_pem), "chain is not PEM"),
    "half a chain": (lambda: chained(GOOD.chain_pem[:-100]), "chain is not PEM"),
    "the leaf last": (
        lambda: chained(AUTHORITY.intermediate_pem, LEAF_PEM),
        "is for nothing, not for",
    ),
    "the leaf twice": (
        lambda: chained(LEAF_PEM, GOOD.chain_pem),
        "in disorder: each certificate must be issued by the next",
    ),
    "intermediates in disorder": (
        lambda: chained(LEAF_PEM, AUTHORITY.root_pem, AUTHORITY.intermediate_pem),
        "in disorder",
    ),
    "an intermediate of somebody else": (
        lambda: chained(LEAF_PEM, LabAuthority().intermediate_pem),
        "in disorder",
    ),
    "an endless chain": (
        lambda: chained(LEAF_PEM, AUTHORITY.intermediate_pem * 2_000),
        "chain has 2001 certificates",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_certificate_with_a_fault_is_refused_with_the_reason(what: str) -> None:
    make, reason = BAD[what]
    with pytest.raises(AnswerInvalid, match=reason):
        judged(make())


@pytest.mark.parametrize("what", BAD)
def test_files_with_the_same_fault_are_refused_as_well(what: str) -> None:
    made = BAD[what][0]()
    with pytest.raises(AnswerInvalid):
        read_bundle(made.chain_pem, made.private_key_pem, HOSTNAME)


def test_expired_certificate_is_refused_with_both_clocks() -> None:
    with pytest.raises(
        AnswerInvalid, match=r"expired on 2026-05-30 12:00:00 UTC; .* says 2026-05-30 12:00:01 UTC"
    ):
        judged(GOOD, now=END + SECOND)


def test_certificate_of_the_future_is_refused_with_both_clocks() -> None:
    with pytest.raises(
        AnswerInvalid, match=r"before 2026-03-01 12:00:00 UTC, .* says 2026-03-01 11:59:59 UTC"
    ):
        judged(GOOD, now=BEGIN - SECOND)


def test_expired_files_are_read_all_the_same() -> None:
    long_ago = issued(not_before=BEGIN.replace(year=2001), not_after=END.replace(year=2001))
    assert read_bundle(long_ago.chain_pem, long_ago.private_key_pem, HOSTNAME)


def test_answer_about_another_hostname_is_refused() -> None:
    with pytest.raises(AnswerInvalid, match=r"is for relay.example.test, not for b.example.test"):
        judged(GOOD, "b.example.test")


@pytest.mark.parametrize("field", ["valid_from", "valid_until"])
@pytest.mark.parametrize("told_ms", [0, 253_402_300_799_999])
def test_dates_that_are_not_the_certificates_own_are_refused(field: str, told_ms: int) -> None:
    told = GOOD.as_certificate(HOSTNAME).model_copy(update={field: told_ms})
    with pytest.raises(AnswerInvalid, match=rf"valid\w+ is {told_ms}, but the certificate .* says"):
        judge_certificate(told, HOSTNAME, NOW)


# cryptography warns of a serial number that the damage made negative.
@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
@settings(max_examples=300)
@given(place=st.integers(min_value=0), flipped=st.integers(min_value=1, max_value=255))
@example(place=4, flipped=1)
def test_damaged_certificate_raises_nothing_else(place: int, flipped: int) -> None:
    der = bytearray(LEAF.public_bytes(Encoding.DER))
    der[place % len(der)] ^= flipped
    with pytest.raises(AnswerInvalid) as refused:
        judged(forged(bytes(der)))
    assert refused.value.text.endswith(".")


@given(text=st.text(max_size=200))
def test_any_text_for_a_key_or_a_chain_is_refused_without_being_shown(text: str) -> None:
    for bad in (keyed(text), chained(text)):
        with pytest.raises(AnswerInvalid) as refused:
            judged(bad)
        assert re.search(r"not (a )?PEM", refused.value.text)
