"""The composition root: builds every part from the settings and joins them.

The one place that knows all layers, hands out the clocks (`gateway.clocks`) and draws randomness;
everything else gets them as arguments. Called by the command line.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import socket
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gateway.access.calls import Calls
from gateway.access.clients import ClientStore
from gateway.access.foresight import Foresight
from gateway.access.gate import Gate, RenewalPolicy
from gateway.access.limits import CallRates
from gateway.access.provisioning import Provisioning
from gateway.certificates.authorities import Authorities
from gateway.certificates.cleanup import Cleaner
from gateway.certificates.keyring_proof import prove_keyring
from gateway.certificates.pace import Pace
from gateway.certificates.sealing import KeyringInvalid, load_keyring
from gateway.certificates.steps import Steps
from gateway.certificates.worker import Worker
from gateway.clocks import now_ms, steady_ms
from gateway.configured import build_listed, build_zones, calls_per_minute_of, quota_of
from gateway.dns.challenges import Challenges
from gateway.dns.exchange import Exchange
from gateway.dns.marker import MarkerKey, Markers
from gateway.dns.propagation import Propagation
from gateway.dns.publisher import Publisher
from gateway.dns.rehearsal import RehearsedExchange
from gateway.files import Reading
from gateway.holdings.certificates import Certificates
from gateway.holdings.claims import Claims
from gateway.holdings.hold import Holds
from gateway.holdings.orphans import Orphans
from gateway.holdings.records import Records
from gateway.notes import open_notes
from gateway.store.clock import SharedClock
from gateway.store.connection import Store, StoreUnavailable
from gateway.store.documents import Documents
from gateway.store.holdings_index import HoldingsIndex
from gateway.store.rehearsal import RehearsedStore
from gateway.store.schema_version import settle
from gateway.stores import open_redis

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from gateway.access.last_use import LastUses
    from gateway.certificates.sealing import Keyring
    from gateway.config import Settings
    from gateway.contract.names import ClientId, Hostname
    from gateway.dns.zones import Zones
    from gateway.notes import Notes
    from gateway.store.trail import Trail

MARKER_PURPOSE = "owner-marker"

READ_SECONDS = 10.0
"""How long the keyring may take to be read."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """All parts of one process, joined.

    `worker` is None where there is none, `foresight` unless it rehearses.
    """

    store: Store
    clock: SharedClock
    keyring: Keyring
    documents: Documents
    holds: Holds
    publisher: Publisher
    markers: Markers
    challenges: Challenges
    zones: Zones
    exchange: Exchange
    clients: ClientStore
    claims: Claims
    records: Records
    certificates: Certificates
    provisioning: Provisioning
    calls: Calls
    authorities: Authorities
    trail: Trail
    last_uses: LastUses
    worker: Worker | None
    foresight: Foresight | None


@contextlib.asynccontextmanager
async def open_gateway(
    settings: Settings,
    *,
    works: bool = False,
    rehearses: bool = False,
    redis_url: str | None = None,
) -> AsyncIterator[Gateway]:
    """The parts, with their Redis; closed at the end.

    `works`: with a worker (built, not started), where an authority is configured. `rehearses`:
    whatever is called changes neither Redis nor a zone, and answers as if it had. `redis_url`: of
    an `open_redis` that outlives these parts; without, they have their own.

    Raises:
        KeyringInvalid: with every fault of the keyring file, or that it is another's.
        StateRefused: Redis holds what this release can't work with.
        EmbeddedRedisFault: no Redis could be started.
    """
    keyring = await _read_keyring(settings.keyring_file)
    redis = contextlib.nullcontext(redis_url) if redis_url else open_redis(settings, serves=False)
    async with redis as url:
        of_store = RehearsedStore if rehearses else Store
        store = of_store(url, replicas=settings.redis.replicas)
        clock = SharedClock(store, now_ms, steady_ms)
        try:
            # Without Redis nothing can be compared, and nothing sealed or published either.
            with contextlib.suppress(StoreUnavailable):
                await clock.sync()
                await settle(store, clock.now_ms)
                await prove_keyring(keyring, store)
            exchange = (RehearsedExchange if rehearses else Exchange)(keeps_connections=True)
            async with open_notes(
                settings,
                store,
                is_command=redis_url is None,
                rehearses=rehearses,
                now_ms=clock.now_ms,
                new_id=new_id,
            ) as notes:
                gateway = _build(settings, keyring, store, clock, exchange, notes, works=works)
                try:
                    yield gateway
                finally:
                    exchange.close()
                    await gateway.authorities.close()
        finally:
            await store.close()


async def _read_keyring(file: Path) -> Keyring:
    """Off the event loop, on which calls may be answered meanwhile."""
    try:
        return await Reading(partial(load_keyring, file), READ_SECONDS).result()
    except TimeoutError:
        raise KeyringInvalid([f"{file}: was not read within {READ_SECONDS:g} seconds"]) from None


def _build(
    settings: Settings,
    keyring: Keyring,
    store: Store,
    clock: SharedClock,
    exchange: Exchange,
    notes: Notes,
    *,
    works: bool,
) -> Gateway:
    ground = _lay_ground(settings, keyring, store, clock, exchange, notes)
    steps = None if len(ground.authorities) == 0 else _steps(ground)
    worker = None if steps is None or not works else _worker(ground, steps, settings)
    records, certificates = _holdings(ground, worker)
    provisioning, calls = _calls(ground, settings, records, certificates)
    return Gateway(
        store=store,
        clock=clock,
        keyring=keyring,
        documents=ground.documents,
        holds=ground.holds,
        publisher=ground.publisher,
        markers=ground.markers,
        challenges=ground.challenges,
        zones=ground.zones,
        exchange=exchange,
        clients=ground.clients,
        claims=Claims(store, ground.documents, clock.now_ms, notes.trail),
        records=records,
        certificates=certificates,
        provisioning=provisioning,
        calls=calls,
        authorities=ground.authorities,
        trail=notes.trail,
        last_uses=notes.last_uses,
        worker=worker,
        foresight=_foresight(ground, steps, calls),
    )


@dataclass(frozen=True, slots=True)
class _Ground:
    """What the parts that do something stand on."""

    store: Store
    clock: SharedClock
    keyring: Keyring
    exchange: Exchange
    zones: Zones
    markers: Markers
    challenges: Challenges
    publisher: Publisher
    documents: Documents
    index: HoldingsIndex
    holds: Holds
    clients: ClientStore
    authorities: Authorities
    pace: Pace
    trail: Trail
    last_uses: LastUses


def _lay_ground(
    settings: Settings,
    keyring: Keyring,
    store: Store,
    clock: SharedClock,
    exchange: Exchange,
    notes: Notes,
) -> _Ground:
    zones, clients = build_zones(settings), ClientStore(store)
    documents, index = Documents(store), HoldingsIndex(store)
    markers = Markers([MarkerKey(key_id, key) for key_id, key in keyring.derive(MARKER_PURPOSE)])
    return _Ground(
        store=store,
        clock=clock,
        keyring=keyring,
        exchange=exchange,
        zones=zones,
        markers=markers,
        challenges=Challenges(zones, exchange),
        publisher=Publisher(zones, markers, exchange),
        documents=documents,
        index=index,
        holds=Holds(documents, index, clock.now_ms, partial(quota_of, settings)),
        clients=clients,
        authorities=Authorities(
            [build_listed(acme, store, keyring, clients, clock.now_ms) for acme in settings.acme]
        ),
        pace=Pace(),
        trail=notes.trail,
        last_uses=notes.last_uses,
    )


def _steps(ground: _Ground) -> Steps:
    return Steps(
        ground.authorities,
        ground.challenges,
        Propagation(ground.exchange, time.monotonic),
        ground.keyring,
        now_ms=ground.clock.now_ms,
        jitter=random.random,
    )


def _worker(ground: _Ground, steps: Steps, settings: Settings) -> Worker:
    return Worker(
        ground.documents,
        steps,
        Cleaner(ground.authorities, ground.challenges),
        ground.pace,
        ground.clock,
        name=f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}",
        may_renew=RenewalPolicy(ground.clients, ground.clock.now_ms).may_renew,
        new_id=new_id,
        jitter=random.random,
        concurrency=settings.worker.concurrency,
        zone_of=ground.zones.told_apart,
        trail=ground.trail,
    )


def _holdings(ground: _Ground, worker: Worker | None) -> tuple[Records, Certificates]:
    documents, holds, publisher = ground.documents, ground.holds, ground.publisher
    now_ms, trail = ground.clock.now_ms, ground.trail
    orphans = Orphans(documents, holds, publisher, now_ms)
    records = Records(
        documents, holds, orphans, publisher, new_id=new_id, now_ms=now_ms, trail=trail
    )
    certificates = Certificates(
        documents,
        holds,
        orphans,
        publisher,
        ground.challenges,
        ground.keyring,
        ground.pace,
        issues=len(ground.authorities) > 0,
        wake=nobody_to_wake if worker is None else worker.kick,
        new_id=new_id,
        now_ms=now_ms,
        trail=trail,
    )
    return records, certificates


def _calls(
    ground: _Ground, settings: Settings, records: Records, certificates: Certificates
) -> tuple[Provisioning, Calls]:
    now_ms, trail = ground.clock.now_ms, ground.trail
    provisioning = Provisioning(
        ground.clients, ground.index, ground.documents, records, certificates, now_ms, trail
    )
    rates = CallRates(ground.store, partial(calls_per_minute_of, settings), now_ms)
    calls = Calls(
        Gate(ground.clients, settings.admin.token_sha256, rates, now_ms, ground.last_uses),
        records,
        certificates,
        provisioning,
        has_zones=bool(settings.zones),
        issues=len(ground.authorities) > 0,
        trail=trail,
    )
    return provisioning, calls


def _foresight(ground: _Ground, steps: Steps | None, calls: Calls) -> Foresight | None:
    if not isinstance(ground.store, RehearsedStore):
        return None
    return Foresight(
        calls, ground.clients, ground.documents, steps, ground.store, ground.clock.now_ms
    )


def nobody_to_wake(_: Hostname, _client: ClientId) -> None:
    """Another process's worker finds the work in the queue."""


def new_id() -> str:
    """A name that nothing else has."""
    return secrets.token_hex(8)
