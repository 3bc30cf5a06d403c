"""How many connections there may be: in all, and from one address. Counting only; no I/O.

An IPv6 address counts as its /64, which is what one machine gets. Addresses of trusted proxies
count in the total alone: all clients come through them. Called by `accepting`.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_IPV6_PREFIX: Final = 64


class Admission:
    """Counts connections; `enter` says whether one more may be had."""

    def __init__(self, most: int, most_per_address: int, exempt: Sequence[Network] = ()) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._exempt = tuple(exempt)
        self._total = 0
        self._by_address: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """How many there are now."""
        return self._total

    @property
    def is_full(self) -> bool:
        """Whether there are as many as there may be."""
        return self._total >= self._most

    def has_too_many(self, peer: str) -> bool:
        """Whether its address has as many as it may have."""
        key = self.key_of(peer)
        return bool(key) and self._by_address[key] >= self._most_per_address

    def exempt_from_now_on(self, exempt: Sequence[Network]) -> None:
        """Whom the bound per address does not concern, for connections to come."""
        self._exempt = tuple(exempt)

    def enter(self, peer: str) -> str | None:
        """Count a connection from an IP literal; the key to leave with, None when it is refused."""
        if self.is_full or self.has_too_many(peer):
            return None
        key = self.key_of(peer)
        self._total += 1
        if key:
            self._by_address[key] += 1
        return key

    def leave(self, key: str) -> None:
        """The connection that `enter` gave this key for is gone."""
        self._total -= 1
        if key:
            self._by_address[key] -= 1
            if not self._by_address[key]:
                del self._by_address[key]

    def key_of(self, peer: str) -> str:
        """What a peer is counted as; empty for one that is exempt."""
        address = ipaddress.ip_address(peer.partition("%")[0])
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if any(address in network for network in self._exempt):
            return ""
        if address.version == 4:
            return str(address)
        return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
