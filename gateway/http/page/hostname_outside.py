"""What lies outside Redis about a hostname: its zone's answers now, and what a call would come to.

Two pages below the hostname's own, each of which may take seconds; its script loads them into it,
and without script they are links. Must not: judge or change anything. Called through `frame`.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from gateway.holdings.remembered import remembered_record
from gateway.http.page.agreement import agreement
from gateway.http.page.hostname_actions import hostname_of
from gateway.http.page.pieces import PIECE_SECONDS, piece
from gateway.http.page.shapes import Page, Shown
from gateway.views import verdicts
from gateway.views.explanation import rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.contract import DnsRecord
    from gateway.contract.names import Hostname
    from gateway.http.page.parts import PageParts
    from gateway.http.page.shapes import Visit

    Topic = tuple[str, tuple[str, ...]]

VERDICT_SECONDS: Final = 9.0
"""A bound besides its own: what is said in its place says more than the frame would."""


class HostnameOutside:
    """The two pages."""

    def __init__(self, parts: PageParts) -> None:
        self._parts = parts

    def pages(self) -> tuple[Page, ...]:
        """Where they are."""
        return (
            Page("/hostnames/{hostname}/zone", "zone.html", self.show_zone),
            Page("/hostnames/{hostname}/verdict", "verdict.html", self.show_verdict),
        )

    async def show_zone(self, visit: Visit) -> Shown:
        """What each server answers, beside what is said to be published."""
        hostname = hostname_of(visit)
        published = await piece(self._published, hostname, within_seconds=PIECE_SECONDS / 2)
        answers = await self._parts.answers_now.of(hostname, published.value)
        is_known = published.fault is None
        return Shown(
            {
                "hostname": hostname,
                "published": published,
                "answers": answers,
                "agreement": agreement(answers, published.value) if is_known else None,
                # Within the hostname's page there is more to see than each server's answer.
                "is_part": visit.is_poll,
            }
        )

    async def show_verdict(self, visit: Visit) -> Shown:
        """What was found out, and what a call would be answered."""
        hostname = hostname_of(visit)
        found = await piece(self._parts.explain, hostname, within_seconds=VERDICT_SECONDS)
        shown: dict[str, object] = {"hostname": hostname, "fault": found.fault}
        if found.value is not None:
            told = list(rows(found.value))
            # Whole, since what the others would point at is folded away here.
            shown["verdicts"] = by_topic(verdicts.rows(found.value))
            shown["findings"] = by_topic(told[: told.index(("", ""))])
        return Shown(shown)

    async def _published(self, hostname: Hostname) -> DnsRecord | None:
        document = await self._parts.documents.read(hostname)
        record = remembered_record(document)
        return record if document.record is not None and document.record["published"] else None


def by_topic(told: Iterable[tuple[str, str]]) -> list[Topic]:
    """Rows of one topic after the other, together."""
    return [
        (topic, tuple(text for _, text in some))
        for topic, some in groupby(told, key=lambda row: row[0])
    ]
