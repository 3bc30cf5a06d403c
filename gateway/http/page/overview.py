"""`/operator`: what needs a person now, what there is, and how it goes on.

Responsible for asking each part of it by itself, so that one that fails or hangs is a sentence in
its place. Must not: judge a hostname; `needs` does. Called through `frame`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final

from gateway.certificates.attention import Concern
from gateway.certificates.budget import Limit
from gateway.certificates.census import DAYS_LEFT
from gateway.contract.hostnames import is_gateway_client_hostname
from gateway.http.page import charts
from gateway.http.page.absences import denials_of
from gateway.http.page.charts import DayOfIssuances
from gateway.http.page.conflicts import CONFLICT_HOURS, TRAIL_LOOKED_AT, Conflicts, conflicts_of
from gateway.http.page.hostnames import CLAIMED
from gateway.http.page.needs import OF_EACH, hostnames_of, needs_of
from gateway.http.page.parts_seen import parts_seen
from gateway.http.page.pieces import piece
from gateway.http.page.shapes import Page, Shown
from gateway.store.deeds import Action
from gateway.store.documents import READ_AT_ONCE
from gateway.store.trail_reading import Wanted
from gateway.views import emptiness
from gateway.views.budget import hold_words, use_words

if TYPE_CHECKING:
    from gateway.certificates.authorities import Listed
    from gateway.certificates.census import Census
    from gateway.contract.names import Hostname
    from gateway.http.page.charts import Chart, Meter
    from gateway.http.page.needs import Needs
    from gateway.http.page.parts import PageParts
    from gateway.http.page.parts_seen import PartSeen
    from gateway.http.page.pieces import Piece
    from gateway.http.page.shapes import Visit
    from gateway.store.documents import Document, Unreadable

NOTABLE_LOOKED_AT: Final = 200
CONFLICTS_SHOWN: Final = 20
"""Of those in a client's way, and of those with a claim."""

DAYS_SHOWN: Final = 14

_LEFT_WORDS: Final = {
    "expired": "expired",
    **{f"under-{days}": f"under {days} days" for days in (3, 7, 14, 30, 60)},
    "under-1": "under a day",
    "60-or-more": "60 days or more",
}


STATES_OF_FIGURES: Final = {
    "claimed": CLAIMED,
    "not readable by this release": Concern.UNREADABLE.value,
    "of these near their end, or expired": Concern.NEAR_END.value,
    "failed": Concern.FAILED.value,
    "waiting": Concern.WAITING.value,
}
"""The figures that there is a list of hostnames to, and its `state`."""


@dataclass(frozen=True, slots=True)
class AuthorityBudget:
    """What an authority may still be asked for; without a meter its orders are not counted."""

    name: str
    meter: Meter | None
    words: str
    holds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """What the census has counted: titles, and what there is of each kind.

    `ends` is None where no certificate ends soon: an empty picture says no more than a sentence.
    """

    tables: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    ends: Chart | None
    taken_at_ms: int


class Overview:
    """The page that an operator looks at first."""

    def __init__(self, parts: PageParts) -> None:
        self._parts = parts

    def page(self) -> Page:
        """Where it is."""
        return Page("", "overview.html", self.show)

    async def show(self, visit: Visit) -> Shown:
        """All of it, each part by itself."""
        now_ms = visit.now_ms
        (census, clients, lately, conflicts, days), budgets = await asyncio.gather(
            asyncio.gather(
                piece(self._parts.census),
                piece(self._parts.clients.count),
                piece(self._failed_lately),
                piece(self._conflicts, now_ms),
                piece(self._days, now_ms),
            ),
            asyncio.gather(*(piece(_budget, each) for each in self._parts.authorities)),
        )
        needs = await piece(self._needs, census.value, lately.value or [], now_ms)
        waits = {} if needs.value is None else needs.value.waits
        seen = parts_seen(self._parts.monitor(), waits)
        names = [each.authority.name for each in self._parts.authorities]
        return Shown(
            {
                "census": census,
                "counts": None if census.value is None else counts_of(census.value),
                "clients": clients,
                "no_client_words": (emptiness.NO_CLIENT, emptiness.LOST),
                "needs": needs,
                "conflicts": conflicts,
                "conflict_hours": CONFLICT_HOURS,
                "conflicts_shown": CONFLICTS_SHOWN,
                "down": [part for part in seen if part.state == "down"],
                "states": STATES_OF_FIGURES,
                "is_quiet": _is_quiet(census, clients, needs, conflicts, seen),
                "parts": seen,
                "days": days,
                "keeps_days": self._parts.lately.is_kept,
                "budgets": list(zip(names, budgets, strict=True)),
            }
        )

    async def _needs(self, census: Census | None, lately: list[Hostname], now_ms: int) -> Needs:
        names = hostnames_of(census)
        newly = [name for name in lately if name not in names]
        names += newly[:OF_EACH]
        documents = await self._parts.documents.read_many(names) if names else []
        unread = len(newly[OF_EACH:])
        denials = await denials_of(self._parts.clients, documents, now_ms)
        return needs_of(census, documents, now_ms, self._parts.authority_names, unread, denials)

    async def _failed_lately(self) -> list[Hostname]:
        """Where an order failed lately, which the census may not know of yet; each once."""
        page = await self._parts.lately.notable(NOTABLE_LOOKED_AT)
        told = (each.entry or {} for each in page.entries)
        failed = (each for each in told if each.get("what") == Action.CERTIFICATE_FAILED)
        names = (each.get("hostname") for each in failed)  # whatever somebody has put there
        return list(dict.fromkeys(name for name in names if is_gateway_client_hostname(name)))

    async def _conflicts(self, now_ms: int) -> Conflicts:
        """Those of all the time that is told of: the newest may be over, and hide none before."""
        seen, is_cut = await self._parts.lately.conflicts(now_ms - CONFLICT_HOURS * 3_600_000)
        if not seen:
            return Conflicts((), is_cut)
        names = dict.fromkeys((each.entry or {})["hostname"] for each in seen)
        known = [name for name in names if is_gateway_client_hostname(name)]
        documents: list[Document | Unreadable] = []
        for start in range(0, len(known), READ_AT_ONCE):
            some = known[start : start + READ_AT_ONCE]
            documents += await self._parts.documents.read_many(some)
        oldest_ms = min((each.entry or {})["at"] for each in seen)
        later = await self._parts.reader(Wanted(since_ms=oldest_ms)).before(
            None, TRAIL_LOOKED_AT, TRAIL_LOOKED_AT
        )
        return Conflicts(tuple(conflicts_of(seen, documents, later.entries)), is_cut)

    async def _days(self, now_ms: int) -> Chart | None:
        """None where nothing is to be drawn."""
        days = await self._parts.lately.days(DAYS_SHOWN, now_ms)
        if not any(each.issued or each.renewed or each.failed for each in days):
            return None
        return charts.issuances(
            [
                DayOfIssuances(date.fromisoformat(each.day), each.issued, each.renewed, each.failed)
                for each in days
            ]
        )


def counts_of(census: Census) -> Counts:
    """A census as tables, in which what there is none of is left out of the longer ones."""
    hostnames = (
        ("with anything stored", census.documents),
        ("with a record", census.records),
        ("claimed", census.claims),
        ("not readable by this release", census.unreadable),
    )
    certificates = ((_LEFT_WORDS[left], census.certificates[left]) for left in DAYS_LEFT)
    renewals = (
        ("due for renewal", census.renewals_due),
        ("of these near their end, or expired", census.near_end),
    )
    tables = (
        ("Hostnames", hostnames),
        ("Certificates by what they have left", tuple(certificates)),
        ("Renewals", renewals),
        ("Issuances by state", tuple(census.issuances.items())),
        ("To be cleaned up outside", tuple(census.debts.items())),
    )
    ends = None
    if any(census.ends):
        ends = charts.expiries(census.ends, charts.day_of(census.taken_at_ms))
    return Counts(tables, ends, census.taken_at_ms)


def _is_quiet(
    census: Piece[Census | None],
    clients: Piece[int],
    needs: Piece[Needs],
    conflicts: Piece[Conflicts],
    parts: list[PartSeen],
) -> bool:
    """Whether all is known, and nothing of it needs a person; a claim is what somebody wants."""
    if any(each.fault for each in (census, clients, needs, conflicts)):
        return False
    needing = needs.value is not None and bool(needs.value.concerned)
    in_conflict = conflicts.value is not None and not conflicts.value.are_quiet
    is_down = any(part.state == "down" for part in parts)
    return not (needing or in_conflict or is_down or clients.value == 0)


async def _budget(listed: Listed) -> AuthorityBudget:
    state = await listed.ledger.state(of_account=True)
    name = listed.authority.name
    holds = tuple(hold_words(hold) for hold in state.holds)
    for use in state.uses:
        if use.limit is Limit.ORDERS:
            meter = charts.meter(use.used, use.of, "new orders in 3 hours")
            return AuthorityBudget(name, meter, use_words(use), holds)
    return AuthorityBudget(name, None, "new orders are not counted", holds)
