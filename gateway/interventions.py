"""The composition root's other room: the parts that an operator mends holdings with, joined.

Apart from `wiring`, since no call and no worker needs them: a serving process never loads them.
Called by `gateway holdings`. Must not decide anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.access.gate import may_hold
from gateway.dns.handing import Handing
from gateway.dns.survey import Surveyor
from gateway.holdings.candidates import Candidates, Supposed
from gateway.holdings.forgetting import Forgetting
from gateway.holdings.handing_over import HandingOver
from gateway.holdings.rebuilding import Rebuilding
from gateway.holdings.restoring import Restoring
from gateway.wiring import new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gateway.access.clients import ClientStore
    from gateway.contract.names import AppId, ClientId, Hostname
    from gateway.dns.exchange import Exchange
    from gateway.dns.marker import Markers
    from gateway.dns.zones import Zones
    from gateway.holdings.hold import Holds
    from gateway.store.documents import Documents


@dataclass(frozen=True, slots=True)
class Interventions:
    """What hands over and what forgets; what rebuilds is made for each run."""

    handing_over: HandingOver
    forgetting: Forgetting
    _documents: Documents
    _zones: Zones
    _clients: ClientStore
    _surveyor: Surveyor
    _restoring: Restoring

    async def rebuilding(
        self, app_ids: Iterable[AppId], supposed: Iterable[Supposed], *, writes: bool
    ) -> Rebuilding:
        """One run, which tries the clients that there are now. Raises `StoreUnavailable`."""
        clients = {client.client_id: client for client in (await self._clients.all()).clients}

        def may_hold_it(client_id: ClientId, hostname: Hostname) -> bool:
            return may_hold(clients[client_id], hostname)

        candidates = Candidates(clients, app_ids, supposed, may_hold_it)
        return Rebuilding(
            self._documents,
            self._zones,
            self._surveyor,
            self._restoring,
            candidates,
            writes=writes,
        )


def build_interventions(
    documents: Documents,
    holds: Holds,
    clients: ClientStore,
    zones: Zones,
    markers: Markers,
    exchange: Exchange,
    now_ms: Callable[[], int],
) -> Interventions:
    """Join them with the parts of a process."""
    surveyor = Surveyor(zones, markers, exchange)
    restoring = Restoring(documents, holds, surveyor, zones, new_id)
    handing = Handing(zones, markers, exchange)
    return Interventions(
        HandingOver(documents, handing, restoring, now_ms),
        Forgetting(documents, holds, surveyor, zones),
        documents,
        zones,
        clients,
        surveyor,
        restoring,
    )
