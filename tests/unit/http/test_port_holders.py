"""Who holds a port, by files as those under /proc."""

import os
from pathlib import Path

import pytest

from gateway.http.listener.port_holders import holders_sentence, listening_sockets

HEAD = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout\n"
)


def line(address: str, port: int, inode: int, *, state: str = "0A", uid: int = 4_000_001) -> str:
    return (
        f"   0: {address}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000"
        f" {uid:>5}        0 {inode} 1 0000000000000000 100 0 0 10 0\n"
    )


V4_LOOPBACK, V4_ANY = "0100007F", "00000000"
V6_LOOPBACK, V6_ANY = "00000000000000000000000001000000", "0" * 32


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", {1, 2, 4}),
        ("127.0.0.2", {2, 4}),
        ("0.0.0.0", {1, 2, 3, 4}),  # noqa: S104 (nothing listens)
        ("::1", {2, 3, 4}),
        ("::", {1, 2, 3, 4}),
    ],
)
def test_sockets_in_the_way_of_an_address_are_found(host: str, expected: set[int]) -> None:
    table = HEAD + "".join(
        [
            line(V4_LOOPBACK, 8053, 1),
            line(V4_ANY, 8053, 2),
            line(V6_LOOPBACK, 8053, 3),
            line(V6_ANY, 8053, 4),
            line(V4_LOOPBACK, 8054, 5),
            line(V4_LOOPBACK, 8053, 6, state="01"),  # a connection, no listener
        ]
    )
    assert set(listening_sockets(table, host, 8053)) == expected


@pytest.mark.parametrize("text", ["", HEAD, HEAD + "nonsense\n", HEAD + "0: zz:1F75 x 0A\n"])
def test_table_without_a_listener_or_in_another_form_names_nobody(text: str) -> None:
    assert listening_sockets(text, "127.0.0.1", 8053) == {}


def proc(folder: Path, table: str, **processes: tuple[str, int]) -> Path:
    """A /proc in which each process, by `p<pid>`, has a name and one socket."""
    (folder / "net").mkdir()
    (folder / "net" / "tcp").write_text(table)
    for name, (command, inode) in processes.items():
        descriptors = folder / name[1:] / "fd"
        descriptors.mkdir(parents=True)
        (folder / name[1:] / "comm").write_text(f"{command}\n")
        os.symlink(f"socket:[{inode}]", descriptors / "7")
        os.symlink("/dev/null", descriptors / "0")
    return folder


def test_process_is_named_with_its_command(tmp_path: Path) -> None:
    table = HEAD + line(V4_LOOPBACK, 8053, 77)
    folder = proc(tmp_path, table, p12=("ngi\x1b[2Jnx", 77), p13=("other", 78))
    sentence = holders_sentence("127.0.0.1", 8053, folder)
    assert sentence == 'process 12 ("ngi\\u{1b}[2Jnx")'


def test_several_processes_of_one_socket_are_named_up_to_a_number(tmp_path: Path) -> None:
    table = HEAD + line(V4_LOOPBACK, 8053, 77)
    many = {f"p{pid}": ("nginx", 77) for pid in (9, 10, 11, 12, 13)}
    sentence = holders_sentence("127.0.0.1", 8053, proc(tmp_path, table, **many))
    assert sentence == 'process 9 ("nginx"), process 10 ("nginx"), process 11 ("nginx") and 2 more'


def test_process_that_cannot_be_seen_is_told_by_its_user(tmp_path: Path) -> None:
    table = HEAD + line(V4_LOOPBACK, 8053, 77)
    sentence = holders_sentence("127.0.0.1", 8053, proc(tmp_path, table))
    assert sentence == "a process of user 4000001 that cannot be seen from here"


def test_socket_that_nothing_tells_of_is_somebodys_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    sentence = holders_sentence("127.0.0.1", 8053, tmp_path / "empty")
    assert sentence == "a process that cannot be seen from here"
