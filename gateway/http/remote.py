"""Who calls, by address: the socket's peer, or whom the trusted proxies in front say it is.

Responsible for reading `X-Forwarded-For`, which anybody may send: it counts only where the peer is
a trusted proxy, and only as far as one trusted proxy after the other wrote it, from the right. What
is no address there ends the reading: the last address that is vouched for is the answer.
Must not: look names up, or judge an address. Pure. Called by the endpoint, once for each call, and
by the listener's `admission`, once for each connection.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address
    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

UNKNOWN: Final = "unknown"
"""The address of a peer that has none: it came through a socket of another kind."""

HEADER: Final = "x-forwarded-for"
SCHEME_HEADER: Final = "x-forwarded-proto"

_REMEMBERED: Final = 4_096
"""Of how many texts and addresses what was made of them is kept: most calls come from a few."""

_MOST_HOPS: Final = 16
_LONGEST_ENTRY: Final = 64
_IPV6_SUBSCRIBER_PREFIX: Final = 64
_IPV6: Final = 6


def remote_of(peer: str | None, forwarded: Sequence[str], trusted: Sequence[Network]) -> str:
    """The address of whoever calls, an IP literal in its shortest spelling, or `UNKNOWN`.

    `peer` is the socket's, `forwarded` the values of all `X-Forwarded-For` headers in their order.
    An IPv4 address that is written as an IPv6 one is the IPv4 address.
    """
    if not forwarded:
        return _alone(peer)
    found = None if peer is None else _address(peer)
    if found is None:
        return UNKNOWN
    for entry in _from_the_right(forwarded):
        if not _is_trusted(found, trusted):
            break
        before = _address(entry)
        if before is None:
            break
        found = before
    return str(found)


def is_told_encrypted(
    peer: str | None, forwarded_scheme: Sequence[str], trusted: Sequence[Network]
) -> bool:
    """Whether a trusted proxy says that its caller came by TLS.

    `peer` and `trusted` are as for `remote_of`, `forwarded_scheme` the values of all
    `X-Forwarded-Proto` headers: what the proxy itself wrote is the last of the last one.
    """
    found = None if peer is None else _address(peer)
    if found is None or not forwarded_scheme or not _is_trusted(found, trusted):
        return False
    return forwarded_scheme[-1].rpartition(",")[2].strip().lower() == "https"


@lru_cache(_REMEMBERED)
def _alone(peer: str | None) -> str:
    found = None if peer is None else _address(peer)
    return UNKNOWN if found is None else str(found)


@lru_cache(_REMEMBERED)
def subscriber_of(remote: str) -> str:
    """What a limit for each address counts as one: an IPv4 address, or an IPv6 network of 64 bits.

    Whoever has one IPv6 address has all of its /64. `remote` is as `remote_of` answers it.
    """
    address = _address(remote)
    if address is None or address.version != _IPV6:
        return remote
    return str(ipaddress.ip_network((address, _IPV6_SUBSCRIBER_PREFIX), strict=False))


def _from_the_right(forwarded: Sequence[str]) -> list[str]:
    entries: list[str] = []
    for value in reversed(forwarded):
        left = _MOST_HOPS - len(entries)
        if left == 0:
            break
        # At most so many from the right: a header may hold thousands of commas.
        entries += [entry.strip() for entry in reversed(value.rsplit(",", left)[-left:])]
    return entries


def _is_trusted(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address in network for network in trusted)


def _address(text: str) -> Address | None:
    """An address as proxies write it: bare, in brackets, with a port, with a scope."""
    # Before it is remembered: what a proxy passes on may be as long as a head.
    return _read(text) if len(text) <= _LONGEST_ENTRY else None


@lru_cache(_REMEMBERED)
def _read(text: str) -> Address | None:
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
