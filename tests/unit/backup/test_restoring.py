"""A backup that opens, and that this release or this keyring can't use all the same."""

import os
from pathlib import Path

import pytest

from gateway.backup.contents import Tally, line_of
from gateway.backup.restoring import opened
from gateway.backup.sealed_file import BackupRefused, Header, SealedWriter
from gateway.certificates.sealing import Keyring
from gateway.store import keys
from gateway.store.schema_version import SCHEMA_VERSION
from gateway.store.whole import Piece, hash_piece

OLD, NEW = ("k1", bytes(32)), ("k2", bytes(range(32)))


def write(
    place: Path, *, schema: int = SCHEMA_VERSION, keyring: Keyring, proof_by: Keyring
) -> None:
    proof = proof_by.seal(b"", purpose="keyring-proof", bound_to=())
    piece = hash_piece(keys.KEYRING_KEY, {"proof": proof})
    tally = Tally()
    tally.add(piece)
    with SealedWriter(place, Header("b1", 1, schema, "9.9"), keyring) as writer:
        writer.write(line_of(piece) + tally.line())
        writer.finish()


def test_newer_form_of_the_state_is_refused_with_both_and_the_release(tmp_path: Path) -> None:
    keyring = Keyring([OLD])
    newer = SCHEMA_VERSION + 1
    write(tmp_path / "backup", schema=newer, keyring=keyring, proof_by=keyring)
    told = rf"of form {newer}, and this release knows forms up to {SCHEMA_VERSION}.*\(9\.9\)"
    with pytest.raises(BackupRefused, match=told), opened(tmp_path / "backup", keyring):
        pass


def test_keyring_that_lacks_a_key_of_the_contents_is_refused_with_its_id(tmp_path: Path) -> None:
    write(tmp_path / "backup", keyring=Keyring([NEW]), proof_by=Keyring([OLD]))
    with (
        pytest.raises(BackupRefused, match="sealed with k1, and the keyring holds k2 only"),
        opened(tmp_path / "backup", Keyring([NEW])),
    ):
        pass
    with opened(tmp_path / "backup", Keyring([NEW, OLD])) as backup:
        assert [piece.key for piece in backup.pieces()] == [keys.KEYRING_KEY]


def test_list_that_the_file_holds_itself_is_left_out(tmp_path: Path) -> None:
    """As an earlier release saves it, which takes it for a key of something else."""
    listed = Piece(keys.names_key(7), "zset", ["stale.example.test", "0"])
    document = hash_piece(keys.host_key("a.example.test"), {"version": "v"})
    tally = Tally()
    for piece in (document, listed):
        tally.add(piece)
    keyring = Keyring([OLD])
    header = Header("b1", 1, SCHEMA_VERSION, "9.9")
    with SealedWriter(tmp_path / "backup", header, keyring) as writer:
        writer.write(line_of(document) + line_of(listed) + tally.line())
        writer.finish()
    with opened(tmp_path / "backup", keyring) as backup:
        entry, names = keys.names_key(keys.bucket_of("a.example.test")), ["a.example.test", "0"]
        assert list(backup.pieces()) == [document, Piece(entry, "zset", names, is_first=False)]


@pytest.mark.parametrize(
    ("name", "told"),
    [("missing", "No such file"), (".", "must be a regular file"), ("pipe", "must be a regular")],
)
def test_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, told: str) -> None:
    place = tmp_path / name
    if name == "pipe":
        os.mkfifo(place)  # which nobody writes to
    with (
        pytest.raises(BackupRefused, match=f"{place} can't be read: .*{told}"),
        opened(place, Keyring([OLD])),
    ):
        pass
