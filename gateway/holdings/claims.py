"""Route claims: hostnames that an operator holds against every client.

A claim is made by hand, stays until it is taken back, and touches no zone. Called by the command
line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gateway.contract.names import Hostname
from gateway.holdings import deeds
from gateway.holdings.as_seen import HostnameChanged, demand_as_seen
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.moments import is_epoch_ms
from gateway.store import keys
from gateway.store.documents import READ_AT_ONCE, Change, Document, Unreadable
from gateway.store.trail import NO_TRAIL

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.store.connection import Store
    from gateway.store.documents import Documents
    from gateway.store.trail import Trail


class ClaimRefused(Exception):
    """The hostname is held by a client's ownership; says so without naming it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed hostname, since when (epoch milliseconds), and the operator's note."""

    hostname: Hostname
    since_ms: int
    note: str


class Found(NamedTuple):
    """All claims, by hostname: one that cannot be read does not hide the others."""

    claims: list[Claim]
    unreadable: list[Unreadable]


class Claims:
    """All route claims. Every method raises `StoreUnavailable`."""

    def __init__(
        self,
        store: Store,
        documents: Documents,
        now_ms: Callable[[], int],
        trail: Trail = NO_TRAIL,
    ) -> None:
        self._trail = trail
        self._store = store
        self._documents = documents
        self._now_ms = now_ms

    async def add(self, hostname: Hostname, note: str = "", as_seen: str | None = None) -> Claim:
        """Claim a hostname, or keep its claim with this note; repeatable.

        The gateway's own hostname may be claimed: that keeps clients away should it give it up.

        Raises:
            ClaimRefused: an ownership holds the hostname.
            HostnameChanged: what is held has another mark than `as_seen`.
            Unreadable: what Redis has of the hostname; nothing was changed.
        """

        def decide(document: Document) -> Change:
            demand_as_seen(document, as_seen)
            if document.holder not in {None, THE_GATEWAY}:
                raise ClaimRefused(f"{hostname} is held by a client; release it first")
            present = claim_of(document)
            since_ms = self._now_ms() if present is None else present.since_ms
            return Change({"claim": {"sinceMs": since_ms, "note": note}})

        # Before, so that a crash leaves no claim out of the list, and after, since it may just have
        # been taken off. What is on it too much, `all` leaves out.
        await self._store.add_to_set(keys.CLAIMS_KEY, hostname)
        try:
            document = await self._documents.change(hostname, decide)
        except ClaimRefused:
            self._trail.note(deeds.of_refused_claim(hostname))
            await self._unlist(hostname)
            raise
        except HostnameChanged:
            await self._unlist(hostname)
            raise
        self._trail.note(deeds.of_claim(hostname, note))
        await self._store.add_to_set(keys.CLAIMS_KEY, hostname)
        return Claim(hostname, (document.claim or {})["sinceMs"], note)

    async def remove(self, hostname: Hostname, as_seen: str | None = None) -> bool:
        """Take a claim back; False when there was none.

        Raises:
            HostnameChanged: what is held has another mark than `as_seen`.
        """
        had_claim, note = False, ""

        def decide(document: Document) -> Change | None:
            nonlocal had_claim, note
            demand_as_seen(document, as_seen)
            had_claim = document.claim is not None
            note = str((document.claim or {}).get("note", ""))
            return Change({"claim": None}) if had_claim else None

        await self._documents.change(hostname, decide)
        if had_claim:
            self._trail.note(deeds.of_unclaim(hostname, note))
        await self._unlist(hostname)
        return had_claim

    async def all(self) -> Found:
        """Every claim there is."""
        listed = sorted(map(Hostname, await self._store.set_members(keys.CLAIMS_KEY)))
        # The gateway's own are ASCII.
        known = [hostname for hostname in listed if hostname.isascii()]
        unreadable = [Unreadable(hostname) for hostname in listed if not hostname.isascii()]
        claims: list[Claim] = []
        for start in range(0, len(known), READ_AT_ONCE):
            for each in await self._documents.read_many(known[start : start + READ_AT_ONCE]):
                try:
                    claim = claim_of(each)
                except Unreadable as fault:
                    unreadable.append(fault)
                    continue
                if claim is not None:
                    claims.append(claim)
        return Found(claims, unreadable)

    async def _unlist(self, hostname: Hostname) -> None:
        await self._store.remove_from_set(keys.CLAIMS_KEY, hostname)
        # Claimed again before it was off the list: then it must be on it.
        if (await self._documents.read(hostname)).claim is not None:
            await self._store.add_to_set(keys.CLAIMS_KEY, hostname)


def claim_of(document: Document | Unreadable) -> Claim | None:
    """The claim of a document, if it has one. Raises `Unreadable`."""
    if isinstance(document, Unreadable):
        raise document
    if document.claim is None:
        return None
    since_ms, note = document.claim.get("sinceMs"), document.claim.get("note")
    if not is_epoch_ms(since_ms) or type(note) is not str:
        raise Unreadable(document.hostname)
    return Claim(document.hostname, since_ms, note)
