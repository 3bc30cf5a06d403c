"""The composition root: builds every part from the settings and joins them.

The one place that knows all layers, reads the clock and draws randomness; everything else gets
them as arguments. Called by the command line.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway import __version__
from gateway.access.calls import Calls
from gateway.access.clients import ClientStore
from gateway.access.gate import Gate, may_hold
from gateway.access.provisioning import Provisioning
from gateway.certificates.accounts import RedisAccountStore
from gateway.certificates.authority import Authority, AuthoritySettings
from gateway.certificates.cleanup import Cleaner
from gateway.certificates.keyring_proof import prove_keyring
from gateway.certificates.keys import KeyType
from gateway.certificates.pace import Pace
from gateway.certificates.sealing import load_keyring
from gateway.certificates.steps import Steps
from gateway.certificates.worker import Worker
from gateway.contract.names import ZoneName
from gateway.dns.challenges import Challenges
from gateway.dns.exchange import Exchange
from gateway.dns.marker import MarkerKey, Markers
from gateway.dns.propagation import Propagation
from gateway.dns.publisher import Publisher
from gateway.dns.zones import Endpoint, TsigKey, Zone, Zones
from gateway.holdings.certificates import Certificates
from gateway.holdings.claims import Claims
from gateway.holdings.hold import Holds
from gateway.holdings.records import Records
from gateway.store.connection import Store, StoreUnavailable
from gateway.store.documents import Documents
from gateway.store.embedded import EmbeddedRedis
from gateway.store.holdings_index import HoldingsIndex

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gateway.certificates.sealing import Keyring
    from gateway.config import AcmeSettings, Settings, ZoneSettings
    from gateway.contract.names import Hostname
    from gateway.store.documents import Holder

MARKER_PURPOSE = "owner-marker"


@dataclass(frozen=True, slots=True)
class Gateway:
    """All parts of one process, joined. `worker` and `authority` are None where there is none."""

    store: Store
    zones: Zones
    exchange: Exchange
    clients: ClientStore
    claims: Claims
    provisioning: Provisioning
    calls: Calls
    authority: Authority | None
    worker: Worker | None


@contextlib.asynccontextmanager
async def open_gateway(
    settings: Settings, *, serves: bool = False, works: bool = False
) -> AsyncIterator[Gateway]:
    """The parts, with their Redis; closed at the end.

    `serves`: for a long-lived process, which keeps an embedded Redis alive. `works`: with a worker
    (built, not started), where an authority is configured.

    Raises:
        KeyringInvalid: with every fault of the keyring file, or that it is another's.
        EmbeddedRedisFault: no Redis could be started.
    """
    keyring = load_keyring(settings.keyring_file)
    async with _redis_url(settings, serves=serves) as url:
        store = Store(url)
        try:
            # Without Redis nothing can be compared, and nothing sealed or published either.
            with contextlib.suppress(StoreUnavailable):
                await prove_keyring(keyring, store)
            gateway = _build(settings, keyring, store, works=works)
            try:
                yield gateway
            finally:
                if gateway.authority is not None:
                    await gateway.authority.close()
        finally:
            await store.close()


def build_zones(settings: Settings) -> Zones:
    """The zones of the configuration, in the form the DNS layer takes."""
    return Zones(_zone(zone) for zone in settings.zones)


def build_authority(acme: AcmeSettings, store: Store, keyring: Keyring) -> Authority:
    """The CA of the configuration, with its account in Redis."""
    return Authority(
        AuthoritySettings(
            directory_url=acme.directory,
            ca_bundle=acme.ca_bundle,
            contact=acme.contact,
            eab_key_id=acme.eab.key_id if acme.eab else None,
            eab_hmac_key=acme.eab.hmac_key if acme.eab else None,
            user_agent=f"gateway/{__version__}",
        ),
        RedisAccountStore(store, keyring, acme.directory),
    )


@contextlib.asynccontextmanager
async def _redis_url(settings: Settings, *, serves: bool) -> AsyncIterator[str]:
    if not settings.redis.is_embedded:
        yield settings.redis.url
        return
    embedded = EmbeddedRedis(settings.state_dir)
    await (embedded.start() if serves else embedded.connect_or_start())
    try:
        yield embedded.url
    finally:
        await embedded.stop()


def _build(settings: Settings, keyring: Keyring, store: Store, *, works: bool) -> Gateway:
    zones, exchange = build_zones(settings), Exchange()
    documents, index, clients = Documents(store), HoldingsIndex(store), ClientStore(store)
    marker_keys = [MarkerKey(key_id, key) for key_id, key in keyring.derive(MARKER_PURPOSE)]
    publisher = Publisher(zones, Markers(marker_keys), exchange)
    holds, pace = Holds(documents, index, now_ms), Pace()
    acme, authority, worker = settings.acme, None, None
    if acme is not None:
        authority = build_authority(acme, store, keyring)
        if works:
            challenges = Challenges(zones, exchange)
            worker = Worker(
                documents,
                Steps(
                    authority,
                    challenges,
                    Propagation(exchange, time.monotonic),
                    keyring,
                    directory_url=acme.directory,
                    key_type=KeyType(acme.key_type),
                    renewal_share=acme.renew_at,
                    now_ms=now_ms,
                    jitter=random.random,
                ),
                Cleaner(authority, challenges),
                pace,
                name=f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}",
                may_renew=_RenewalPolicy(clients).may_renew,
                new_id=new_id,
                now_ms=now_ms,
                jitter=random.random,
                concurrency=settings.worker.concurrency,
            )
    records = Records(documents, holds, publisher, new_id)
    certificates = Certificates(
        documents,
        holds,
        publisher,
        keyring,
        pace,
        issues=authority is not None,
        wake=_nobody_to_wake if worker is None else worker.kick,
        new_id=new_id,
        now_ms=now_ms,
    )
    provisioning = Provisioning(clients, index, documents, records, certificates, now_ms)
    calls = Calls(
        Gate(clients, settings.admin.token_sha256, now_ms),
        records,
        certificates,
        provisioning,
        has_zones=bool(settings.zones),
        issues=authority is not None,
    )
    return Gateway(
        store=store,
        zones=zones,
        exchange=exchange,
        clients=clients,
        claims=Claims(store, documents, now_ms),
        provisioning=provisioning,
        calls=calls,
        authority=authority,
        worker=worker,
    )


class _RenewalPolicy:
    """Whether a holder may have its certificate renewed: by its client's live policy."""

    def __init__(self, clients: ClientStore) -> None:
        self._clients = clients

    async def may_renew(self, holder: Holder, hostname: Hostname) -> bool:
        stored = await self._clients.by_id(holder.client_id)
        if stored is None:
            return False
        client = stored.client
        has_credential = client.newest_credential(now_ms()) is not None
        may_request = "requestCertificates" in client.capabilities
        return has_credential and may_request and may_hold(client, hostname)


def _zone(zone: ZoneSettings) -> Zone:
    tsig = zone.tsig
    return Zone(
        name=ZoneName(zone.name),
        primary=Endpoint(*zone.primary),
        key=TsigKey(tsig.name, tsig.algorithm, tsig.secret),
        servers=tuple(Endpoint(*server) for server in zone.servers),
        nameserver_port=zone.nameserver_port,
    )


def _nobody_to_wake(_: Hostname) -> None:
    """Another process's worker finds the work in the queue."""


def now_ms() -> int:
    """The clock: epoch milliseconds."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """A name that nothing else has."""
    return secrets.token_hex(8)
