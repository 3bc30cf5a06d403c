"""The parts of a gateway that can fail, and how each is found to be well; `/readyz` shows them.

Called by `gateway.generation`, which has the `Monitor` of `gateway.http.health` watch them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gateway.dns.errors import DnsFault
from gateway.dns.health import probe_zone, silent_servers
from gateway.http.health import Need, Part, PartFailed, PartUnknown
from gateway.store.schema_version import StateRefused, examine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.certificates.worker import Worker
    from gateway.dns.exchange import Exchange
    from gateway.dns.health import Silence
    from gateway.dns.zones import Zone
    from gateway.wiring import Gateway

ZONE_PROBE_SECONDS: Final = 4.0
NAME_SERVERS_EVERY_SECONDS: Final = 30.0
WORKER_SILENCE_MS: Final = 5_000


def parts_of(gateway: Gateway) -> list[Part]:
    """Every part, with how often it is looked at."""
    parts = [Part("redis", "redis", Need.ALWAYS, 1.0, _redis_probe(gateway))]
    parts += [
        Part(f"zone {zone.name}", "zone", Need.ONE_OF_ITS_KIND, 5.0, _zone_probe(gateway, zone))
        for zone in gateway.zones.all
    ]
    parts += [
        Part(
            f"name servers {zone.name}",
            "name-servers",
            Need.NICE,
            NAME_SERVERS_EVERY_SECONDS,
            name_servers_probe(gateway.exchange, zone),
        )
        for zone in gateway.zones.all
    ]
    parts += [
        Part(f"acme {each.authority.name}", "acme", Need.NICE, 15.0, each.authority.probe)
        for each in gateway.authorities
    ]
    if gateway.worker is not None:
        parts.append(Part("worker", "worker", Need.ALWAYS, 1.0, _worker_probe(gateway.worker)))
    return parts


def _redis_probe(gateway: Gateway) -> Callable[[], Awaitable[None]]:
    async def probe() -> None:
        await gateway.store.ping()
        await gateway.store.demand_writable()
        # A process without a worker has no other occasion.
        await gateway.clock.sync()
        try:
            # A start without Redis could not ask, and one that was emptied may be restored into.
            await examine(gateway.store)
        except StateRefused as refused:
            gateway.store.refuse(str(refused).removesuffix("."))
            raise PartFailed(str(refused)) from refused
        gateway.store.refuse(None)

    return probe


def _zone_probe(gateway: Gateway, zone: Zone) -> Callable[[], Awaitable[None]]:
    exchange: Exchange = gateway.exchange

    async def probe() -> None:
        deadline = asyncio.get_running_loop().time() + ZONE_PROBE_SECONDS
        health = await probe_zone(exchange, zone, deadline)
        if not health.ok:
            raise PartFailed(health.detail)

    return probe


def name_servers_probe(exchange: Exchange, zone: Zone) -> Callable[[], Awaitable[None]]:
    """Whether those answer that each challenge is waited for at; records do not need them."""
    said_before: str | None = None

    async def probe() -> None:
        nonlocal said_before
        deadline = asyncio.get_running_loop().time() + ZONE_PROBE_SECONDS
        try:
            silence = await silent_servers(exchange, zone, deadline)
        except DnsFault:
            # The primary does not tell which there are: its own part says so, and once is enough.
            if said_before is not None:
                raise PartFailed(said_before) from None
            raise PartUnknown("No primary of the zone tells which there are.") from None
        said_before = _silence_words(zone, silence) if silence.at else None
        if said_before is not None:
            raise PartFailed(said_before)

    return probe


def _silence_words(zone: Zone, silence: Silence) -> str:
    *others, last = silence.at
    who = f"{', '.join(others)} and {last} do" if others else f"{last} does"
    said = f"{who} not answer for the zone"
    if silence.is_everywhere:
        return f"{said}, and no other does: no certificate is issued."
    if zone.silent_server_seconds is None:
        return f"{said}: every issuance waits."
    return f"{said}: each issuance waits {zone.silent_server_seconds:g} s, and goes on without."


def _worker_probe(worker: Worker) -> Callable[[], Awaitable[None]]:
    async def probe() -> None:
        await worker.polled.wait()
        if worker.silent_ms > WORKER_SILENCE_MS:
            raise PartFailed("the worker has not read its queue lately")

    return probe
