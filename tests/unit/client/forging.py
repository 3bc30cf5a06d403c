"""Certificates that no CA signs and cryptography does not build: their DER is put together here.

Used by the tests of what the client takes.
"""

from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

_NAMES = bytes.fromhex("0603551d11")
"""The object identifier of subjectAltName, as it stands in a certificate."""
_UNUSED = bytes.fromhex("0603551d63")
_VERSION_3 = bytes.fromhex("a003020102")


def with_names(
    like: x509.Certificate, key: ec.EllipticCurvePrivateKey, names: Sequence[x509.GeneralName]
) -> bytes:
    """A self-made certificate with the dates of another one, and names of any kind."""
    return _der(_like(like, key, names), key)


def with_repeated_names(like: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bytes:
    """The extension that holds the names is there twice, which RFC 5280 forbids."""
    names = x509.SubjectAlternativeName([x509.DNSName("other.example.test")])
    unused = x509.UnrecognizedExtension(x509.ObjectIdentifier("2.5.29.99"), names.public_bytes())
    builder = _like(like, key, [x509.DNSName("relay.example.test")])
    return _der(builder.add_extension(unused, critical=False), key).replace(_UNUSED, _NAMES)


def certificate_of_version(like: x509.Certificate, number: int) -> bytes:
    """The same certificate with another version, counted from 0."""
    der = like.public_bytes(Encoding.DER)
    return der.replace(_VERSION_3, _VERSION_3[:-1] + bytes([number]), 1)


def with_date_of_year_zero(like: x509.Certificate) -> bytes:
    """Ends in the year 0, which X.509 can spell. The other one's end must lie in 2050."""
    return like.public_bytes(Encoding.DER).replace(b"\x18\x0f2050", b"\x18\x0f0000")


def _like(
    like: x509.Certificate, key: ec.EllipticCurvePrivateKey, names: Sequence[x509.GeneralName]
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(like.issuer)
        .issuer_name(like.issuer)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(like.not_valid_before_utc)
        .not_valid_after(like.not_valid_after_utc)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )


def _der(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> bytes:
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)
