"""`/operator/hostnames/<hostname>`: all that is stored of one hostname, and its certificate's way.

It reads Redis only, so it is there at once; what the zone's servers answer, and what a call would
be answered, are pages of their own (`hostname_outside`) that its script loads into it. It is
looked at again every second while somebody works on the hostname, and every few seconds else: a
client may ask for it at any time. Must not: judge or change anything. Called through `frame`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.http.page import charts
from gateway.http.page.hostname_actions import hostname_of
from gateway.http.page.proposals import Act, proposal
from gateway.http.page.shapes import Page, Shown, path_to
from gateway.store.documents import Unreadable
from gateway.views.hostname import hostname_view
from gateway.views.stages import Status
from gateway.views.times import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway.contract.names import Hostname
    from gateway.http.page.charts import ValidityBar
    from gateway.http.page.parts import PageParts
    from gateway.http.page.shapes import Visit
    from gateway.store.documents import Document
    from gateway.views.hostname import CertificateView, HostnameView
    from gateway.views.stages import Stage

SOON_MS: Final = 1_000
SELDOM_MS: Final = 5_000
_DUE_SOON_MS: Final = 10_000

_STATUS_WORDS: Final = {
    Status.PASSED: "passed",
    Status.SKIPPED: "not needed",
    Status.CURRENT: "under way",
    Status.WAITING: "waits here",
    Status.FAILED: "failed here",
    Status.TO_COME: "to come",
}


@dataclass(frozen=True, slots=True)
class Step:
    """A stage as it is shown. `took`: how long the stage before it lasted, where that is known."""

    stage: Stage
    status: str
    took: str | None


@dataclass(frozen=True, slots=True)
class Deed:
    """What can be done here: the page that asks for it, and in words."""

    url: str
    words: str
    is_dangerous: bool = False


class OneHostname:
    """The page of each hostname."""

    def __init__(self, parts: PageParts) -> None:
        self._parts = parts

    def page(self) -> Page:
        """Where it is."""
        return Page("/hostnames/{hostname}", "hostname.html", self.show)

    async def show(self, visit: Visit) -> Shown:
        """The hostname as it is stored now."""
        hostname = hostname_of(visit)
        shown: dict[str, object] = {
            "hostname": hostname,
            "zone": self._parts.zones.holding(hostname),
            "zone_url": path_to("hostnames", hostname, "zone"),
            "verdict_url": path_to("hostnames", hostname, "verdict"),
            "audit_url": path_to("audit", hostname=hostname),
        }
        holder = None
        try:
            document = await self._parts.documents.read(hostname)
            holder = document.holder
            view = hostname_view(document, visit.now_ms, self._parts.authority_names)
        except Unreadable as fault:
            client_id = holder.client_id if holder else await self._client_of(hostname)
            shown |= {"view": None, "fault": f"{fault}.", "client_id": client_id, "deeds": ()}
            return Shown(shown | {"live_ms": SELDOM_MS})
        shown |= {
            "view": view,
            "is_own": view.holder == THE_GATEWAY,
            "is_stored": bool(document.version),
            "bar": None if view.certificate is None else _bar(view.certificate, visit.now_ms),
            "steps": _steps(view),
            "deeds": tuple(deeds_of(document, visit.now_ms)),
            "live_ms": _live_ms(view, visit.now_ms),
        }
        return Shown(shown)

    async def _client_of(self, hostname: Hostname) -> str | None:
        (client_id,) = await self._parts.documents.clients_of([hostname])
        return client_id


def steps_of(stages: Sequence[Stage]) -> list[Step]:
    """The stages in their order, with the time from one that is known to the next."""
    steps, before_ms = [], None
    for stage in stages:
        took = None
        if stage.at_ms is not None:
            took = None if before_ms is None else duration(stage.at_ms - before_ms)
            before_ms = stage.at_ms
        steps.append(Step(stage, _STATUS_WORDS[stage.status], took))
    return steps


def deeds_of(document: Document, now_ms: int) -> Iterator[Deed]:
    """What can be done about a hostname now; each page says more, and may still refuse it."""
    asked = {act: proposal(act, document, now_ms) for act in Act}
    possible = [act for act in Act if asked[act].refusal is None]
    for act in possible:
        # Where something rests, another try is all that a renewal would be.
        if act is Act.RENEW and Act.RETRY in possible:
            continue
        url = path_to("hostnames", document.hostname, act.value)
        yield Deed(url, asked[act].button, asked[act].is_grave)


def _steps(view: HostnameView) -> list[Step]:
    if view.issuance is not None:
        return steps_of(view.issuance.stages)
    return [] if view.certificate is None else steps_of(view.certificate.stages)


def _bar(certificate: CertificateView, now_ms: int) -> ValidityBar:
    return charts.validity(
        certificate.valid_from_ms,
        certificate.valid_until_ms,
        now_ms,
        renew_at_ms=certificate.renew_at_ms,
        window_ms=certificate.window_ms,
    )


def _live_ms(view: HostnameView, now_ms: int) -> int:
    is_due = view.next_at_ms is not None and view.next_at_ms - now_ms < _DUE_SOON_MS
    return SOON_MS if view.is_under_way or is_due else SELDOM_MS
