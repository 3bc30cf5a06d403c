"""A CA small enough for unit tests: issues whatever it is told to, right or wrong."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import NameOID

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def load_key(key_pem: bytes) -> Key:
    key = load_pem_private_key(key_pem, password=None)
    assert isinstance(key, Key)
    return key


@dataclass(frozen=True)
class Issuer:
    """A CA certificate with its key."""

    certificate: x509.Certificate
    key: Key

    def issue(
        self,
        key_pem: bytes,
        names: list[x509.GeneralName] | None,
        *,
        common_name: str | None = None,
        not_before: datetime = NOW - DAY,
        not_after: datetime = NOW + 90 * DAY,
    ) -> x509.Certificate:
        builder = _builder(common_name, self.certificate.subject, load_key(key_pem))
        builder = builder.not_valid_before(not_before).not_valid_after(not_after)
        if names is not None:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self.key, SHA256())

    def below(
        self, common_name: str, *, is_ca: bool | None = True, life: timedelta = 900 * DAY
    ) -> "Issuer":
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _ca(common_name, self.certificate.subject, key, is_ca, life)
        return Issuer(certificate.sign(self.key, SHA256()), key)


def new_root(common_name: str = "root") -> Issuer:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    return Issuer(_ca(common_name, subject, key, True, 9000 * DAY).sign(key, SHA256()), key)


def pem(*certificates: x509.Certificate) -> str:
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in certificates)


def _ca(
    common_name: str, issuer: x509.Name, key: Key, is_ca: bool | None, life: timedelta
) -> x509.CertificateBuilder:
    builder = _builder(common_name, issuer, key)
    builder = builder.not_valid_before(NOW - 10 * DAY).not_valid_after(NOW - 10 * DAY + life)
    if is_ca is not None:
        constraints = x509.BasicConstraints(ca=is_ca, path_length=None)
        builder = builder.add_extension(constraints, critical=True)
    return builder


def _builder(common_name: str | None, issuer: x509.Name, key: Key) -> x509.CertificateBuilder:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if common_name else []
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name(attributes))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(0xABC123)
    )
