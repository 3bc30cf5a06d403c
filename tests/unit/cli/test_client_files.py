"""The four files of `--out`: all or none, of one hand, and nothing left beside them."""

import os
import signal
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway.cli.client_files import FileNotWritten, write_bundle
from gateway.client import Bundle, read_bundle
from tests.lab.certificates import LabAuthority

HOSTNAME = "relay.example.test"
FILES = ("cert.pem", "chain.pem", "fullchain.pem", "privkey.pem")


def new_bundle() -> Bundle:
    issued = LabAuthority().issue(HOSTNAME)
    return read_bundle(issued.chain_pem, issued.private_key_pem, HOSTNAME)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return new_bundle()


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_files_are_answered_by_their_names(tmp_path: Path, bundle: Bundle) -> None:
    folder = tmp_path / "tls" / "relay"
    assert write_bundle(folder, bundle) == {name: folder / name for name in FILES}
    assert names(folder) == list(FILES)


def test_what_a_killed_run_left_behind_is_taken_away(tmp_path: Path, bundle: Bundle) -> None:
    left = tmp_path / ".privkey.pem.new"
    left.write_text("half of a k")
    left.chmod(0o644)
    write_bundle(tmp_path, bundle)
    assert names(tmp_path) == list(FILES)
    assert stat.S_IMODE((tmp_path / "privkey.pem").stat().st_mode) == 0o600
    assert (tmp_path / "privkey.pem").read_text() == bundle.private_key_pem


@pytest.fixture
def seen_at_end(tmp_path: Path) -> Iterator[list[list[str]]]:
    """What is in the folder whenever a signal that would end the program is taken."""
    seen: list[list[str]] = []
    ending = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(each, lambda *_: seen.append(names(tmp_path))) for each in ending]
    yield seen
    for each, handler in zip(ending, before, strict=True):
        signal.signal(each, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_program_that_is_ended_while_it_writes_leaves_no_draft_of_a_key(
    tmp_path: Path,
    bundle: Bundle,
    seen_at_end: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    flush = os.fsync

    def ended_meanwhile(descriptor: int) -> None:
        os.kill(os.getpid(), number)
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", ended_meanwhile)
    write_bundle(tmp_path, bundle)
    assert seen_at_end
    assert all(seen == list(FILES) for seen in seen_at_end)


@pytest.mark.parametrize("name", FILES)
def test_folder_in_the_way_of_a_file_changes_nothing(
    tmp_path: Path, bundle: Bundle, name: str
) -> None:
    for each in FILES:
        (tmp_path / each).write_text("old")
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises(FileNotWritten) as refused:
        write_bundle(tmp_path, bundle)
    assert str(refused.value) == f"{tmp_path / name} cannot be written: Is a directory."
    assert names(tmp_path) == list(FILES)
    assert {(tmp_path / each).read_text() for each in FILES if each != name} == {"old"}


def test_key_is_replaced_first_and_what_is_new_is_told(
    tmp_path: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def refused_once(draft: Path, target: Path) -> Path:
        if target.name == "fullchain.pem":
            raise PermissionError(1, "Operation not permitted")
        return replace(draft, target)

    monkeypatch.setattr(Path, "replace", refused_once)
    with pytest.raises(FileNotWritten, match=r"permitted; privkey\.pem is new already\.$"):
        write_bundle(tmp_path, bundle)
    assert names(tmp_path) == ["privkey.pem"]


def test_files_of_several_that_write_at_once_are_of_one_hand(tmp_path: Path) -> None:
    bundles = [new_bundle() for _ in range(4)]
    with ThreadPoolExecutor(len(bundles)) as pool:
        for written in [pool.submit(write_bundle, tmp_path, each) for each in bundles * 5]:
            written.result()
    texts = {name: (tmp_path / name).read_text() for name in FILES}
    last = read_bundle(texts["fullchain.pem"], texts["privkey.pem"], HOSTNAME)
    assert texts["chain.pem"] == last.chain_pem
    assert texts["cert.pem"] == last.leaf_pem
    assert names(tmp_path) == list(FILES)
