"""Writing so that there is the old or the new: names, modes and the order of what reaches the disk.

No machine can be made to lose its power at a chosen moment, so the order is looked at instead: the
calls are recorded on their way to the kernel.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.agent import durable
from gateway.agent.durable import DiskFault


@pytest.fixture
def strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def deeds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced and renamed, by its name, in order."""
    seen: list[str] = []
    fsync, rename, replace = os.fsync, os.rename, os.replace

    def synced(descriptor: int) -> None:
        seen.append(f"sync {os.path.basename(os.readlink(f'/proc/self/fd/{descriptor}'))}")
        fsync(descriptor)

    def renamed(source: Path, target: Path) -> None:
        seen.append(f"rename {Path(source).name} {Path(target).name}")
        rename(source, target)

    def replaced(source: Path, target: Path) -> None:
        seen.append(f"rename {Path(source).name} {Path(target).name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    monkeypatch.setattr(os, "replace", replaced)
    return seen


def _mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o7777)


def test_file_is_on_disk_before_it_gets_its_name_and_the_name_after(
    tmp_path: Path, deeds: list[str]
) -> None:
    durable.replace_file(tmp_path / "file", b"new", 0o644)
    assert deeds == ["sync .new-file", "rename .new-file file", f"sync {tmp_path.name}"]


def test_link_is_on_disk_when_it_is_replaced(tmp_path: Path, deeds: list[str]) -> None:
    durable.replace_link(tmp_path / "link", "there")
    assert deeds == ["rename .new-link link", f"sync {tmp_path.name}"]


def test_folder_is_on_disk_with_those_above_it(tmp_path: Path, deeds: list[str]) -> None:
    durable.make_folder(tmp_path / "one" / "two")
    assert deeds == [
        "rename .new-one one",
        f"sync {tmp_path.name}",
        "rename .new-two two",
        "sync one",
    ]


@pytest.mark.usefixtures("strict_umask")
def test_folders_are_open_to_everybody_whatever_the_umask(tmp_path: Path) -> None:
    durable.make_folder(tmp_path / "one" / "two")
    assert [_mode(tmp_path / "one"), _mode(tmp_path / "one" / "two")] == ["0o755", "0o755"]


def test_folder_that_exists_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir(0o700)
    durable.make_folder(tmp_path / "one")
    assert _mode(tmp_path / "one") == "0o700"


def test_folder_of_a_killed_run_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / ".new-one").mkdir(0o700)
    durable.make_folder(tmp_path / "one")
    assert os.listdir(tmp_path) == ["one"]
    assert _mode(tmp_path / "one") == "0o755"


def test_link_in_the_place_of_a_new_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir(0o700)
    (tmp_path / ".new-one").symlink_to("secret")
    fault = f"cannot open the folder {tmp_path}/.new-one: Not a directory"
    with pytest.raises(DiskFault, match=fault):
        durable.make_folder(tmp_path / "one")
    assert _mode(tmp_path / "secret") == "0o700"


def test_folder_that_is_created_is_not_there_before(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir(0o700)
    with pytest.raises(DiskFault, match=f"cannot make the folder {tmp_path}/one: File exists"):
        durable.create_folder(tmp_path / "one")


def test_folder_is_refused_where_a_file_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("")
    with pytest.raises(DiskFault, match=f"cannot make the folder {tmp_path}/one: Not a directory"):
        durable.make_folder(tmp_path / "one")


@pytest.mark.usefixtures("strict_umask")
@pytest.mark.parametrize("mode", [0o400, 0o440, 0o600, 0o640, 0o644])
def test_file_has_its_mode_whatever_the_umask(tmp_path: Path, mode: int) -> None:
    durable.write_file(tmp_path / "file", b"content", mode)
    assert _mode(tmp_path / "file") == oct(mode)


def test_file_that_exists_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(DiskFault, match="File exists"):
        durable.write_file(tmp_path / "file", b"new", 0o644)
    assert (tmp_path / "file").read_text() == "old"


def test_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").symlink_to("elsewhere")
    with pytest.raises(DiskFault, match="File exists"):
        durable.write_file(tmp_path / "file", b"new", 0o644)
    assert not (tmp_path / "elsewhere").exists()


def test_long_content_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    # A kernel may take less than it is given; no file system here does.
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:10]))
    durable.write_file(tmp_path / "file", b"0123456789" * 10 + b"end", 0o644)
    assert (tmp_path / "file").read_bytes() == b"0123456789" * 10 + b"end"


def test_link_is_not_made_over_a_persons_file(tmp_path: Path) -> None:
    (tmp_path / ".new-link").write_text("mine")
    fault = f"cannot make the link {tmp_path}/.new-link: File exists"
    with pytest.raises(DiskFault, match=fault):
        durable.replace_link(tmp_path / "link", "there")
    assert (tmp_path / ".new-link").read_text() == "mine"


def test_no_file_is_left_when_it_cannot_get_its_name(tmp_path: Path) -> None:
    (tmp_path / "name").mkdir()
    with pytest.raises(DiskFault, match=f"cannot replace {tmp_path}/name: Is a directory"):
        durable.replace_file(tmp_path / "name", b"new", 0o644)
    assert os.listdir(tmp_path) == ["name"]


def test_no_link_is_left_when_it_cannot_get_its_name(tmp_path: Path) -> None:
    (tmp_path / "name").mkdir()
    with pytest.raises(DiskFault, match=f"cannot replace {tmp_path}/name: Is a directory"):
        durable.replace_link(tmp_path / "name", "there")
    assert os.listdir(tmp_path) == ["name"]


def test_finished_name_is_of_what_is_being_made_only() -> None:
    assert [durable.finished_name(each) for each in (".new-a.example", "a.example", "")] == [
        "a.example",
        "",
        "",
    ]
