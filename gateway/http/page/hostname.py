"""`/operator/hostnames/<hostname>`: all that is stored of one hostname, and its certificate's way.

It reads Redis only, so it is there at once; what the zone's servers answer, and what a call would
be answered, are pages of their own (`hostname_outside`) that its script loads into it. It is
looked at again every second while somebody works on the hostname, and every few seconds else: a
client may ask for it at any time. Must not: judge or change anything. Called through `frame`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from gateway.certificates.states import State
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.http.page import charts
from gateway.http.page.absences import absences_of
from gateway.http.page.conflicts import CONFLICT_HOURS, TRAIL_LOOKED_AT, conflicts_of
from gateway.http.page.hostname_actions import hostname_of
from gateway.http.page.pieces import piece
from gateway.http.page.proposals import Act, proposal
from gateway.http.page.refusals import refusal_of
from gateway.http.page.shapes import Page, Shown, path_to
from gateway.store.documents import Unreadable
from gateway.store.trail_reading import Wanted
from gateway.views.hostname import hostname_view
from gateway.views.stages import Status
from gateway.views.times import duration, time_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway.contract.names import Hostname
    from gateway.http.page.charts import ValidityBar
    from gateway.http.page.parts import PageParts
    from gateway.http.page.refusals import Refusal
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
class Trouble:
    """Why there is no new certificate, told first; `effect` is what that means for now.

    `no_retry`: why it can't be tried now.
    """

    title: str
    effect: str
    deeds: tuple[Deed, ...]
    no_retry: str | None = None


@dataclass(frozen=True, slots=True)
class Deed:
    """What can be done here: the page that asks for it, and in words."""

    url: str
    words: str
    is_dangerous: bool = False

    @property
    def is_retry(self) -> bool:
        """Whether a certificate is tried, or renewed, now."""
        return self.url.endswith((f"/{Act.RETRY}", f"/{Act.RENEW}"))


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
            denied = (await piece(self._parts.deeds.why_denied, document)).value
            absences = await absences_of(self._parts.clients, [document], visit.now_ms)
            view = hostname_view(document, visit.now_ms, self._parts.authority_names, denied)
        except Unreadable as fault:
            client_id = holder.client_id if holder else await self._client_of(hostname)
            shown |= {"view": None, "fault": f"{fault}.", "client_id": client_id, "trouble": None}
            shown |= {"deeds": (), "zone_when": "unreadable", "verdict_when": "unreadable"}
            return Shown(shown | {"live_ms": SELDOM_MS})
        deeds = tuple(deeds_of(document, visit.now_ms))
        no_retry = await self._why_no_retry(document, deeds)
        if no_retry is not None:
            deeds = tuple(each for each in deeds if not each.is_retry)
        trouble = _trouble(view, deeds, no_retry)
        refusals = await piece(self._refusals, document, visit.now_ms)
        shown |= {
            "view": view,
            "is_own": view.holder == THE_GATEWAY,
            "absence": None if view.holder is None else absences.get(view.holder.client_id),
            "is_stored": bool(document.version),
            "bar": None if view.certificate is None else _bar(view.certificate, visit.now_ms),
            "steps": _steps(view),
            "refusals": refusals.value or (),
            "trouble": trouble,
            # The grave ones last; what the trouble has is beside it.
            "deeds": sorted(
                (each for each in deeds if trouble is None or each not in trouble.deeds),
                key=lambda each: each.is_dangerous,
            ),
            "zone_when": zone_mark(document),
            "verdict_when": verdict_mark(document, view),
            "live_ms": _live_ms(view, visit.now_ms),
        }
        return Shown(shown)

    async def _refusals(self, document: Document, now_ms: int) -> list[Refusal]:
        """Clients that were refused here lately, as far as that is not known to be over."""
        hostname, since_ms = document.hostname, now_ms - CONFLICT_HOURS * 3_600_000
        told = (await self._parts.lately.conflicts(since_ms, hostname)).told
        if not told:
            return []
        oldest_ms = min((each.entry or {}).get("at", since_ms) for each in told)
        later = await self._parts.reader(Wanted(oldest_ms, hostname)).before(
            None, TRAIL_LOOKED_AT, TRAIL_LOOKED_AT
        )
        return [
            refusal_of(each, document)
            for each in told
            if conflicts_of([each], [document], later.entries)
        ]

    async def _why_no_retry(self, document: Document, deeds: Sequence[Deed]) -> str | None:
        """Why nothing is tried now, where the document alone does not say it; None where it is."""
        acts = [each.url.rpartition("/")[2] for each in deeds if each.is_retry]
        if not acts:
            return None
        refusal = partial(self._parts.deeds.why_no_retry, document, renews=Act.RENEW in acts)
        return (await piece(refusal)).value

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


def zone_mark(document: Document) -> str:
    """Changes when the zone's answers may: with the record."""
    return _mark(document.record)


def verdict_mark(document: Document, view: HostnameView) -> str:
    """Changes when a call may be answered otherwise; not with each stage on the way."""
    issuance = view.issuance
    stands = None
    if issuance is not None:
        stands = "on the way" if issuance.is_under_way else [issuance.state, issuance.message]
    certificate = None if view.certificate is None else view.certificate.serial
    holder = None if view.holder is None else [view.holder.client_id, view.holder.app_id]
    return _mark([holder, document.record, document.claim, certificate, stands])


def _mark(told: object) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _trouble(view: HostnameView, deeds: Sequence[Deed], no_retry: str | None) -> Trouble | None:
    issuance, certificate = view.issuance, view.certificate
    if issuance is None or issuance.is_under_way:
        return None
    it = "the renewal" if issuance.is_renewal else "it"
    title = f"Why {it} failed" if issuance.state is State.FAILED else f"What {it} waits for"
    if certificate is None:
        effect = "There is no certificate yet."
    elif certificate.is_valid:
        until = time_words(certificate.valid_until_ms)
        effect = f"The present certificate is handed out, and valid until {until}."
    else:
        effect = f"The certificate expired at {time_words(certificate.valid_until_ms)}."
    retry = tuple(each for each in deeds if each.is_retry)
    return Trouble(title, effect, retry, no_retry)


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
