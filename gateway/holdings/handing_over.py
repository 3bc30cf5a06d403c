"""Handing a hostname's record from one ownership to another, as an operator commands.

First the zone: one conditional update puts the taker's marker in the place of the giver's. Then
Redis: one change of the document moves the hold and the record. Whatever dies in between, the same
command again finds the zone done and finishes; until then the giver meets a conflict in the zone
and the taker one in Redis, or none where Redis knew nothing.

The certificate stays behind: its key was made for the giver and is sealed to the giver's name. It
is given up with any issuance under way, as a release does. Called by `gateway holdings hand-over`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.contract import Unauthorized
from gateway.dns.errors import DnsFault, OutcomeUnknown
from gateway.dns.survey import Verdict
from gateway.holdings.hold import HeldByAnother, without_certificate
from gateway.holdings.orphans import is_intent
from gateway.holdings.remembered import remembered_record, sought_records
from gateway.store.documents import Change, Document, Holder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gateway.contract import DnsRecord
    from gateway.dns.handing import Handed, Handing
    from gateway.dns.owner import Owner
    from gateway.holdings.restoring import Restoring
    from gateway.store.documents import Documents

BOUND_SECONDS: Final = 15.0

_WHY_NOT: Final = {
    Verdict.UNMARKED: "there is no marker at it",
    Verdict.EDITED: "its address was edited by hand, so the marker proves nothing",
    Verdict.ADDRESS_GONE: "there is a marker and no address",
    Verdict.AMBIGUOUS: "several records are proven there",
    Verdict.UNKNOWN_KEY: "its marker was made with a key that the keyring lacks",
    Verdict.MALFORMED: "its marker is malformed",
}


class HandOverRefused(Exception):
    """Why a hostname was not handed over: one sentence."""


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The taker's record. `was_done`: the zone had it already. `released`: a certificate was."""

    record: DnsRecord
    was_done: bool
    released: bool


class HandingOver:
    """Serves one command after the other. Raises `StoreUnavailable` and `Contended`."""

    def __init__(
        self,
        documents: Documents,
        handing: Handing,
        restoring: Restoring,
        now_ms: Callable[[], int],
    ) -> None:
        self._documents = documents
        self._handing = handing
        self._restoring = restoring
        self._now_ms = now_ms

    async def hand_over(
        self, giver: Owner, taker: Owner, judge: Callable[[DnsRecord], None]
    ) -> HandedOver:
        """Make the giver's record the taker's, at the same hostname; repeatable.

        `judge` raises `HandOverRefused` when the taker's policy does not allow a record.

        Raises:
            HandOverRefused: nothing was changed, unless the sentence says otherwise.
            Unreadable: what Redis has of the hostname; nothing was changed.
        """
        if giver == taker:
            raise HandOverRefused("The giver and the taker are the same ownership.")
        document = await self._documents.read(giver.hostname)
        remembered = (remembered_record(document), *sought_records(document))
        require_between(document, giver, taker)
        is_givers = document.holder == Holder(giver.client_id, giver.app_id)
        known = remembered if is_givers else ()
        handed = await self._in_zone(giver, taker, judge, known)
        if handed.record is None:
            raise HandOverRefused(_sentence(giver, handed))
        released = await self._in_redis(giver, taker, handed.record)
        return HandedOver(handed.record, handed.was_done, released)

    async def _in_zone(
        self,
        giver: Owner,
        taker: Owner,
        judge: Callable[[DnsRecord], None],
        known: Iterable[DnsRecord | None],
    ) -> Handed:
        deadline = asyncio.get_running_loop().time() + BOUND_SECONDS
        try:
            return await self._handing.hand_over(
                giver, taker, judge=judge, deadline=deadline, known=known
            )
        except OutcomeUnknown as fault:
            text = "Whether the zone was changed is not known: run the same command again."
            raise HandOverRefused(f"{fault.detail} {text}") from fault
        except DnsFault as fault:
            raise HandOverRefused(fault.detail) from fault

    async def _in_redis(self, giver: Owner, taker: Owner, record: DnsRecord) -> bool:
        """Move the hold; answers whether a certificate or an issuance was given up for it."""
        giving, taking = (Holder(each.client_id, each.app_id) for each in (giver, taker))
        released = False
        before = await self._documents.read(giver.hostname)
        giving_way = before.holder if is_intent(before) else giving

        def choose(document: Document) -> Change:
            nonlocal released
            if document.holder not in {None, giving, taking} and not is_intent(document):
                raise HeldByAnother(document.hostname)
            released = document.holder == giving and _has_certificate(document)
            if released:
                return without_certificate(document, self._now_ms())
            is_done = document.holder == taking and bool((document.record or {}).get("published"))
            return Change({"record": document.record} if is_done else {})

        try:
            is_there = await self._restoring.restore(taker, record, choose, instead_of=giving_way)
        except HeldByAnother:
            held = await self._documents.read(giver.hostname)
            raise HandOverRefused(f"{_held_words(held)} {_ZONE_DONE}") from None
        except Unauthorized:
            text = f"There is no client {taker.client_id} any more."
            raise HandOverRefused(f"{text} {_ZONE_DONE}") from None
        if not is_there:
            raise HandOverRefused(
                f"{giver.hostname} was handed over, and changed again at the same moment:"
                " see what is there now."
            )
        return released


_ZONE_DONE: Final = "The zone names the taker already: mend that and run the same command again."


def require_between(document: Document, giver: Owner, taker: Owner) -> None:
    """Raises `HandOverRefused` when Redis says that a third one has the hostname. Pure.

    A third one's intent can only come to a conflict with what the zone proves, and gives way.
    """
    of_theirs = {None, *(Holder(each.client_id, each.app_id) for each in (giver, taker))}
    is_a_thirds = document.holder not in of_theirs and not is_intent(document)
    if document.claim is not None or is_a_thirds:
        raise HandOverRefused(_held_words(document, instead_of=giver))


def _has_certificate(document: Document) -> bool:
    return document.certificate is not None or document.issuance is not None


def _held_words(document: Document, instead_of: Owner | None = None) -> str:
    """Who has the hostname; `instead_of` is the giver who was named, where another one will do."""
    holder = document.holder
    if document.claim is not None or holder is None:
        return f"{document.hostname} is claimed: take the claim back first."
    words = f"{document.hostname} is held by {holder.client_id} for {holder.app_id}"
    if instead_of is None:
        return f"{words}."
    named = f"{instead_of.client_id} for {instead_of.app_id}"
    return f"{words}, not by {named}; give --from {holder.client_id}:{holder.app_id}."


def _sentence(giver: Owner, handed: Handed) -> str:
    name, who = giver.hostname, f"{giver.client_id} for {giver.app_id}"
    fallback = f"its marker is not that of {who} for the address that is there"
    return f"{name} can't be handed over: {_WHY_NOT.get(handed.sight.verdict, fallback)}."
