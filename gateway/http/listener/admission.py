"""How many connections there may be: in all, and from one address. Counting only; no I/O.

An IPv6 address counts as its /64, which is what one machine gets. Addresses of trusted proxies
count in the total alone: all clients come through them. Called by `accepting`.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import TYPE_CHECKING

from gateway.http.remote import remote_of, subscriber_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.http.remote import Network


class Admission:
    """Counts connections by key; `enter` says whether one more may be had.

    A key is of `key_of`, and the connection's own until it is gone.
    """

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

    def has_too_many(self, key: str) -> bool:
        """Whether an address has as many as it may have."""
        return bool(key) and self._by_address[key] >= self._most_per_address

    def exempt_from_now_on(self, exempt: Sequence[Network]) -> None:
        """Whom the bound per address does not concern, for connections to come."""
        self._exempt = tuple(exempt)

    def enter(self, key: str) -> bool:
        """Count a connection; False when it is refused."""
        if self.is_full or self.has_too_many(key):
            return False
        self._total += 1
        if key:
            self._by_address[key] += 1
        return True

    def leave(self, key: str) -> None:
        """A connection that `enter` has counted is gone."""
        self._total -= 1
        if key:
            self._by_address[key] -= 1
            if not self._by_address[key]:
                del self._by_address[key]

    def key_of(self, peer: str) -> str:
        """What a peer, an IP literal, is counted as; empty for one that is exempt."""
        remote = remote_of(peer, (), ())
        address = ipaddress.ip_address(remote)
        if any(address in network for network in self._exempt):
            return ""
        return subscriber_of(remote)
