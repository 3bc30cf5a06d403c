"""`/operator`: what needs a person now, what there is, and how it goes on.

Responsible for asking each part of it by itself, so that one that fails or hangs is a sentence in
its place. Must not: judge a hostname; `needs` does. Called through `frame`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final

from gateway.certificates.budget import Limit
from gateway.certificates.census import DAYS_LEFT
from gateway.contract.hostnames import is_gateway_client_hostname
from gateway.http.page import charts
from gateway.http.page.charts import DayOfIssuances
from gateway.http.page.needs import hostnames_of, needs_of
from gateway.http.page.pieces import piece
from gateway.http.page.shapes import Page, Shown
from gateway.store.deeds import Action
from gateway.views.budget import hold_words, use_words
from gateway.views.trail import entry_words

if TYPE_CHECKING:
    from gateway.certificates.authorities import Listed
    from gateway.certificates.census import Census
    from gateway.contract.names import Hostname
    from gateway.http.page.charts import Chart, Meter
    from gateway.http.page.needs import Concerned
    from gateway.http.page.parts import PageParts
    from gateway.http.page.shapes import Visit
    from gateway.store.trail_reading import Told

NOTABLE_LOOKED_AT: Final = 20
CONFLICTS_SHOWN: Final = 20
CONFLICT_HOURS: Final = 24
DAYS_SHOWN: Final = 14

_LEFT_WORDS: Final = {
    "expired": "expired",
    **{f"under-{days}": f"under {days} days" for days in (3, 7, 14, 30, 60)},
    "under-1": "under a day",
    "60-or-more": "60 days or more",
}


@dataclass(frozen=True, slots=True)
class PartSeen:
    """A part of the gateway as it was last looked at: `up`, `down` or `unknown`."""

    name: str
    state: str
    since_ms: int
    detail: str


@dataclass(frozen=True, slots=True)
class AuthorityBudget:
    """What an authority may still be asked for; without a meter its orders are not counted."""

    name: str
    meter: Meter | None
    words: str
    holds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """A conflict that a client met: who asked for what, and what was in the way."""

    hostname: str
    at_ms: int
    why: str


@dataclass(frozen=True, slots=True)
class Counts:
    """What the census has counted: titles, and what there is of each kind."""

    tables: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    ends: Chart
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
        (census, lately, conflicts, days), budgets = await asyncio.gather(
            asyncio.gather(
                piece(self._parts.census()),
                piece(self._failed_lately()),
                piece(self._conflicts(now_ms)),
                piece(self._days(now_ms)),
            ),
            asyncio.gather(*(piece(_budget(each)) for each in self._parts.authorities)),
        )
        needs = await piece(self._needs(census.value, lately.value or [], now_ms))
        seen = self._parts_seen()
        down = [part for part in seen if part.state == "down"]
        names = [each.authority.name for each in self._parts.authorities]
        told = (needs, conflicts, census)
        is_quiet = not (down or needs.value or conflicts.value or any(each.fault for each in told))
        return Shown(
            {
                "census": census,
                "counts": None if census.value is None else counts_of(census.value),
                "needs": needs,
                "conflicts": conflicts,
                "conflict_hours": CONFLICT_HOURS,
                "down": down,
                "is_quiet": is_quiet,
                "parts": seen,
                "days": days,
                "keeps_days": self._parts.lately.is_kept,
                "budgets": list(zip(names, budgets, strict=True)),
            }
        )

    async def _needs(
        self, census: Census | None, lately: list[Hostname], now_ms: int
    ) -> list[Concerned]:
        names = list(dict.fromkeys([*hostnames_of(census), *lately]))
        documents = await self._parts.documents.read_many(names) if names else []
        return needs_of(census, documents, now_ms, self._parts.authority_names)

    async def _failed_lately(self) -> list[Hostname]:
        """Where an order failed lately, which the census may not know of yet."""
        page = await self._parts.lately.notable(NOTABLE_LOOKED_AT)
        told = (each.entry or {} for each in page.entries)
        names = [each["hostname"] for each in told if each.get("what") == Action.CERTIFICATE_FAILED]
        return [name for name in names if is_gateway_client_hostname(name)]

    async def _conflicts(self, now_ms: int) -> list[Conflict]:
        since_ms = now_ms - CONFLICT_HOURS * 3_600_000
        told = await self._parts.lately.conflicts(CONFLICTS_SHOWN)
        found = [conflict_of(each) for each in told]
        return [each for each in found if each is not None and each.at_ms >= since_ms]

    async def _days(self, now_ms: int) -> Chart:
        days = await self._parts.lately.days(DAYS_SHOWN, now_ms)
        return charts.issuances(
            [
                DayOfIssuances(date.fromisoformat(each.day), each.issued, each.renewed, each.failed)
                for each in days
            ]
        )

    def _parts_seen(self) -> list[PartSeen]:
        _, report = self._parts.monitor().report()
        return [
            PartSeen(name, part["state"], part["sinceMs"], part.get("detail", ""))
            for name, part in report["parts"].items()
        ]


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
    ends = charts.expiries(census.ends, charts.day_of(census.taken_at_ms))
    return Counts(tables, ends, census.taken_at_ms)


def conflict_of(told: Told) -> Conflict | None:
    """A conflict out of an entry of the trail; None where it can't be read."""
    words, entry = entry_words(told), told.entry
    if entry is None or words.subject is None:
        return None
    app = f" for {entry['appId']}" if entry.get("appId") else ""
    wanted = f", wanted {entry['after']}" if entry.get("after") else ""
    detail = f": {entry['detail']}" if entry.get("detail") else ""
    why = f"{words.who}{app}: {words.what}{wanted}, {words.outcome}{detail}"
    return Conflict(words.subject, entry["at"], why)


async def _budget(listed: Listed) -> AuthorityBudget:
    state = await listed.ledger.state(of_account=True)
    name = listed.authority.name
    holds = tuple(hold_words(hold) for hold in state.holds)
    for use in state.uses:
        if use.limit is Limit.ORDERS:
            meter = charts.meter(use.used, use.of, "new orders in 3 hours")
            return AuthorityBudget(name, meter, use_words(use), holds)
    return AuthorityBudget(name, None, "new orders are not counted", holds)
