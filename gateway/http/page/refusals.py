"""What is in the way of a client that was refused at a hostname, and what to do about it. Pure.

Of a conflict that is not known to be over (`conflicts`): who asked for what, what was in the way,
and the ways out of it. Must not: read Redis, or judge. Called by `hostname`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.views.holdings import whose_words
from gateway.views.trail import with_unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.store.documents import Document, Holder
    from gateway.store.trail_reading import Told


@dataclass(frozen=True, slots=True)
class Refusal:
    """A client that is refused here. `way` is what is in its way, `remedies` what to do.

    `client_id`, `app_id` and `wanted` are as the audit trail has them, empty where it has none.
    `is_claim`: an operator has claimed the hostname, so that nothing is to be mended.
    """

    client_id: str
    app_id: str
    wanted: str
    answer: str
    at_ms: int
    way: str
    remedies: tuple[str, ...]
    is_claim: bool = False


def refusal_of(told: Told, document: Document) -> Refusal:
    """What a conflict in the audit trail comes to, beside what is held there now."""
    entry: Mapping[str, Any] = told.entry or {}
    asker = str(entry.get("clientId") or entry.get("ofClient") or "")
    wanted = with_unit(str(entry.get("after") or "a certificate"))
    way, remedies = _way_out(entry, document, asker, wanted)
    return Refusal(
        asker,
        str(entry.get("appId") or ""),
        wanted,
        str(entry.get("outcome", "")),
        entry.get("at", told.written_at_ms),
        way,
        remedies,
        is_claim=document.claim is not None,
    )


def _way_out(
    entry: Mapping[str, Any], document: Document, asker: str, wanted: str
) -> tuple[str, tuple[str, ...]]:
    holder = document.holder
    if document.claim is not None:
        return "An operator has claimed the hostname: every client is refused.", (
            f"If {asker} is to have it: take the claim back.",
            "If the claim is to stay, nothing is to be done here.",
        )
    if holder == THE_GATEWAY:
        remedy = f"Nothing is to be done here but to {_ask_no_more(asker)}"
        return "The gateway itself holds it, for its listener.", (remedy,)
    if holder is not None and not _is_askers(holder, entry):
        return f"{whose_words(holder)} holds it.", (
            f"If {holder.client_id} is to keep it: {_ask_no_more(asker)}",
            f"If {asker} is to have it: `gateway holdings hand-over` gives it the record; or"
            f" withdraw and release here what {holder.client_id} holds, once that asks no more.",
        )
    found = str(entry.get("detail") or "").removeprefix("in the way: ")
    way = found or "records"
    return f"The zone has {way} there, which the gateway did not publish, or not as it is now.", (
        f"If {asker} is to have it: take {found or 'what is there'} out of the zone by hand; its"
        f" next call gets {wanted}.",
        f"If what is there is to stay: {_ask_no_more(asker)}",
    )


def _is_askers(holder: Holder, entry: Mapping[str, Any]) -> bool:
    return (holder.client_id, holder.app_id) == (entry.get("clientId"), entry.get("appId"))


def _ask_no_more(asker: str) -> str:
    return f"take the hostname out of what {asker} asks for, or out of its hostname patterns."
