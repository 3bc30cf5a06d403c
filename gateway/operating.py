"""The composition root's third room: the operator's page, joined with the parts of a process.

Must not decide anything. Called by `gateway.generation`, once for each configuration.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gateway.access.limits import CallRates
from gateway.certificates.enumerator import KeptCensus
from gateway.configured import calls_per_minute_of, quota_of
from gateway.dns.answers_now import AnswersNow
from gateway.explaining import Explaining, NotExplained, Question
from gateway.holdings.quotas import Quotas
from gateway.http.page.faults import PageFault
from gateway.http.page.frame import Frame
from gateway.http.page.pages import all_pages
from gateway.http.page.parts import FrameParts, PageParts
from gateway.http.page.sessions import Sessions
from gateway.interventions import build_deeds
from gateway.store.holdings_index import HoldingsIndex
from gateway.store.lately import Lately
from gateway.store.name_index import NameIndex
from gateway.store.trail_reading import TrailReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.routing import Route

    from gateway.config import Settings
    from gateway.contract.names import Hostname
    from gateway.http.entrance import Entrance
    from gateway.http.health import Monitor
    from gateway.views.explanation import Explanation
    from gateway.wiring import Gateway


def page_routes(
    gateway: Gateway,
    settings: Settings,
    redis_url: str,
    entrance: Entrance,
    monitor: Callable[[], Monitor],
) -> list[Route]:
    """Where the operator's page is; nothing while it is off. `redis_url` is the process's own."""
    if not settings.page_is_on:
        return []
    now_ms, admin_digest = gateway.clock.now_ms, settings.admin.token_sha256
    sessions = Sessions(gateway.store, admin_digest, now_ms)
    frame = Frame(FrameParts(sessions, admin_digest, gateway.trail, now_ms), entrance)
    return frame.routes(all_pages(build_parts(gateway, settings, redis_url, monitor)))


def build_parts(
    gateway: Gateway, settings: Settings, redis_url: str, monitor: Callable[[], Monitor]
) -> PageParts:
    """What the pages show and do, of these parts."""
    now_ms = gateway.clock.now_ms
    holdings, may_hold = HoldingsIndex(gateway.store), partial(quota_of, settings)
    return PageParts(
        now_ms=now_ms,
        monitor=monitor,
        authority_names=settings.authority_names,
        documents=gateway.documents,
        names=NameIndex(gateway.store),
        census=KeptCensus(gateway.store).last,
        lately=Lately(gateway.store, is_kept=settings.audit.entries > 0),
        clients=gateway.clients,
        holdings=holdings,
        authorities=gateway.authorities,
        zones=gateway.zones,
        answers_now=AnswersNow(gateway.zones, gateway.exchange, gateway.markers),
        provisioning=gateway.provisioning,
        claims=gateway.claims,
        deeds=build_deeds(gateway),
        explain=partial(_explain, Explaining(settings, redis_url)),
        last_uses=gateway.last_uses,
        rates=CallRates(gateway.store, partial(calls_per_minute_of, settings), now_ms),
        quotas=Quotas(gateway.documents, holdings, may_hold, now_ms),
        quota_of=may_hold,
        reader=partial(TrailReader, gateway.store),
    )


async def _explain(explaining: Explaining, hostname: Hostname) -> Explanation:
    try:
        return await explaining.explain(Question(hostname))
    except NotExplained as why:
        raise PageFault(503, str(why)) from None
