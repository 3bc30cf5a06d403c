"""Who holds a lock by the kernel's list. A list that is real: tests/integration/agent_files."""

import os

import pytest

from gateway.agent.running import Holder, find_holder

DEVICE, INODE = os.makedev(0xFE, 0), 2508153
HELD = "1: FLOCK  ADVISORY  WRITE 4711 fe:00:2508153 0 EOF"


def test_holder_is_found_among_other_locks() -> None:
    others = ["1: POSIX  ADVISORY  READ 9 fe:00:2508153 128 128", "", "a line of another kind"]
    assert find_holder([*others, HELD], DEVICE, INODE) == Holder(4711)


@pytest.mark.parametrize(
    "line",
    [
        HELD.replace("2508153", "2508154"),
        HELD.replace("fe:00", "fe:01"),
        HELD.replace("WRITE", "READ "),
        HELD.replace("FLOCK", "POSIX"),
        HELD.replace("1: FLOCK", "1: -> FLOCK"),
        HELD.replace("4711", "<none>"),
        HELD.replace("fe:00:2508153", "fe:00"),
    ],
    ids=["file", "device", "shared", "posix", "waiting", "process", "form"],
)
def test_other_lock_is_no_holder(line: str) -> None:
    assert find_holder([line], DEVICE, INODE) is None


def test_holder_on_btrfs_is_found_though_its_devices_differ() -> None:
    line = HELD.replace("fe:00", "00:1b")
    assert find_holder([line], os.makedev(0, 0x2F), INODE) == Holder(4711)
