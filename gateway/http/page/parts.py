"""What the pages show and do: the parts of the process that they call, and nothing more of it.

Built by `gateway.operating`, which alone knows how they are joined. Must not: hold anything of one
visit. Read by the pages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from gateway.access.clients import ClientStore
    from gateway.access.last_use import LastUses
    from gateway.access.limits import CallRates
    from gateway.access.provisioning import Provisioning
    from gateway.certificates.authorities import Authorities
    from gateway.certificates.census import Census
    from gateway.contract.names import ClientId, Hostname
    from gateway.dns.answers_now import AnswersNow
    from gateway.dns.zones import Zones
    from gateway.holdings.claims import Claims
    from gateway.holdings.operator_deeds import OperatorDeeds
    from gateway.holdings.quotas import Quota, Quotas
    from gateway.http.health import Monitor
    from gateway.http.page.sessions import Sessions
    from gateway.store.documents import Documents
    from gateway.store.holdings_index import HoldingsIndex
    from gateway.store.lately import Lately
    from gateway.store.name_index import NameIndex
    from gateway.store.trail import Trail
    from gateway.store.trail_reading import TrailReader, Wanted
    from gateway.views.explanation import Explanation


@dataclass(frozen=True, slots=True)
class FrameParts:
    """What the frame itself needs. `admin_digest` is the SHA-256 of the admin token, in hex."""

    sessions: Sessions
    admin_digest: str = field(repr=False)
    trail: Trail
    now_ms: Callable[[], int]


@dataclass(frozen=True, slots=True)
class PageParts:
    """The parts.

    `monitor` answers the one that watches the parts of now, `authority_names` what people call the
    authorities, by the URL of each one's directory; `now_ms` is epoch milliseconds by Redis's
    clock. `quota_of` is what a client may hold, `quotas` tells what it does; `reader` begins a
    reading of the audit trail, `explain` says what calls would be answered now (raises PageFault).
    """

    now_ms: Callable[[], int]
    monitor: Callable[[], Monitor]
    authority_names: Mapping[str, str]
    documents: Documents
    names: NameIndex
    census: Callable[[], Awaitable[Census | None]]
    lately: Lately
    clients: ClientStore
    holdings: HoldingsIndex
    authorities: Authorities
    zones: Zones
    answers_now: AnswersNow
    provisioning: Provisioning
    claims: Claims
    deeds: OperatorDeeds
    explain: Callable[[Hostname], Awaitable[Explanation]]
    last_uses: LastUses
    rates: CallRates
    quotas: Quotas
    quota_of: Callable[[ClientId], Quota]
    reader: Callable[[Wanted], TrailReader]
