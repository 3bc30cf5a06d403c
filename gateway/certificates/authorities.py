"""The configured authorities, in order of preference, each with its budget.

Responsible for finding one by its directory URL, which is what issuances, certificates and debts
remember. Chooses nothing: `steps` does, by what the ledgers grant. Called by `steps`, `cleanup`,
the wiring and readiness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway import measures
from gateway.certificates.orders import AuthorityFault, FaultKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway.certificates.authority import Authority
    from gateway.certificates.keys import KeyType
    from gateway.certificates.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Listed:
    """One authority, what may be spent there, and what is asked of it.

    `renewal_share` is the share of a certificate's lifetime after which its renewal starts where
    the authority names no time.
    """

    authority: Authority
    ledger: Ledger
    key_type: KeyType
    renewal_share: float

    @property
    def directory_url(self) -> str:
        """What names the authority in Redis."""
        return self.authority.directory_url


class Authorities:
    """All authorities of a configuration; iterated in order of preference."""

    def __init__(self, listed: Sequence[Listed]) -> None:
        self._listed = tuple(listed)
        self._by_url = {each.directory_url: each for each in self._listed}

    def __iter__(self) -> Iterator[Listed]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def at(self, directory_url: str | None) -> Listed:
        """The authority whose directory is there.

        Raises:
            AuthorityFault: NOT_CONFIGURED, when this process does not know it, or not any more.
        """
        listed = self._by_url.get(directory_url or "")
        if listed is None:
            detail = f"the authority at {directory_url} is not in the configuration"
            raise AuthorityFault(FaultKind.NOT_CONFIGURED, detail)
        return listed

    def name_at(self, directory_url: str | None) -> str:
        """What people call the authority there; one that is not configured is `unknown`."""
        listed = self._by_url.get(directory_url or "")
        return measures.UNKNOWN if listed is None else listed.authority.name

    async def close(self) -> None:
        """Close every authority's connections; repeatable."""
        for each in self._listed:
            await each.authority.close()
