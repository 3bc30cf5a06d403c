"""What a certificate on disk says to a user who may not read its key.

Responsible for judging the files that everybody may read, so that monitoring needs no right to any
key. Must not: replace `Lineage.read`, which says whether the key fits too. Called by `status`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from gateway.agent.durable import DiskFault, told
from gateway.agent.version_files import CHAIN, KEY, LEAF
from gateway.client.judging import UNREADABLE

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class PublicPart:
    """A certificate without its key; `fingerprint` is the SHA-256 of its DER in hex."""

    not_before: datetime
    not_after: datetime
    fingerprint: str


def is_key_withheld(live: Path) -> bool:
    """Whether there is a key which this process may not read."""
    try:
        with (live / KEY).open("rb"):
            return False
    except PermissionError:
        return True
    except OSError:
        return False


def read_public(live: Path, hostname: str) -> PublicPart:
    """Read what `live` leads to, but for the key; repeatable.

    Raises:
        DiskFault: it cannot be read, or is not the chain of a certificate for this hostname.

    """
    # Resolved once: its files are of one version then, whatever is swapped meanwhile.
    with told("open the folder", live):
        folder = live.resolve(strict=True)
    with told("read", folder):
        leaf_pem, chain_pem = (folder / LEAF).read_bytes(), (folder / CHAIN).read_bytes()
    if not chain_pem.startswith(leaf_pem):
        raise DiskFault(f"{folder / LEAF} does not fit {folder / CHAIN}")
    try:
        leaf = x509.load_pem_x509_certificates(chain_pem)[0]
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        is_for_hostname = x509.DNSName(hostname) in names
        part = PublicPart(
            leaf.not_valid_before_utc,
            leaf.not_valid_after_utc,
            leaf.fingerprint(hashes.SHA256()).hex(),
        )
    except (*UNREADABLE, x509.ExtensionNotFound):
        raise DiskFault(f"{folder / CHAIN} is not PEM of certificates") from None
    if not is_for_hostname:
        raise DiskFault(f"{folder / CHAIN} is not for {hostname}")
    return part
