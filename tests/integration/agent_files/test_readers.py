"""What other processes see while versions are swapped: matching pairs, and never a key of others.

The readers run beside the writer and count. How often they come to look depends on the machine, so
only what they must never see is asserted, and that they saw anything at all.
"""

import contextlib
import glob
import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from gateway.agent.lineage import FileAccess, InstallFailed, Lineage, Unusable
from gateway.client import Bundle
from tests.integration.agent_files.apart import NOBODY, Apart, become_nobody
from tests.integration.agent_files.conftest import HOSTNAME
from tests.lab.process import wait_until

_SWAPS = 500
_STRANGERS_SWAPS = 300


def _matches(chain: bytes, key: bytes) -> bool:
    loaded = load_pem_private_key(key, password=None)
    return x509.load_pem_x509_certificate(chain).public_key() == loaded.public_key()


def _read_pairs(live: Path, begun: Path, end: Path) -> dict[str, int]:
    """Read pairs, each through the folder that the link leads to, until the file `end` is there."""
    seen: Counter[str] = Counter()
    folders = set()
    while not end.exists():
        folder = live.resolve()
        try:
            chain, key = (folder / "chain.pem").read_bytes(), (folder / "privkey.pem").read_bytes()
        except FileNotFoundError:
            # Two swaps have come in between: the version is gone as a whole.
            seen["gone"] += 1
            continue
        folders.add(folder)
        seen["matching" if _matches(chain, key) else "mismatching"] += 1
        begun.touch()
    return {**seen, "folders": len(folders)}


@contextlib.contextmanager
def _running(apart: Apart, begun: Path, end: Path) -> Iterator[None]:
    try:
        wait_until(begun.exists, "the reader reads")
        yield
    finally:
        end.touch()
        if not begun.exists():
            apart.kill()


def test_reader_sees_matching_pairs_only_while_versions_are_swapped(
    memory_folder: Path, bundles: list[Bundle]
) -> None:
    lineage = Lineage(memory_folder, HOSTNAME, FileAccess())
    lineage.install(bundles[0])
    begun, end = memory_folder / "begun", memory_folder / "end"
    reader = Apart(memory_folder, _read_pairs, lineage.live, begun, end)
    with _running(reader, begun, end):
        for bundle in islice(cycle(bundles[1:]), _SWAPS):
            lineage.install(bundle)
    seen = reader.answer()
    assert "mismatching" not in seen
    assert seen["folders"] > 1


def _look_by_lineage(certificates_dir: Path, begun: Path, end: Path) -> dict[str, int]:
    lineage = Lineage(certificates_dir, HOSTNAME, FileAccess())
    seen: Counter[str] = Counter()
    while not end.exists():
        is_usable = not isinstance(lineage.read(), Unusable)
        seen["usable" if is_usable else str(lineage.fault)] += 1
        begun.touch()
    return dict(seen)


def test_agent_itself_always_finds_a_pair_while_versions_are_swapped(
    memory_folder: Path, bundles: list[Bundle]
) -> None:
    lineage = Lineage(memory_folder, HOSTNAME, FileAccess())
    lineage.install(bundles[0])
    begun, end = memory_folder / "begun", memory_folder / "end"
    reader = Apart(memory_folder, _look_by_lineage, memory_folder, begun, end)
    with _running(reader, begun, end):
        for bundle in islice(cycle(bundles[1:]), _SWAPS):
            lineage.install(bundle)
    assert list(reader.answer()) == ["usable"]


def _try_keys(root: Path, begun: Path, end: Path) -> dict[str, int]:
    """As nobody, try to open every file that is there at any moment."""
    become_nobody()
    seen: Counter[str] = Counter()
    while not end.exists():
        # Those of a version that is still being made too.
        for found in glob.glob(f"{root}/archive/{HOSTNAME}/*/*.pem", include_hidden=True):
            path = Path(found)
            kind = "key" if path.name in ("privkey.pem", "combined.pem") else "public"
            try:
                with path.open("rb"):
                    seen[f"{kind} opened"] += 1
            except PermissionError:
                seen[f"{kind} refused"] += 1
            except FileNotFoundError:
                seen[f"{kind} gone"] += 1
        if seen["public opened"]:
            begun.touch()
    return dict(seen)


def test_stranger_opens_no_key_at_any_moment(memory_folder: Path, bundles: list[Bundle]) -> None:
    answers = memory_folder / "answers"
    answers.mkdir()
    answers.chmod(0o777)
    taken = cycle(bundles)
    accesses = cycle(
        [FileAccess(), FileAccess(key_mode=0o640, combined=True), FileAccess(key_mode=0o400)]
    )
    Lineage(memory_folder, HOSTNAME, FileAccess()).install(next(taken))
    begun, end = answers / "begun", answers / "end"
    stranger = Apart(answers, _try_keys, memory_folder, begun, end)
    with _running(stranger, begun, end):
        for bundle, access in islice(zip(cycle(bundles), accesses, strict=False), _STRANGERS_SWAPS):
            Lineage(memory_folder, HOSTNAME, access).install(bundle)
    seen = stranger.answer()
    assert "key opened" not in seen
    assert seen["key refused"] > 0


# --- owners and groups


@pytest.fixture
def ids() -> tuple[int, int]:
    """A user and a group that files may be given to: others' for root, who else may give none."""
    return (NOBODY - 1, NOBODY - 2) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


def _access_of(path: Path) -> tuple[int, int, str]:
    status = path.stat()
    return status.st_uid, status.st_gid, oct(stat.S_IMODE(status.st_mode))


def test_files_belong_to_the_owner_and_group_that_are_configured(
    tmp_path: Path, bundles: list[Bundle], ids: tuple[int, int]
) -> None:
    access = FileAccess(owner=ids[0], group=ids[1], key_mode=0o440, combined=True)
    lineage = Lineage(tmp_path, HOSTNAME, access)
    lineage.install(bundles[0])
    assert {path.name: _access_of(path) for path in lineage.live.iterdir()} == {
        "cert.pem": (*ids, "0o644"),
        "chain.pem": (*ids, "0o644"),
        "fullchain.pem": (*ids, "0o644"),
        "privkey.pem": (*ids, "0o440"),
        "combined.pem": (*ids, "0o440"),
    }


def test_same_files_with_the_same_owner_and_group_are_left_alone(
    tmp_path: Path, bundles: list[Bundle], ids: tuple[int, int]
) -> None:
    lineage = Lineage(tmp_path, HOSTNAME, FileAccess(owner=ids[0], group=ids[1]))
    assert lineage.install(bundles[0]) == lineage.install(bundles[0])


def test_previous_version_gets_the_present_owner_and_group(
    tmp_path: Path, bundles: list[Bundle], ids: tuple[int, int]
) -> None:
    old = Lineage(tmp_path, HOSTNAME, FileAccess()).install(bundles[0])
    access = FileAccess(owner=ids[0], group=ids[1], key_mode=0o640)
    Lineage(tmp_path, HOSTNAME, access).install(bundles[1])
    key = tmp_path / "archive" / HOSTNAME / old / "privkey.pem"
    assert _access_of(key) == (*ids, "0o640")


def _sweep_as_nobody(folder: Path) -> str | None:
    become_nobody()
    return Lineage(folder, HOSTNAME, FileAccess()).sweep()


def test_previous_version_whose_key_cannot_be_closed_is_removed(
    open_folder: Path, bundles: list[Bundle]
) -> None:
    # The keys are root's; to close them to others, a user without its rights needs them anew.
    lineage = Lineage(open_folder / "files", HOSTNAME, FileAccess(key_mode=0o640))
    versions = [lineage.install(bundle) for bundle in bundles[:2]]
    for path in [open_folder / "files", *(open_folder / "files").rglob("*")]:
        os.chown(path, -1, NOBODY, follow_symlinks=False)
        if path.is_dir():
            os.chown(path, NOBODY, -1)
    told = Apart(open_folder, _sweep_as_nobody, open_folder / "files").answer()
    archive = open_folder / "files" / "archive" / HOSTNAME
    assert os.listdir(archive) == versions[1:]
    assert told == (
        f"cannot set the access of {archive / versions[0] / 'privkey.pem'}: "
        f"Operation not permitted; so {archive / versions[0]} was removed"
    )


def _install_for_root(folder: Path, bundle: Bundle) -> str | None:
    become_nobody()
    try:
        Lineage(folder, HOSTNAME, FileAccess(owner=0)).install(bundle)
    except InstallFailed as failed:
        return str(failed)
    return None


def test_owner_that_may_not_be_given_is_told_and_nothing_is_left(
    open_folder: Path, bundles: list[Bundle]
) -> None:
    shutil.chown(open_folder, NOBODY)
    certificates = open_folder / "certificates"
    fault = Apart(open_folder, _install_for_root, certificates, bundles[0]).answer()
    assert fault is not None
    assert fault.startswith(f"cannot give user 0 {certificates}/archive/{HOSTNAME}/.new-")
    assert fault.endswith("/cert.pem: Operation not permitted")
    assert [each for each in certificates.rglob("*") if not each.is_dir()] == []
