"""Key pairs, certificate requests, and the judgement on what a CA gave back.

Responsible for making private keys and CSRs and for checking an issued certificate before anybody
is told that it is ready. Pure apart from the randomness of a new key: the time comes in as an
argument, nothing is stored or sent. RSA keys take up to seconds to make: call from a thread.

Called by the issuance worker; `leaf_of` by `views.hostname`.
"""

import base64
import re
import warnings
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from gateway.moments import nearest_epoch_ms

CLOCK_ERROR: Final = timedelta(seconds=2)
"""By how much a CA's clock may be ahead of ours that begins a certificate at the very second that
it is made in. Without that, one of some thousand from Pebble came to nothing."""

MAX_CHAIN_CERTIFICATES: Final = 10
MAX_CHAIN_CHARACTERS: Final = 262144

_PEM_LABEL: Final = re.compile(r"-----BEGIN ([^-]*)-----")

# All that `cryptography` raises for certificates that it can't make sense of.
_UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)

_CURVES: Final = {"secp256r1": "P-256", "secp384r1": "P-384"}

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class KeyType(StrEnum):
    """What kind of key a certificate gets."""

    ECDSA_P256 = "ecdsa-p256"
    ECDSA_P384 = "ecdsa-p384"
    RSA_2048 = "rsa-2048"
    RSA_3072 = "rsa-3072"
    RSA_4096 = "rsa-4096"

    @property
    def takes_long(self) -> bool:
        """Whether to make one takes up to seconds, which no event loop has."""
        return self.value.startswith("rsa")


class CertificateWrong(Exception):
    """The CA's certificate is not the one that was asked for; `reason` is one sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CheckedCertificate:
    """A certificate that passed: PEM chain leaf first, times in epoch milliseconds.

    `chain_pem` is written anew from the parsed certificates: no comment or other text of the CA's
    answer is left in it.
    """

    chain_pem: str
    not_before_ms: int
    not_after_ms: int
    serial_hex: str
    issuer: str


def new_private_key(key_type: KeyType) -> bytes:
    """Make a private key, as unencrypted PKCS#8 PEM."""
    key: PrivateKey
    if key_type is KeyType.ECDSA_P256:
        key = ec.generate_private_key(ec.SECP256R1())
    elif key_type is KeyType.ECDSA_P384:
        key = ec.generate_private_key(ec.SECP384R1())
    else:
        bits = int(key_type.value.removeprefix("rsa-"))
        key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def csr_for(private_key_pem: bytes, hostname: str) -> bytes:
    """Make the DER certificate request for exactly `hostname` (no trailing dot).

    The name is in the subject alternative names only: a common name holds 64 characters at most,
    and CAs ignore it.
    """
    names = x509.SubjectAlternativeName([x509.DNSName(hostname)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    # Critical, as RFC 5280 4.2.1.6 wants it beside an empty subject.
    builder = builder.add_extension(names, critical=True)
    return builder.sign(_load_key(private_key_pem), SHA256()).public_bytes(Encoding.DER)


def key_and_csr(key_type: KeyType, hostname: str) -> tuple[bytes, bytes]:
    """Make a private key (PKCS#8 PEM) and its certificate request (DER) for exactly `hostname`."""
    private_key_pem = new_private_key(key_type)
    return private_key_pem, csr_for(private_key_pem, hostname)


def check_certificate(
    chain_pem: str, private_key_pem: bytes, hostname: str, now_utc: datetime
) -> CheckedCertificate:
    """Judge a CA's PEM chain against the key and the hostname it was ordered for.

    The leaf comes first, each certificate is signed by the next one, the last may be a root.
    `now_utc` must be aware. Raises CertificateWrong with the first thing that is wrong.
    """
    chain = _parse_chain(chain_pem)
    leaf = chain[0]
    _check_key(leaf, private_key_pem)
    _check_names(leaf, hostname)
    for certificate, issuer in pairwise(chain):
        _check_issued(certificate, issuer)
    for certificate in chain:
        _check_time(certificate, now_utc)
    return CheckedCertificate(
        chain_pem="".join(one.public_bytes(Encoding.PEM).decode() for one in chain),
        not_before_ms=nearest_epoch_ms(_milliseconds(leaf.not_valid_before_utc)),
        not_after_ms=_milliseconds(leaf.not_valid_after_utc),
        serial_hex=f"{leaf.serial_number:x}",
        issuer=_issuer(leaf),
    )


def renewal_id(chain_pem: str) -> str | None:
    """Answer a certificate's name in renewal information (RFC 9773, 4.1), of its leaf first chain.

    The authority key identifier and the DER bytes of the serial number, each in base64url without
    padding, joined by a dot. None when the leaf can't be read or names no authority key.
    """
    try:
        leaf = x509.load_pem_x509_certificate(chain_pem.encode())
        extension = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
        serial = leaf.serial_number
    except (*_UNREADABLE, x509.ExtensionNotFound):
        return None
    key_identifier = extension.value.key_identifier
    if not key_identifier:
        return None
    # As DER has it: the shortest two's complement, so a zero byte precedes a high first bit.
    raw_serial = serial.to_bytes(serial.bit_length() // 8 + 1, "big", signed=True)
    return f"{_base64url(key_identifier)}.{_base64url(raw_serial)}"


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a person is told of a certificate: its names as text, and its key (`ECDSA P-256`)."""

    names: tuple[str, ...]
    key: str


def leaf_of(chain_pem: str) -> Leaf | None:
    """The first certificate of a chain; None when it can't be read."""
    try:
        leaf = x509.load_pem_x509_certificate(chain_pem.encode())
        extension = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return Leaf(tuple(map(_name_words, extension.value)), _key_words(leaf.public_key()))
    except (*_UNREADABLE, x509.ExtensionNotFound):
        return None


def _name_words(name: x509.GeneralName) -> str:
    return name.value if isinstance(name, x509.DNSName) else str(name.value)


def _key_words(key: CertificatePublicKeyTypes) -> str:
    if isinstance(key, ec.EllipticCurvePublicKey):
        return f"ECDSA {_CURVES.get(key.curve.name, key.curve.name)}"
    if isinstance(key, rsa.RSAPublicKey):
        return f"RSA {key.key_size} bits"
    return type(key).__name__


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _load_key(private_key_pem: bytes) -> PrivateKey:
    # Ours, and sealed since it was made. To look for its primes once more takes a second and longer
    # (RSA 4096), in the event loop.
    key = load_pem_private_key(private_key_pem, None, unsafe_skip_rsa_key_validation=True)
    if not isinstance(key, PrivateKey):
        raise TypeError("neither an ECDSA nor an RSA key")
    return key


def _parse_chain(chain_pem: str) -> list[x509.Certificate]:
    if len(chain_pem) > MAX_CHAIN_CHARACTERS:
        raise CertificateWrong("the chain is too long")
    # RFC 8555, 9.1: an answer that holds anything else than certificates is refused as a whole,
    # lest it plants another kind of object (a key, parameters) where others read it.
    if set(_PEM_LABEL.findall(chain_pem)) != {"CERTIFICATE"}:
        raise CertificateWrong("the chain is not made of PEM certificates")
    try:
        chain = x509.load_pem_x509_certificates(chain_pem.encode())
    except _UNREADABLE:
        raise CertificateWrong("the chain holds a certificate that cannot be parsed") from None
    if len(chain) > MAX_CHAIN_CERTIFICATES:
        raise CertificateWrong("the chain is too long")
    return chain


def _check_key(leaf: x509.Certificate, private_key_pem: bytes) -> None:
    try:
        public_key = leaf.public_key()
    except _UNREADABLE:
        raise CertificateWrong("the certificate's public key cannot be read") from None
    if _spki(public_key) != _spki(_load_key(private_key_pem).public_key()):
        raise CertificateWrong("the certificate is for another key")


def _spki(public_key: CertificatePublicKeyTypes) -> bytes:
    return public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _check_names(leaf: x509.Certificate, hostname: str) -> None:
    try:
        extension = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        common_names = _common_names(leaf)
    except x509.ExtensionNotFound:
        raise CertificateWrong("the certificate has no subject alternative name") from None
    except _UNREADABLE:
        raise CertificateWrong("the certificate's names cannot be read") from None
    if list(extension.value) != [x509.DNSName(hostname)]:
        raise CertificateWrong("the certificate is not for exactly the one hostname")
    if any(name != hostname for name in common_names):
        raise CertificateWrong("the certificate's common name is another name")


def _common_names(leaf: x509.Certificate) -> list[str | bytes]:
    with warnings.catch_warnings():
        # Pebble puts any hostname there, `cryptography` warns of more than 64 characters.
        warnings.simplefilter("ignore", UserWarning)
        attributes = leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return [attribute.value for attribute in attributes]


def _check_issued(certificate: x509.Certificate, issuer: x509.Certificate) -> None:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (*_UNREADABLE, InvalidSignature):
        raise CertificateWrong(
            "the chain is out of order: a certificate is not signed by the one after it"
        ) from None
    try:
        constraints = issuer.extensions.get_extension_for_class(x509.BasicConstraints)
    except (*_UNREADABLE, x509.ExtensionNotFound):
        raise CertificateWrong("an issuer in the chain is not a CA certificate") from None
    if not constraints.value.ca:
        raise CertificateWrong("an issuer in the chain is not a CA certificate")


def _check_time(certificate: x509.Certificate, now_utc: datetime) -> None:
    if now_utc + CLOCK_ERROR < certificate.not_valid_before_utc:
        raise CertificateWrong("a certificate of the chain is not valid yet")
    if now_utc >= certificate.not_valid_after_utc:
        raise CertificateWrong("a certificate of the chain has expired")


def _issuer(leaf: x509.Certificate) -> str:
    try:
        return leaf.issuer.rfc4514_string()
    except _UNREADABLE:
        raise CertificateWrong("the certificate's issuer cannot be read") from None


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000
