"""Makes a certificate authority and one server certificate for a loopback HTTPS listener.

Responsible for: short-lived test files, the authority's key never written.
Must not: be mistaken for an issuing CA of the lab; that is Pebble.
Called by: `tests.lab.pebble`.
"""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.lab.certificates import AUTHORITY_USAGE

_LIFETIME = datetime.timedelta(days=30)
_CLOCK_TOLERANCE = datetime.timedelta(hours=1)
_BOTH_SIDES = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]


def write_server_certificate(
    ca_file: Path, certificate_file: Path, key_file: Path, address: str
) -> None:
    """Write a fresh authority's certificate, and a server's certificate and key (all PEM).

    The server's certificate is for `localhost` and the IP `address`, and good for a client too.
    """
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("lab authority for TLS listeners")
    ca_certificate = (
        _builder(ca_name, ca_name, ca_key.public_key(), ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(AUTHORITY_USAGE, critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    server_key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(address))]
    server_certificate = (
        _builder(_name("lab listener"), ca_name, server_key.public_key(), ca_key.public_key())
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage(_BOTH_SIDES), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    ca_file.write_bytes(ca_certificate.public_bytes(Encoding.PEM))
    certificate_file.write_bytes(server_certificate.public_bytes(Encoding.PEM))
    key_file.touch(mode=0o600)
    key_file.write_bytes(
        server_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    issuer_public_key: ec.EllipticCurvePublicKey,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_TOLERANCE)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_public_key), critical=False
        )
    )
