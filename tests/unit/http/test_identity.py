"""What the listener shows in TLS: which pairs are taken, and what is told of those that are not."""

import asyncio
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from structlog.testing import capture_logs

from gateway.http.listener.contexts import Pair, Piece, TlsInvalid, server_context, substitute
from gateway.http.listener.identity import CertificateFiles, Identity, Missing, read_pem

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FIRST, SECOND = (substitute(name, NOW) for name in ("first.test", "second.test"))
BROKEN = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def encrypted(pair: Pair) -> Pair:
    key = load_pem_private_key(pair.key_pem, None)
    kind = BestAvailableEncryption(b"secret")
    return Pair(pair.chain_pem, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, kind))


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        (Pair(FIRST.chain_pem, SECOND.key_pem), "the key is not the certificate's"),
        (Pair(b"", FIRST.key_pem), "the certificate is no PEM"),
        (Pair(b"nonsense", FIRST.key_pem), "the certificate is no PEM"),
        (Pair(FIRST.chain_pem, b""), "the key is no PEM, or an encrypted one"),
        (Pair(FIRST.chain_pem, FIRST.chain_pem), "the key is no PEM, or an encrypted one"),
        (encrypted(FIRST), "the key is no PEM, or an encrypted one"),
        (Pair(FIRST.chain_pem + BROKEN, FIRST.key_pem), "the certificate's chain cannot be used"),
    ],
)
def test_pair_that_cannot_be_used_is_refused(pair: Pair, sentence: str) -> None:
    with pytest.raises(TlsInvalid, match=sentence):
        server_context(pair)


def test_clients_authority_that_is_none_is_refused() -> None:
    with pytest.raises(TlsInvalid, match="the clients' authority is no PEM certificate"):
        server_context(FIRST, b"nonsense")


def test_context_wants_recent_tls_and_a_clients_certificate_only_where_told() -> None:
    context, strict = server_context(FIRST), server_context(FIRST, FIRST.chain_pem)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert (context.verify_mode, strict.verify_mode) == (ssl.CERT_NONE, ssl.CERT_REQUIRED)


def test_pair_does_not_show_its_key() -> None:
    assert "PRIVATE" in FIRST.key_pem.decode()
    assert "PRIVATE" not in repr(FIRST)


class Scripted:
    """A source that says one thing after another, and then that nothing more comes."""

    def __init__(self, *says: Pair | Exception) -> None:
        self._says = list(says)
        self.is_over = asyncio.Event()

    async def look(self) -> Pair:
        if not self._says:
            self.is_over.set()
            await asyncio.Event().wait()
        said = self._says.pop(0)
        if isinstance(said, Exception):
            raise said
        return said


async def after(identity: Identity, *says: Pair | Exception) -> None:
    """Have the identity look once for each."""
    source = Scripted(*says)
    keeping = asyncio.create_task(identity.keep(source, pause_seconds=0))
    await source.is_over.wait()
    keeping.cancel()


async def test_new_pair_is_a_new_context_and_the_same_one_is_not() -> None:
    identity = Identity(FIRST, lambda: NOW)
    before = identity.context
    await after(identity, FIRST, FIRST)
    assert identity.context is before
    await after(identity, SECOND)
    assert identity.context is not before
    assert identity.fault() is None


async def test_pair_that_does_not_fit_is_told_once_it_has_stayed() -> None:
    """Two files are replaced one after the other."""
    broken = Pair(SECOND.chain_pem, FIRST.key_pem)
    identity = Identity(FIRST, lambda: NOW)
    before = identity.context
    await after(identity, broken)
    assert identity.fault() is None
    await after(identity, broken)
    assert identity.fault() == (
        "The new certificate cannot be used: the key is not the certificate's."
    )
    assert (identity.context, identity.useless()) == (before, None)
    await after(identity, SECOND)
    assert identity.fault() is None


@pytest.mark.parametrize(
    ("days", "why"),
    [
        (2, "it is not valid before 2026-01-02T23:00:00Z"),
        (-8, "it expired at 2025-12-31T00:00:00Z"),
    ],
)
async def test_pair_that_is_not_valid_now_does_not_replace_one_that_is(days: int, why: str) -> None:
    moment = [NOW]
    other = substitute("other.test", NOW + timedelta(days=days))
    identity = Identity(FIRST, lambda: moment[0])
    before = identity.context
    await after(identity, other, other)
    assert (identity.context, identity.useless()) == (before, None)
    assert identity.fault() == f"The new certificate cannot be used: {why}."
    moment[0] += timedelta(days=8)  # by now the first one has expired as well
    await after(identity, other)
    assert identity.context is not before


def test_certificate_is_useless_before_its_start() -> None:
    identity = Identity(substitute("a.test", NOW + timedelta(days=1)), lambda: NOW)
    assert identity.useless() == "The certificate is not valid before 2026-01-01T23:00:00Z."


async def test_stand_in_is_useless_until_there_is_a_certificate() -> None:
    identity = Identity(FIRST, lambda: NOW, stands_in=True)
    assert identity.useless() == "There is no certificate yet."
    await after(identity, Missing("It was just asked for."))
    assert identity.useless() == "It was just asked for."
    await after(identity, SECOND)
    assert identity.useless() is None


async def test_certificate_that_is_on_its_way_is_no_warning() -> None:
    identity = Identity(FIRST, lambda: NOW, stands_in=True)
    with capture_logs() as said:
        await after(identity, Missing("It was just asked for.", is_coming=True))
        await after(identity, Missing("The CA says no."))
    assert [(line["log_level"], line["why"]) for line in said] == [
        ("info", "It was just asked for."),
        ("warning", "The CA says no."),
    ]


async def test_source_that_fails_later_leaves_the_certificate_useful() -> None:
    identity = Identity(FIRST, lambda: NOW)
    await after(identity, Missing("Redis does not answer."))
    assert (identity.useless(), identity.fault()) == (None, "Redis does not answer.")


def test_certificate_is_useless_once_it_has_expired() -> None:
    moment = [NOW]
    identity = Identity(FIRST, lambda: moment[0])
    moment[0] += timedelta(days=6)
    assert identity.fault() is None
    moment[0] += timedelta(hours=12)
    assert identity.useless() is None
    assert identity.fault() == (
        "The certificate expires at 2026-01-08T00:00:00Z and was not replaced yet."
    )
    moment[0] += timedelta(hours=12)
    assert (
        identity.useless() == identity.fault() == "The certificate expired at 2026-01-08T00:00:00Z."
    )


def test_file_that_cannot_be_read_is_told_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(TlsInvalid, match=r"tls.pem cannot be read: No such file or directory$"):
        CertificateFiles(tmp_path / "tls.pem", tmp_path / "tls.key").read()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TlsInvalid, match=r"pipe cannot be read: it is not a file$"):
        read_pem(tmp_path / "pipe", Piece.KEY)
    (tmp_path / "large").write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(TlsInvalid, match="large cannot be read: it is too large"):
        read_pem(tmp_path / "large", Piece.KEY)
