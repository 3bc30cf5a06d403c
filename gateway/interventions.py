"""The composition root's other room: the parts that an operator's own hand moves, joined.

Apart from `wiring`, since no call and no worker needs them. Called by `gateway holdings` and
`gateway issuances`, and by what builds the operator's page. Must not decide anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.access.gate import RenewalPolicy, may_hold
from gateway.dns.handing import Handing
from gateway.dns.survey import Surveyor
from gateway.holdings.candidates import Candidates, Supposed
from gateway.holdings.forgetting import Forgetting
from gateway.holdings.handing_over import HandingOver
from gateway.holdings.operator_deeds import OperatorDeeds
from gateway.holdings.rebuilding import Rebuilding
from gateway.holdings.restoring import Restoring
from gateway.wiring import new_id, nobody_to_wake

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.access.clients import Client
    from gateway.contract.names import AppId, ClientId, Hostname
    from gateway.dns.zones import Zones
    from gateway.store.documents import Documents
    from gateway.wiring import Gateway


@dataclass(frozen=True, slots=True)
class Interventions:
    """What hands over and what forgets; what rebuilds is made for each run."""

    handing_over: HandingOver
    forgetting: Forgetting
    _documents: Documents
    _zones: Zones
    _surveyor: Surveyor
    _restoring: Restoring

    def rebuilding(
        self,
        clients: Iterable[Client],
        app_ids: Iterable[AppId],
        supposed: Iterable[Supposed],
        *,
        writes: bool,
    ) -> Rebuilding:
        """One run, which tries these clients."""
        by_id = {client.client_id: client for client in clients}

        def may_hold_it(client_id: ClientId, hostname: Hostname) -> bool:
            return may_hold(by_id[client_id], hostname)

        candidates = Candidates(by_id, app_ids, supposed, may_hold_it)
        return Rebuilding(
            self._documents,
            self._zones,
            self._surveyor,
            self._restoring,
            candidates,
            writes=writes,
        )


def build_interventions(gateway: Gateway) -> Interventions:
    """Join them with the parts of a process."""
    documents, holds, zones = gateway.documents, gateway.holds, gateway.zones
    surveyor = Surveyor(zones, gateway.markers, gateway.exchange)
    restoring = Restoring(documents, holds, surveyor, zones, new_id)
    handing = Handing(zones, gateway.markers, gateway.exchange)
    return Interventions(
        HandingOver(documents, handing, restoring, gateway.clock.now_ms),
        Forgetting(documents, holds, surveyor, zones),
        documents,
        zones,
        surveyor,
        restoring,
    )


def build_deeds(gateway: Gateway) -> OperatorDeeds:
    """What an operator does to one hostname by hand; a worker of this process is woken."""
    worker, now_ms = gateway.worker, gateway.clock.now_ms
    return OperatorDeeds(
        gateway.documents,
        gateway.certificates,
        gateway.records,
        gateway.claims,
        gateway.authorities,
        why_not_renewed=RenewalPolicy(gateway.clients, now_ms).why_not,
        wake=nobody_to_wake if worker is None else worker.kick,
        new_id=new_id,
        now_ms=now_ms,
        trail=gateway.trail,
    )
