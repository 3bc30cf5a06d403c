"""Forgetting what lies in a zone that is configured no more, so that nothing waits for it for ever.

Without its zone a record can't be withdrawn and a challenge can't be removed. An operator who has
given the zone up says so, and Redis forgets them; whatever is in the zone stays there. It may have
been the child of a zone that stays configured, and now delegates the name away. What a configured
zone holds is never forgotten. Called by `gateway holdings forget`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.certificates import debts as rules
from gateway.certificates.agenda import debts_of, issuance_of
from gateway.certificates.states import Debt, DebtKind
from gateway.holdings.hold import given_up
from gateway.holdings.remembered import remembered_record
from gateway.store.documents import Change, Document, Holder

if TYPE_CHECKING:
    from gateway.contract import DnsRecord
    from gateway.contract.names import Hostname
    from gateway.dns.survey import Surveyor
    from gateway.dns.zones import Zones
    from gateway.holdings.hold import Holds
    from gateway.store.documents import Documents

BOUND_SECONDS: Final = 8.0


class ForgetRefused(Exception):
    """Why nothing was forgotten: one sentence."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What Redis knows no more, and may still be in the zone."""

    record: DnsRecord | None
    challenges: tuple[Debt, ...]
    keeps_certificate: bool


class Forgetting:
    """Raises `StoreUnavailable`, `Contended` and `Unreadable`."""

    def __init__(
        self, documents: Documents, holds: Holds, surveyor: Surveyor, zones: Zones
    ) -> None:
        self._documents = documents
        self._holds = holds
        self._surveyor = surveyor
        self._zones = zones

    async def forget(self, hostname: Hostname, holder: Holder | None) -> Forgotten:
        """Forget what of a hostname lies in no configured zone. `holder` is who must hold it.

        Raises:
            ForgetRefused: another ownership holds it, or there is nothing to forget.
        """
        forgotten: Forgotten | None = None
        deadline = asyncio.get_running_loop().time() + BOUND_SECONDS
        is_away = await self._surveyor.is_away(hostname, deadline=deadline)

        def decide(document: Document) -> Change:
            nonlocal forgotten
            try:
                change, forgotten = forget(document, holder, self._zones, is_away=is_away)
            except (KeyError, TypeError, ValueError):
                text = f"What Redis has of {hostname} is not readable by this release."
                raise ForgetRefused(text) from None
            return change

        after = await self._documents.change(hostname, decide)
        if holder is not None:
            await self._holds.forget(after, holder)
        if forgotten is None:  # `change` has asked at least once
            raise ForgetRefused(f"Nothing of {hostname} was forgotten.")
        return forgotten


def forget(
    document: Document, holder: Holder | None, zones: Zones, *, is_away: bool
) -> tuple[Change, Forgotten]:
    """The change, and what it forgets. Pure. Raises `ForgetRefused`.

    `is_away`: no configured zone answers for the hostname, nor for what lies below it.
    """
    name = document.hostname
    if document.holder != holder:
        raise ForgetRefused(_other_holder(document))
    configured = None if is_away else zones.holding(name)
    record = remembered_record(document) if configured is None else None
    lost = tuple(debt for debt in debts_of(document) if _is_lost(debt, document, zones, is_away))
    if record is None and not lost:
        if configured is not None and document.record is not None:
            raise ForgetRefused(
                f"{name} lies in the zone {configured.name}, which is configured:"
                " withdraw its record instead."
            )
        raise ForgetRefused(f"Redis holds nothing of {name} in a zone that is not configured.")
    fields: dict[str, object] = {} if record is None else given_up(document, {"record": None})
    if lost:
        fields["debts"] = rules.as_stored(each for each in debts_of(document) if each not in lost)
    keeps = document.certificate is not None or document.issuance is not None
    return Change(fields), Forgotten(record, lost, keeps)


def _is_lost(debt: Debt, document: Document, zones: Zones, is_away: bool) -> bool:
    """Whether it is a challenge in a zone that is gone, and no issuance goes on with it."""
    if debt.kind is not DebtKind.CHALLENGE_RECORD:
        return False
    holding = zones.holding(document.hostname)
    is_below = (debt.name or "").endswith(f".{document.hostname}")
    is_delegated = is_away and is_below and holding is not None and holding.name == debt.zone
    is_configured = any(zone.name == debt.zone for zone in zones.all)
    if is_configured and not is_delegated:
        return False
    return not rules.is_relied_on(debt, issuance_of(document))


def _other_holder(document: Document) -> str:
    holder = document.holder
    if holder is None:
        return f"Nobody holds {document.hostname}: leave --from out."
    whose = f"{holder.client_id} for {holder.app_id}"
    give = f"give --from {holder.client_id}:{holder.app_id}"
    return f"{document.hostname} is held by {whose}; {give}."
