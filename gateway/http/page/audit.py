"""`/operator/audit`: the audit trail from the newest entry back, by hostname, client and time.

Responsible for what was asked for, and for what is said where entries are gone or were not looked
through. The first page follows what comes. Must not: change anything, or read more of the trail for
one page than `SCANNED` entries. Called through `frame`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from gateway.contract.hostnames import hostname_fault
from gateway.contract.identifiers import client_id_fault
from gateway.http.page.audit_rows import row_of
from gateway.http.page.shapes import Page, Shown, path_to
from gateway.store.trail_reading import Wanted
from gateway.views.since import SPELLINGS, since_of
from gateway.views.trail import gone_words

if TYPE_CHECKING:
    from gateway.http.page.parts import PageParts
    from gateway.http.page.shapes import Visit

SHOWN: Final = 50
SCANNED: Final = 5_000
FOLLOWED_EVERY_MS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed, and what it means; `faults` are sentences by field."""

    hostname: str
    client: str
    since: str
    wanted: Wanted
    faults: dict[str, str] = field(default_factory=dict)

    def url(self, before: str = "") -> str:
        """The same, from a place in the trail back, or from the newest."""
        return path_to(
            "audit", hostname=self.hostname, client=self.client, since=self.since, before=before
        )


class Audit:
    """The page."""

    def __init__(self, parts: PageParts) -> None:
        self._parts = parts

    def pages(self) -> tuple[Page, ...]:
        """Where it is."""
        return (Page("/audit", "audit.html", self.show),)

    async def show(self, visit: Visit) -> Shown:
        """A page of entries."""
        query = visit.query
        asked = asked_for(
            query.text("hostname"), query.text("client"), query.text("since"), visit.now_ms
        )
        before = query.text("before")
        context: dict[str, object] = {
            "asked": asked,
            "is_kept": self._parts.lately.is_kept,
            "is_first": not before,
            "rows": (),
            "older_url": None,
            "first_url": asked.url() if before else None,
            "is_cut": False,
            "gone": None,
            "every_ms": None,
            "fault": None,
        }
        if asked.faults:
            return Shown(context, 400)
        reader = self._parts.reader(asked.wanted)
        try:
            page = await reader.before(before or None, SHOWN, SCANNED)
        except ValueError as fault:
            return Shown({**context, "fault": str(fault)}, 400)
        gone = None
        if page.older is None:
            gone = gone_words(await reader.extent(), asked.wanted.since_ms)
        context |= {
            "rows": [row_of(told) for told in page.entries],
            "older_url": None if page.older is None else asked.url(page.older),
            "is_cut": page.is_cut,
            "gone": gone,
            "every_ms": None if before else FOLLOWED_EVERY_MS,
        }
        return Shown(context)


def asked_for(hostname: str, client: str, since: str, now_ms: int) -> Asked:
    """What a query asks for, at `now_ms` (epoch milliseconds). Pure."""
    faults = {}
    name = hostname.lower() if hostname.isascii() else hostname
    name = name.removesuffix(".") or name  # with the dot of the root it is the same
    fault = hostname_fault(name) if name else None
    if fault is not None:
        faults["hostname"] = f"It {fault}."
    fault = client_id_fault(client) if client else None
    if fault is not None:
        faults["client"] = f"It {fault}."
    since_ms = None
    if since:
        try:
            since_ms = since_of(since, datetime.fromtimestamp(now_ms / 1000, UTC))
        except ValueError:
            faults["since"] = f"It {SPELLINGS}."
    wanted = Wanted(since_ms, name or None, client or None)
    return Asked(name, client, since, wanted, faults)
