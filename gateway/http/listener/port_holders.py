"""Which processes listen at a port, by what Linux shows under /proc.

Reads only; `listening_sockets` is pure. Must not raise: it explains a failure that is told anyway.
Called by `binding`.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import pwd
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.contract.faults import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

_LISTENING: Final = "0A"  # TCP_LISTEN of the kernel's include/net/tcp_states.h
_TABLES: Final = ("net/tcp", "net/tcp6")
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has a socket open."""

    pid: int
    command: str


def holders_sentence(host: str, port: int, proc: Path = Path("/proc")) -> str:
    """Who listens where `host` (an IP literal) and `port` would, as the end of a sentence.

    `process 12 ("nginx")`, or what can be said of one that cannot be seen from here: those of other
    users, of other containers, and whatever keeps its memory from being read, as a gateway does.
    """
    sockets: dict[int, int] = {}
    for table in _TABLES:
        with contextlib.suppress(OSError):
            sockets |= listening_sockets((proc / table).read_text(), host, port)
    links = {f"socket:[{inode}]" for inode in sockets}
    holders = [holder for holder in _processes(proc) if _has_open(proc, holder, links)]
    if not holders:
        users = ", ".join(sorted({_user(uid) for uid in sockets.values()}))
        return f"a process{f' of {users}' if users else ''} that cannot be seen from here"
    named = [f"process {each.pid} ({quoted(each.command)})" for each in holders[:_MOST_NAMED]]
    more = len(holders) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def listening_sockets(table: str, host: str, port: int) -> dict[int, int]:
    """The sockets in a /proc/net/tcp or tcp6 that are in an address's way: inode to user id."""
    wanted = ipaddress.ip_address(host)
    found = {}
    for line in table.splitlines()[1:]:
        columns = line.split()
        try:
            address, _, digits = columns[1].partition(":")
            at = _address(address)
            is_in_the_way = at == wanted or at.is_unspecified or wanted.is_unspecified
            if int(digits, 16) == port and columns[3] == _LISTENING and is_in_the_way:
                found[int(columns[9])] = int(columns[7])
        except (IndexError, ValueError):
            continue
    return found


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _address(digits: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Read the kernel's form: 32 bits at a time, each in the machine's own byte order."""
    words = [int(digits[start : start + 8], 16) for start in range(0, len(digits), 8)]
    return ipaddress.ip_address(struct.pack(f"={len(words)}I", *words))


def _processes(proc: Path) -> Iterator[Holder]:
    for folder in sorted(proc.iterdir(), key=lambda each: (len(each.name), each.name)):
        if folder.name.isdecimal():
            try:
                command = (folder / "comm").read_text(errors="replace").rstrip("\n")
            except OSError:
                continue  # it has ended meanwhile
            yield Holder(int(folder.name), command)


def _has_open(proc: Path, holder: Holder, links: set[str]) -> bool:
    folder = proc / str(holder.pid) / "fd"
    try:
        return any(_target(entry) in links for entry in folder.iterdir())
    except OSError:
        return False  # another user's, or it has ended


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""
