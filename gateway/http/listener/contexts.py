"""A certificate's chain and key, judged, and the TLS context that presents them.

TLS 1.2 or newer. A context, once made, does not change: a renewed certificate is a new one, which
whoever connects from then on is served with. No files are read. Called by `identity`.
"""

from __future__ import annotations

import contextlib
import os
import ssl
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SUBSTITUTE_DAYS: Final = 7
_CLOCK_TOLERANCE: Final = timedelta(hours=1)


class Piece(Enum):
    """What a listener's TLS is made of."""

    CERTIFICATE = "certificate"
    KEY = "key"
    CLIENT_CA = "client-ca"


class TlsInvalid(Exception):
    """A piece of it cannot be used: the text says why, and `piece` which one is to be mended."""

    def __init__(self, said: str, piece: Piece = Piece.CERTIFICATE) -> None:
        super().__init__(said)
        self.piece = piece


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate's chain, the leaf first, and its private key, not encrypted; both PEM."""

    chain_pem: bytes
    key_pem: bytes = field(repr=False)

    def validity(self) -> tuple[datetime, datetime]:
        """The start and the end of the leaf's validity.

        Raises:
            TlsInvalid: there is no certificate in it.
        """
        try:
            leaf = x509.load_pem_x509_certificate(self.chain_pem)
        except ValueError:
            raise TlsInvalid("the certificate is no PEM") from None
        return leaf.not_valid_before_utc, leaf.not_valid_after_utc


def server_context(pair: Pair, client_ca_pem: bytes | None = None) -> ssl.SSLContext:
    """A context that presents the pair; with an authority, to its clients only.

    Raises:
        TlsInvalid: something of it cannot be used, or the key is not the certificate's.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    pair.validity()
    _load(context, pair)
    if client_ca_pem is not None:
        try:
            context.load_verify_locations(cadata=client_ca_pem.decode("ascii"))
        except (ssl.SSLError, ValueError):
            said = "the clients' authority is no PEM certificate"
            raise TlsInvalid(said, Piece.CLIENT_CA) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def substitute(hostname: str, now: datetime) -> Pair:
    """A certificate that nobody trusts, so that handshakes fail at once, and say why."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_TOLERANCE)
        .not_valid_after(now + timedelta(days=SUBSTITUTE_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(hostname)]), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Pair(
        certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    """Python's ssl takes files only, so they are ones in memory that no other process can open."""
    with _in_memory(pair.chain_pem) as chain, _in_memory(pair.key_pem) as key:
        try:
            # The empty password: else OpenSSL would ask for one at the terminal.
            context.load_cert_chain(chain, key, password="")
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise TlsInvalid("the key is not the certificate's", Piece.KEY) from None
            if not _is_key(pair.key_pem):
                raise TlsInvalid("the key is no PEM, or an encrypted one", Piece.KEY) from None
            why = (error.reason or "no reason given").lower().replace("_", " ")
            raise TlsInvalid(f"the certificate's chain cannot be used: {why}") from None


def _is_key(key_pem: bytes) -> bool:
    try:
        load_pem_private_key(key_pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return True


@contextlib.contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    descriptor = os.memfd_create("tls", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
