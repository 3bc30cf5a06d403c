"""Whether a certificate is what was asked for, before anybody relies on it. Pure.

Responsible for reading the PEM of an answer or of files and for refusing what does not hold
together: another name, a key that does not fit, a chain in disorder, dates that do not include now.
Must not: decide whom to trust; the chain's root is the business of those who connect.
Used by the clients for every `ready`, and by the agent for what lies on disk.
"""

from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import pairwise
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from gateway.contract import AnswerInvalid, Certificate
from gateway.moments import moment_words

_LONGEST_CHAIN: Final = 10
_BLOCK: Final = "-----BEGIN "
_PUBLIC: Final = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
_ROUNDING_MS: Final = 1_000
_UNREADABLE: Final = (
    ValueError,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""What cryptography raises for certificates that cannot be read: some of it is no ValueError."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A certificate and its chain, which fit one another. PEM; times are aware UTC.

    The PEM is written anew from what was read: whatever else stood beside it is not in here.
    `chain_pem` begins with the leaf itself; `fingerprint` is the SHA-256 of the leaf's DER in hex.
    """

    hostname: str
    leaf_pem: str
    chain_pem: str
    not_before: datetime
    not_after: datetime
    serial_number: int
    fingerprint: str

    def is_valid_at(self, now: datetime) -> bool:
        """Whether a peer whose clock says `now` accepts its dates."""
        return self.not_before <= now <= self.not_after


@dataclass(frozen=True, slots=True)
class Bundle(Chain):
    """A certificate and its chain, with the key that fits it, as PEM of PKCS #8."""

    private_key_pem: str = field(repr=False)


def judge_certificate(certificate: Certificate, hostname: str, now: datetime) -> Bundle:
    """Take an answered certificate for a hostname, at an aware time: `datetime.now(UTC)`.

    Raises:
        ValueError: the time has no time zone.
        AnswerInvalid: it is not for exactly this hostname, its parts do not fit one another, or it
            is not valid now.

    """
    if now.tzinfo is None:
        raise ValueError("The time must have a time zone, as datetime.now(UTC) has.")
    if certificate.hostname != hostname:
        raise AnswerInvalid(f"The certificate is for {certificate.hostname}, not for {hostname}.")
    bundle = read_bundle(certificate.chain_pem, certificate.private_key_pem, hostname)
    for name, told_ms, own in (
        ("validFrom", certificate.valid_from, bundle.not_before),
        ("validUntil", certificate.valid_until, bundle.not_after),
    ):
        if abs(told_ms - int(own.timestamp()) * 1000) > _ROUNDING_MS:
            raise AnswerInvalid(
                f"{name} is {told_ms}, but the certificate of {hostname} says {moment_words(own)}."
            )
    if now < bundle.not_before:
        raise AnswerInvalid(
            f"The certificate of {hostname} is not valid before {moment_words(bundle.not_before)}, "
            f"and this machine's clock says {moment_words(now)}."
        )
    if now > bundle.not_after:
        raise AnswerInvalid(
            f"The certificate of {hostname} expired on {moment_words(bundle.not_after)}; "
            f"this machine's clock says {moment_words(now)}."
        )
    return bundle


def read_bundle(chain_pem: str, private_key_pem: str, hostname: str) -> Bundle:
    """Read a chain (leaf first) and its key, as `judge_certificate` does but for the dates.

    Raises:
        AnswerInvalid: it is not for exactly this hostname, or its parts do not fit one another.

    """
    certificates = _certificates_for(chain_pem, hostname)
    key = _read_key(private_key_pem)
    if key.public_key().public_bytes(*_PUBLIC) != _public_key(certificates[0]):
        raise AnswerInvalid(f"The private key does not fit the certificate of {hostname}.")
    pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = _chain_of(certificates, hostname)
    whole = {each.name: getattr(chain, each.name) for each in fields(chain)}
    return Bundle(**whole, private_key_pem=pkcs8.decode("ascii"))


def read_chain(chain_pem: str, hostname: str) -> Chain:
    """Read a chain (leaf first) as `read_bundle` does, for those who may not read the key.

    Raises:
        AnswerInvalid: it is not for exactly this hostname, or is in disorder.

    """
    return _chain_of(_certificates_for(chain_pem, hostname), hostname)


def _certificates_for(chain_pem: str, hostname: str) -> list[x509.Certificate]:
    certificates = _read_certificates(chain_pem)
    names = _names(certificates[0])
    if names != [x509.DNSName(hostname)]:
        shown = ", ".join(_shown(name) for name in names[:4]) or "nothing"
        raise AnswerInvalid(f"The certificate is for {shown}, not for {hostname} alone.")
    return certificates


def _chain_of(certificates: list[x509.Certificate], hostname: str) -> Chain:
    _refuse_disorder(certificates)
    leaf = certificates[0]
    not_before, not_after = _dates(leaf)
    return Chain(
        hostname=hostname,
        leaf_pem=leaf.public_bytes(Encoding.PEM).decode("ascii"),
        chain_pem="".join(each.public_bytes(Encoding.PEM).decode("ascii") for each in certificates),
        not_before=not_before,
        not_after=not_after,
        serial_number=leaf.serial_number,
        fingerprint=leaf.fingerprint(hashes.SHA256()).hex(),
    )


def _read_certificates(chain_pem: str) -> list[x509.Certificate]:
    try:
        chain = x509.load_pem_x509_certificates(chain_pem.encode())
    except _UNREADABLE:
        chain = []
    # A block that is cut off is passed over by the parser, as if it had never been there.
    if len(chain) != chain_pem.count(_BLOCK) or not chain:
        raise AnswerInvalid("The certificate chain is not PEM of certificates.")
    if len(chain) > _LONGEST_CHAIN:
        raise AnswerInvalid(f"The certificate chain has {len(chain)} certificates.")
    return chain


def _names(leaf: x509.Certificate) -> list[x509.GeneralName]:
    try:
        return list(leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []
    except _UNREADABLE:
        raise AnswerInvalid("The certificate's extensions cannot be read.") from None


def _dates(leaf: x509.Certificate) -> tuple[datetime, datetime]:
    try:
        return leaf.not_valid_before_utc, leaf.not_valid_after_utc
    except ValueError:  # such as the year 0, which Python's calendar does not have
        raise AnswerInvalid("The certificate's dates cannot be read.") from None


def _shown(name: x509.GeneralName) -> str:
    # Printable ASCII: it ends up on somebody's terminal.
    return str(name.value)[:80].encode("unicode_escape").decode("ascii")


def _read_key(private_key_pem: str) -> PrivateKeyTypes:
    try:
        return load_pem_private_key(private_key_pem.encode(), password=None)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        raise AnswerInvalid("The private key is not a PEM key without a password.") from None


def _public_key(leaf: x509.Certificate) -> bytes:
    try:
        public = leaf.public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise AnswerInvalid("The certificate's public key cannot be read.") from None
    return public.public_bytes(*_PUBLIC)


def _refuse_disorder(chain: list[x509.Certificate]) -> None:
    for subject, issuer in pairwise(chain):
        try:
            subject.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            raise AnswerInvalid(
                "The certificate chain is in disorder: each certificate must be issued by the next."
            ) from None
