"""A backup's file: what was sealed comes back whole, and nothing else ever opens."""

import contextlib
import errno
import io
import os
import resource
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from gateway.backup.sealed_file import (
    CHUNK_BYTES,
    BackupRefused,
    Header,
    SealedReader,
    SealedWriter,
)
from gateway.certificates.sealing import Keyring

KEY = bytes(range(32))
KEYRING = Keyring([("k1", KEY)])
HEADER = Header("b1", 1_800_000_000_000, 1, "1.0")
SEALED_CHUNK = CHUNK_BYTES + 16


def seal(place: Path, content: bytes) -> None:
    with SealedWriter(place, HEADER, KEYRING) as writer:
        writer.write(content)
        writer.finish()


def sealed(folder: Path, content: bytes) -> bytes:
    place = folder / f"backup-{secrets.token_hex(4)}"
    seal(place, content)
    return place.read_bytes()


def reader(raw: bytes, keyring: Keyring = KEYRING) -> SealedReader:
    return SealedReader(io.BytesIO(raw), "FILE", keyring)


def read(raw: bytes, keyring: Keyring = KEYRING) -> bytes:
    return b"".join(reader(raw, keyring).lines())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("backups")


@pytest.fixture(scope="module")
def content() -> bytes:
    """Four chunks, the last one not full."""
    lines = [b"%d %s\n" % (number, b"x" * 997) for number in range(230)]
    return b"".join(lines)


@pytest.fixture(scope="module")
def raw(folder: Path, content: bytes) -> bytes:
    return sealed(folder, content)


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 200_000])
def test_content_comes_back_at_every_size(folder: Path, size: int) -> None:
    content = b"" if size == 0 else b"a" * (size - 1) + b"\n"
    raw = sealed(folder, content)
    opened = reader(raw)
    assert opened.header == HEADER
    assert [b"".join(opened.lines()) for _ in range(2)] == [content, content]


def test_content_is_nowhere_in_the_file(raw: bytes) -> None:
    assert b"x" * 20 not in raw


def test_same_content_is_never_sealed_the_same(folder: Path, raw: bytes, content: bytes) -> None:
    first, second = (each.split(b"\n", 1)[1] for each in (raw, sealed(folder, content)))
    assert first[:64] != second[:64]


@given(data=st.data())
def test_no_altered_byte_is_taken(raw: bytes, content: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(raw) - 1), "place")
    bits = data.draw(st.integers(1, 255), "bits")
    altered = bytearray(raw)
    altered[place] ^= bits
    taken: list[bytes] = []
    with pytest.raises(BackupRefused):
        taken.extend(reader(bytes(altered)).lines())
    # What came before it is a beginning of what was sealed, and nothing else.
    assert content.startswith(b"".join(taken))


@given(length=st.integers(0, 250_000))
def test_no_cut_file_is_taken(raw: bytes, length: int) -> None:
    if length < len(raw):
        with pytest.raises(BackupRefused):
            read(raw[:length])


def _parts(raw: bytes) -> list[bytes]:
    clear, _, stream = raw.partition(b"\n")
    cuts = range(0, len(stream), SEALED_CHUNK)
    return [clear + b"\n", *(stream[start : start + SEALED_CHUNK] for start in cuts)]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda head, one, two, *rest: [head, two, one, *rest],
        lambda head, one, two, *rest: [head, one, *rest],
        lambda head, one, *rest: [head, one, one, *rest],
        lambda head, *rest: [head, *rest[:-1]],
        lambda head, *rest: [head, *rest, b"x"],
        lambda head, *rest: [head, *rest, rest[-1]],
        lambda head, *_: [head],
    ],
    ids=["swapped", "left out", "repeated", "cut", "longer", "last repeated", "empty"],
)
def test_chunks_are_taken_in_their_places_only(
    raw: bytes, spoil: Callable[..., list[bytes]]
) -> None:
    with pytest.raises(BackupRefused, match="altered or cut"):
        read(b"".join(spoil(*_parts(raw))))


def test_chunk_of_another_backup_is_refused(folder: Path, raw: bytes, content: bytes) -> None:
    theirs, own = _parts(sealed(folder, content)), _parts(raw)
    with pytest.raises(BackupRefused, match=f"from byte {len(own[0]) + SEALED_CHUNK} on"):
        read(b"".join([own[0], own[1], theirs[2], *own[3:]]))
    with pytest.raises(BackupRefused, match="from byte"):
        read(b"".join([theirs[0], *own[1:]]))


def test_missing_key_is_named_with_those_there_are(raw: bytes) -> None:
    other = Keyring([("k2", bytes(32)), ("k3", KEY)])
    with pytest.raises(BackupRefused, match=r'sealed with the key "k1".*holds k2, k3 only'):
        read(raw, other)


def test_another_key_of_the_same_name_is_told(raw: bytes) -> None:
    with pytest.raises(BackupRefused, match='key "k1" of the keyring is not the one'):
        read(raw, Keyring([("k1", bytes(32))]))


def test_backup_opens_when_its_key_is_not_the_first_any_more(raw: bytes, content: bytes) -> None:
    assert read(raw, Keyring([("k2", bytes(32)), ("k1", KEY)])) == content


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (b"", "no backup of a gateway"),
        (b"hello\n", "no backup of a gateway"),
        (b"gateway-backup {", "no backup of a gateway"),
        (b"gateway-backup {\n", "first line was altered"),
        (b"gateway-backup []\n", "first line was altered"),
        (b'gateway-backup {"format": 1, "keyId": "k1"}\n', "first line was altered"),
        (b'gateway-backup {"format": 2, "keyId": "k1"}\n', "altered, or is of another release"),
    ],
)
def test_what_is_no_backup_is_called_so(head: bytes, told: str) -> None:
    with pytest.raises(BackupRefused, match=told):
        read(head)


def test_file_is_its_owners_alone_and_takes_the_place_of_a_former_one(tmp_path: Path) -> None:
    place = tmp_path / "backup"
    place.write_text("former")
    place.chmod(0o644)
    with SealedWriter(place, HEADER, KEYRING) as writer:
        writer.write(b"new\n")
        assert place.read_text() == "former"
        writer.finish()
    assert read(place.read_bytes()) == b"new\n"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["backup"]


def test_first_line_is_believed_only_with_what_was_sealed_under_it(raw: bytes) -> None:
    """What it says of its release is repeated to a person."""
    altered = raw.replace(b'"release": "1.0"', b'"release": "6.6"', 1)
    assert altered != raw
    with pytest.raises(BackupRefused, match="altered or cut"):
        reader(altered)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_regular_file_is_left_alone(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    place = tmp_path / "backup"
    make(place)
    before = place.lstat()
    with pytest.raises(BackupRefused, match="is there and is no regular file"):
        seal(place, b"new\n")
    assert place.lstat().st_ino == before.st_ino
    assert os.listdir(tmp_path) == ["backup"]


@pytest.mark.parametrize("is_there", [True, False])
def test_link_stays_and_what_it_names_is_replaced(tmp_path: Path, *, is_there: bool) -> None:
    folder, link = tmp_path / "disk", tmp_path / "backup"
    folder.mkdir()
    if is_there:
        (folder / "kept").write_text("former")
    link.symlink_to(folder / "kept")
    seal(link, b"new\n")
    assert link.is_symlink()
    assert read((folder / "kept").read_bytes()) == b"new\n"
    assert os.listdir(folder) == ["kept"]


def test_disk_that_fails_while_it_is_read_is_told(raw: bytes) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > SEALED_CHUNK:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().read(size)

    with pytest.raises(BackupRefused, match="FILE can't be read: Input/output error"):
        SealedReader(Failing(raw), "FILE", KEYRING)


def test_disk_that_is_full_leaves_the_former_file(tmp_path: Path) -> None:
    """A file that may not grow further fails as a disk does that has no room."""
    place = tmp_path / "backup"
    place.write_text("former")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            seal(place, b"x" * 500_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == ["backup"]
    assert place.read_text() == "former"


def test_unfinished_backup_leaves_nothing_and_the_former_file(tmp_path: Path) -> None:
    place = tmp_path / "backup"
    place.write_text("former")
    with contextlib.suppress(RuntimeError), SealedWriter(place, HEADER, KEYRING) as writer:
        writer.write(b"x" * 200_000)
        raise RuntimeError
    assert os.listdir(tmp_path) == ["backup"]
    assert place.read_text() == "former"
