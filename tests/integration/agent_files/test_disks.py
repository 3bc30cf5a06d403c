"""Disks that are full, read-only, another one or not ours: nothing good is lost, one sentence says.

Each scenario runs in a process of its own with mounts of its own.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.durable import DiskFault, make_folder
from gateway.agent.lineage import FileAccess, InstallFailed, Lineage, Unusable
from gateway.agent.lock import agent_lock
from gateway.agent.memory import Memories, Memory
from gateway.client import Bundle
from tests.integration.agent_files.apart import Apart, become_nobody
from tests.integration.agent_files.conftest import HOSTNAME
from tests.lab import disks

_PAGE_KIB = 4


def _tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def _try_install(lineage: Lineage, bundle: Bundle) -> dict[str, Any]:
    """Install, and what is there then."""
    before = _tree(lineage.live.parents[1])
    try:
        lineage.install(bundle)
        fault = None
    except InstallFailed as failed:
        fault = str(failed)
    live = lineage.read()
    after = _tree(lineage.live.parents[1])
    serial = None if isinstance(live, Unusable) else live.serial_number
    return {"fault": fault, "serial": serial, "is_as_before": after == before}


def _full(folder: Path, old: Bundle, new: Bundle, sizes: list[str]) -> list[dict[str, Any]]:
    """Try on a disk that begins full and is enlarged each time."""
    disks.have_own_mounts()
    folder.mkdir()
    disks.mount_memory(folder, "size=1m,mode=755")
    lineage = Lineage(folder / "certificates", HOSTNAME, FileAccess())
    lineage.install(old)
    outcomes = []
    for size in sizes:
        disks.resize_memory(folder, size)
        outcomes.append(_try_install(lineage, new))
    return outcomes


def _sizes_in_pages(folder: Path, old: Bundle, new: Bundle) -> list[dict[str, Any]]:
    # The old version takes four pages of content; each step has one more for the new one.
    return _full(folder, old, new, [f"size={pages * _PAGE_KIB}k" for pages in range(4, 12)])


def _sizes_in_inodes(folder: Path, old: Bundle, new: Bundle) -> list[dict[str, Any]]:
    # The old version has eleven with its folders and the link.
    return _full(folder, old, new, [f"nr_inodes={inodes}" for inodes in range(11, 22)])


Scenario = Callable[[Path, Bundle, Bundle], list[dict[str, Any]]]


@pytest.fixture(scope="module", params=[_sizes_in_pages, _sizes_in_inodes], ids=["bytes", "names"])
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, bundles: list[Bundle]
) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("full")
    scenario: Scenario = request.param
    answer: list[dict[str, Any]] = Apart(folder, scenario, folder / "disk", *bundles[:2]).answer()
    return answer


def test_full_disk_is_told_with_the_path(outcomes: list[dict[str, Any]]) -> None:
    faults = [each["fault"] for each in outcomes if each["fault"]]
    assert len(faults) >= 3
    for fault in faults:
        assert fault.startswith("cannot ")
        assert HOSTNAME in fault
        assert fault.endswith(": No space left on device")


def test_full_disk_keeps_the_old_version_live(
    outcomes: list[dict[str, Any]], bundles: list[Bundle]
) -> None:
    failed = [each for each in outcomes if each["fault"]]
    assert {each["serial"] for each in failed} == {bundles[0].serial_number}


def test_full_disk_is_left_as_it_was(outcomes: list[dict[str, Any]]) -> None:
    assert all(each["is_as_before"] for each in outcomes if each["fault"])


def test_enlarged_disk_takes_the_new_version(
    outcomes: list[dict[str, Any]], bundles: list[Bundle]
) -> None:
    assert outcomes[-1]["fault"] is None
    assert outcomes[-1]["serial"] == bundles[1].serial_number


def _full_memory(folder: Path) -> dict[str, Any]:
    disks.have_own_mounts()
    folder.mkdir()
    disks.mount_memory(folder, "size=64k")
    memories = Memories(folder)
    memories.write(HOSTNAME, Memory(asked_at_ms=1))
    filling = (folder / "filler").open("wb", buffering=0)
    with filling, contextlib.suppress(OSError):
        while True:
            filling.write(b"\0" * 4096)
    with pytest.raises(DiskFault) as caught:
        memories.write(HOSTNAME, Memory(asked_at_ms=2))
    remembered = memories.read(HOSTNAME).memory.asked_at_ms
    return {"fault": str(caught.value), "remembered": remembered, "tree": _tree(folder / "state")}


def test_memory_on_a_full_disk_is_what_it_was(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    assert Apart(tmp_path, _full_memory, disk).answer() == {
        "fault": f"cannot write {disk}/state/.new-{HOSTNAME}.json: No space left on device",
        "remembered": 1,
        "tree": [f"{HOSTNAME}.json"],
    }


def _read_only(folder: Path, old: Bundle, new: Bundle) -> dict[str, Any]:
    lineage = Lineage(folder / "certificates", HOSTNAME, FileAccess())
    lineage.install(old)
    memories = Memories(folder)
    memories.write(HOSTNAME, Memory(asked_at_ms=1))
    disks.have_own_mounts()
    disks.make_read_only(folder)
    same, other = _try_install(lineage, old), _try_install(lineage, new)
    with pytest.raises(DiskFault) as caught:
        memories.write(HOSTNAME, Memory(asked_at_ms=2))
    with pytest.raises(DiskFault) as not_locked, agent_lock(folder):
        pass
    return {
        "same": same,
        "other": other,
        "memory": str(caught.value),
        "lock": str(not_locked.value),
        "remembered": memories.read(HOSTNAME).memory.asked_at_ms,
    }


@pytest.fixture(scope="module")
def read_only(
    tmp_path_factory: pytest.TempPathFactory, bundles: list[Bundle]
) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("read-only")
    disk = folder / "disk"
    return disk, Apart(folder, _read_only, disk, *bundles[:2]).answer()


def test_read_only_disk_keeps_the_old_version(
    read_only: tuple[Path, dict[str, Any]], bundles: list[Bundle]
) -> None:
    _, seen = read_only
    assert seen["other"]["serial"] == bundles[0].serial_number
    assert seen["other"]["is_as_before"]


def test_read_only_disk_is_told(read_only: tuple[Path, dict[str, Any]]) -> None:
    disk, seen = read_only
    fault = seen["other"]["fault"]
    assert fault.startswith(f"cannot make the folder {disk}/certificates/archive/{HOSTNAME}/")
    assert fault.endswith(": Read-only file system")


def test_read_only_disk_is_no_fault_while_nothing_changes(
    read_only: tuple[Path, dict[str, Any]],
) -> None:
    _, seen = read_only
    assert seen["same"]["fault"] is None


def test_memory_on_a_read_only_disk_is_what_it_was(
    read_only: tuple[Path, dict[str, Any]],
) -> None:
    disk, seen = read_only
    assert seen["memory"].endswith(": Read-only file system")
    assert seen["memory"].startswith(f"cannot write {disk}/state/")
    assert seen["remembered"] == 1


def test_lock_on_a_read_only_disk_is_told(read_only: tuple[Path, dict[str, Any]]) -> None:
    disk, seen = read_only
    assert seen["lock"] == f"cannot open the lock {disk}/agent.lock: Read-only file system"


def _archive_elsewhere(folder: Path, old: Bundle, new: Bundle) -> list[dict[str, Any]]:
    (folder / "archive").mkdir(parents=True)
    disks.have_own_mounts()
    disks.mount_memory(folder / "archive", "size=1m,mode=755")
    lineage = Lineage(folder, HOSTNAME, FileAccess())
    return [_try_install(lineage, bundle) for bundle in (old, new)]


def test_archive_may_be_another_disk(tmp_path: Path, bundles: list[Bundle]) -> None:
    apart = Apart(tmp_path, _archive_elsewhere, tmp_path / "certificates", *bundles[:2])
    assert [(each["fault"], each["serial"]) for each in apart.answer()] == [
        (None, bundle.serial_number) for bundle in bundles[:2]
    ]


def _as_nobody(folder: Path, new: Bundle) -> dict[str, Any]:
    become_nobody()
    return _try_install(Lineage(folder, HOSTNAME, FileAccess()), new)


def _make_as_nobody(folder: Path) -> str | None:
    become_nobody()
    try:
        make_folder(folder)
    except DiskFault as fault:
        return str(fault)
    return None


def test_folder_that_somebody_else_began_is_not_taken_over(open_folder: Path) -> None:
    open_folder.chmod(0o777)
    begun = open_folder / ".new-live"
    begun.mkdir()
    assert Apart(open_folder, _make_as_nobody, open_folder / "live").answer() == (
        f"{begun} is another user's folder and in the way: remove it"
    )


def test_folder_of_somebody_else_is_told(open_folder: Path, bundles: list[Bundle]) -> None:
    (open_folder / "closed").mkdir()
    lineage = Lineage(open_folder / "closed", HOSTNAME, FileAccess())
    lineage.install(bundles[0])
    outcome = Apart(open_folder, _as_nobody, open_folder / "closed", bundles[1]).answer()
    assert outcome["fault"].endswith(": Permission denied")
    assert lineage.read() == bundles[0]
