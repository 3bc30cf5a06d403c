"""From the settings to the zones and authorities that the layers below take.

The half of the composition root that only translates; `wiring` joins the parts. Called by it and by
the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway import __version__
from gateway.certificates.accounts import RedisAccountStore
from gateway.certificates.authorities import Listed
from gateway.certificates.authority import Authority, AuthoritySettings
from gateway.certificates.budget import Budget
from gateway.certificates.keys import KeyType
from gateway.certificates.ledger import Ledger
from gateway.contract.names import ZoneName
from gateway.dns.zones import Endpoint, TsigKey, Zone, Zones
from gateway.holdings.quotas import Quota
from gateway.http.crowd import CrowdLimits
from gateway.http.entrance import MOST_PAUSES, Bounds
from gateway.http.flood import FloodLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.access.clients import ClientStore
    from gateway.certificates.sealing import Keyring
    from gateway.config import AcmeSettings, Settings, ZoneSettings
    from gateway.contract.names import ClientId
    from gateway.store.connection import Store


def build_zones(settings: Settings) -> Zones:
    """The zones of the configuration, in the form the DNS layer takes."""
    return Zones(_zone(zone) for zone in settings.zones)


def build_bounds(settings: Settings) -> Bounds:
    """What the endpoint takes of anybody."""
    limits = settings.limits
    return Bounds(
        settings.http.trusted_proxies,
        FloodLimits(limits.unauthenticated_per_minute, limits.unauthenticated_per_second),
        CrowdLimits(limits.concurrent_calls, limits.concurrent_calls_per_credential),
        # The other half of the connections stays free for whoever is not shut out.
        min(MOST_PAUSES, settings.http.connections // 2),
    )


def calls_per_minute_of(settings: Settings, client_id: ClientId) -> int:
    """How many calls a client may make."""
    return settings.limits.of(client_id).calls_per_minute


def quota_of(settings: Settings, client_id: ClientId) -> Quota:
    """What a client may hold."""
    limits = settings.limits.of(client_id)
    return Quota(limits.records, limits.certificates)


def build_authority(acme: AcmeSettings, store: Store, keyring: Keyring) -> Authority:
    """One CA of the configuration, with its account in Redis."""
    return Authority(
        AuthoritySettings(
            name=acme.name,
            profile=acme.profile,
            preferred_chain=acme.preferred_chain,
            origins=acme.origins,
            directory_url=acme.directory,
            ca_bundle=acme.ca_bundle,
            contact=acme.contact,
            eab_key_id=acme.eab.key_id if acme.eab else None,
            eab_hmac_key=acme.eab.hmac_key if acme.eab else None,
            user_agent=f"gateway/{__version__}",
        ),
        RedisAccountStore(store, keyring, acme.directory),
    )


def build_listed(
    acme: AcmeSettings,
    store: Store,
    keyring: Keyring,
    clients: ClientStore,
    now_ms: Callable[[], int],
) -> Listed:
    """One CA with its ledger, as `Authorities` lists them."""
    ledger = Ledger(
        store,
        acme.directory,
        Budget(**acme.budget.model_dump()),
        name=acme.name,
        count_clients=clients.count,
        now_ms=now_ms,
    )
    authority = build_authority(acme, store, keyring)
    return Listed(authority, ledger, KeyType(acme.key_type), acme.renew_at)


def _zone(zone: ZoneSettings) -> Zone:
    tsig = zone.tsig
    primary, *standbys = (Endpoint(*server) for server in zone.primaries)
    return Zone(
        name=ZoneName(zone.name),
        primary=primary,
        key=TsigKey(tsig.name, tsig.algorithm, tsig.secret),
        standbys=tuple(standbys),
        servers=tuple(Endpoint(*server) for server in zone.servers),
        nameserver_port=zone.nameserver_port,
        silent_server_seconds=zone.silent_server_seconds,
        interrupts_wildcards=zone.wildcard_hosts == "interrupt",
    )
