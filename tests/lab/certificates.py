"""Issues certificates without a server: whatever names, dates and keys a test of clients needs.

Responsible for: a root, an intermediate and leaves that a TLS client which trusts the root takes.
Must not: stand in for a CA where issuing is what is tested; that is Pebble's part.
Called by: tests of the SDK, of the agent and of what the agent writes to disk.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gateway.contract import Certificate, Hostname

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_LEAF_LIFETIME = timedelta(days=90)
_AUTHORITY_LIFETIME = timedelta(days=3650)
_RENEWED_AT = 2 / 3
"""The part of its life after which a certificate is to be renewed."""

AUTHORITY_USAGE = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
"""What the key of an authority may sign (RFC 5280 section 4.2.1.3)."""


@dataclass(frozen=True)
class Issued:
    """One certificate as the gateway hands it out: leaf first, then the intermediate, and its key.

    The key is PKCS#8; the dates are UTC, in whole seconds as a certificate holds them.
    """

    chain_pem: str
    private_key_pem: str = field(repr=False)
    not_before: datetime
    not_after: datetime

    def as_certificate(self, hostname: str) -> Certificate:
        """What the gateway would answer for `hostname`, whatever names the leaf has."""
        renew_after = self.not_before + (self.not_after - self.not_before) * _RENEWED_AT
        return Certificate(
            hostname=Hostname(hostname),
            chain_pem=self.chain_pem,
            private_key_pem=self.private_key_pem,
            valid_from=_milliseconds(self.not_before),
            valid_until=_milliseconds(self.not_after),
            renew_after=_milliseconds(renew_after),
        )


class LabAuthority:
    """A root that signs an intermediate that signs leaves. Its keys are in memory only.

    `root_pem` is what clients are to trust.
    """

    def __init__(self) -> None:
        root_key = new_key()
        self._key = new_key()
        root = _authority("lab root", root_key, _name("lab root"), root_key, path_length=1)
        self._certificate = _authority(
            "lab intermediate", self._key, root.subject, root_key, path_length=0
        )
        self.root_pem = _pem(root)
        self.intermediate_pem = _pem(self._certificate)

    def issue(
        self,
        hostname: str,
        *,
        not_before: datetime | None = None,
        not_after: datetime | None = None,
        names: Sequence[str] | None = None,
        key: PrivateKey | None = None,
        serial: int | None = None,
    ) -> Issued:
        """A leaf for `hostname`: of `names` instead where they are given, none where they are ().

        It is valid from an hour ago, for 90 days, with a key of its own, unless told otherwise.
        """
        begin = (not_before or datetime.now(UTC) - timedelta(hours=1)).replace(microsecond=0)
        end = (not_after or begin + _LEAF_LIFETIME).replace(microsecond=0)
        key = key or new_key()
        # Without a subject, as public CAs leave it: a common name holds 64 characters at most.
        builder = (
            _builder(x509.Name([]), self._certificate.subject, key, self._key, serial)
            .not_valid_before(begin)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        )
        shown = (hostname,) if names is None else tuple(names)
        if shown:
            alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in shown])
            builder = builder.add_extension(alternatives, critical=True)
        leaf = builder.sign(self._key, hashes.SHA256())
        return Issued(_pem(leaf) + self.intermediate_pem, key_pem(key), begin, end)

    def as_certificate(self, hostname: str) -> Certificate:
        """A fresh, good certificate as the gateway answers it."""
        return self.issue(hostname).as_certificate(hostname)


def new_key() -> ec.EllipticCurvePrivateKey:
    """A fresh P-256 key."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: PrivateKey) -> str:
    """A key as the gateway sends it: PKCS#8, not encrypted."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _authority(
    common_name: str,
    key: PrivateKey,
    issuer: x509.Name,
    issuer_key: PrivateKey,
    *,
    path_length: int,
) -> x509.Certificate:
    now = datetime.now(UTC)
    # Valid long before now: tests issue leaves that began, and ended, in the past.
    return (
        _builder(_name(common_name), issuer, key, issuer_key)
        .not_valid_before(now - _AUTHORITY_LIFETIME)
        .not_valid_after(now + _AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(AUTHORITY_USAGE, critical=True)
        .sign(issuer_key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: PrivateKey,
    issuer_key: PrivateKey,
    serial: int | None = None,
) -> x509.CertificateBuilder:
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number() if serial is None else serial)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(issuer_id, critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
