"""Who holds a lock by the kernel's list. A list that is real: tests/integration/agent_files."""

import pytest

from gateway.agent.running import Holder, device_of, find_holder, mount_in

DEVICE, INODE = (0xFE, 0), 2508153
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


def test_lock_on_another_tmpfs_is_no_holder() -> None:
    line = HELD.replace("fe:00", "00:1b")
    assert find_holder([line], (0, 0x2F), INODE) is None
    assert find_holder([line], (0, 0x1B), INODE) == Holder(4711)


def test_device_is_that_of_the_files_mount() -> None:
    mounts = ["28 1 254:0 / / rw - ext4 /dev/vda rw", "29 28 0:25 / /srv rw - tmpfs tmpfs rw", ""]
    told = "pos:\t0\nmnt_id:\t29\nino:\t2\n"
    assert device_of(mounts, mount_in(told)) == (0, 25)
    assert device_of(mounts, "30") is None
    assert device_of(mounts, mount_in("pos:\t0\n")) is None
