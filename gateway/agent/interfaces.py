"""The addresses that a network interface of this machine has, and which of them will not last.

Responsible for reading them from the kernel: the addresses by `ifaddr`, the flags of those of IPv6
from `/proc/net/if_inet6`, which `ifaddr` does not tell. Must not: choose. Called by
`gateway.agent.addresses`.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import ifaddr

from gateway.contract import Address

if TYPE_CHECKING:
    from collections.abc import Iterable

_FLAGS_FILE: Final = Path("/proc/net/if_inet6")

# linux/if_addr.h; the file shows the lowest eight bits, which these are in.
_PASSING: Final = (
    (0x01, "temporary (RFC 8981)"),
    (0x20, "deprecated"),
    (0x40, "tentative: not yet known to be free"),
    (0x04, "tentative: not yet known to be free"),  # "optimistic" is in use before that is known
    (0x08, "a duplicate of another machine's"),
)


@dataclass(frozen=True, slots=True)
class HeldAddress:
    """An address of an interface. `passing` says why it will not last; None when it will."""

    address: Address
    passing: str | None


def addresses_of(interface: str) -> list[HeldAddress] | None:
    """All addresses of an interface; None when there is no such interface, or none with any.

    Asks the kernel each time. Raises OSError when it does not answer.
    """
    adapters = [each for each in ifaddr.get_adapters() if _base(each.name) == interface]
    if not adapters:
        return None
    flags = read_flags(_flag_lines(), interface)
    return [_held(each.ip, flags) for adapter in adapters for each in adapter.ips]


def read_flags(lines: Iterable[str], interface: str) -> dict[int, int]:
    """The flags of an interface's IPv6 addresses, by address, from lines of the kernel's file."""
    flags = {}
    for line in lines:
        words = line.split()
        if len(words) == 6 and words[5] == interface:
            flags[int(words[0], 16)] = int(words[4], 16)
    return flags


def passing(flags: int | None) -> str | None:
    """Why an IPv6 address will not last; None when it will. No flags: it has just come or gone."""
    if flags is None:
        return "coming or going"
    return next((reason for bit, reason in _PASSING if flags & bit), None)


def _base(name: str) -> str:
    """The interface's own name: the C library tells an IPv4 address's label, such as `eth0:web`."""
    return name.partition(":")[0]


def _flag_lines() -> list[str]:
    try:
        return _FLAGS_FILE.read_text().splitlines()
    except FileNotFoundError:
        return []  # a kernel without IPv6, which then has no such addresses either


def _held(ip: str | tuple[str, int, int], flags: dict[int, int]) -> HeldAddress:
    if isinstance(ip, str):
        return HeldAddress(Address("A", int(ipaddress.IPv4Address(ip))), None)
    number = int(ipaddress.IPv6Address(ip[0].partition("%")[0]))
    return HeldAddress(Address("AAAA", number), passing(flags.get(number)))
