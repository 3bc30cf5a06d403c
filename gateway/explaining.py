"""How a hostname is judged, and what a sync and an issuance would do now: asks all parts.

Responsible for asking them at once, with one deadline for all, and, in a process that serves, for
how many do so at a time; `views.explanation` has the words, `access.foresight` the verdicts.
Changes nothing: the gateway is opened for rehearsals. A part that cannot be asked, or that no time
is left for, is a sentence in its place. Called by `gateway explain` and the page.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from gateway.access.clients import ClientUnreadable
from gateway.access.foresight import NO_TIME, choose_asker, covering
from gateway.certificates.budget import Renewal
from gateway.certificates.outlook import outlook
from gateway.certificates.sealing import KeyringInvalid
from gateway.contract import DnsRecord, record_type_of
from gateway.dns.owner import Owner
from gateway.dns.situation import matching_zones, see_challenge, see_name, see_zone
from gateway.holdings.hold import owner_of
from gateway.holdings.remembered import remembered_record, require_readable, sought_records
from gateway.store.connection import StoreRefused, StoreUnavailable
from gateway.store.documents import Contended, Unreadable
from gateway.store.schema_version import StateRefused
from gateway.views.explanation import Explanation, Fault, first_allowed
from gateway.wiring import open_gateway

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.access.clients import Everyone
    from gateway.access.foresight import Asker, Foreseen
    from gateway.certificates.ledger import Granted, Held
    from gateway.config import Settings
    from gateway.contract.names import AppId, ClientId, Hostname
    from gateway.dns.situation import ChallengeSeen, NameSeen, ZoneSeen
    from gateway.dns.zones import Zone
    from gateway.store.documents import Document
    from gateway.wiring import Gateway

_T = TypeVar("_T")

LIMIT_SECONDS: Final = 11.0
"""How long all of it may take, so that the command ends within 15 seconds: Python's start, and the
end of what is under way, take seconds on a busy machine."""


SERVED_SECONDS: Final = 8.0
"""The same for a page, which has a second or two of its own."""

AT_ONCE: Final = 2
"""How many are found out at a time in a process that serves: each opens parts of its own."""

_CLOSING_SECONDS: Final = 0.5
"""How much of its time a process that serves keeps for the end of what is under way."""


class NotExplained(Exception):
    """Nothing could be found out; the text is one sentence for a person, and says why."""


class Question(NamedTuple):
    """What is asked, each part valid by itself; what is None is chosen."""

    hostname: Hostname
    client_id: ClientId | None = None
    app_id: AppId | None = None
    address: str | None = None


async def explained(
    settings: Settings,
    question: Question,
    limit_seconds: float = LIMIT_SECONDS,
    redis_url: str | None = None,
) -> Explanation:
    """All that can be found out within the limit; what cannot is told in its place.

    The start of an embedded Redis does not count. `redis_url`: of one that this process runs
    already; an embedded one is not started a second time then.

    Raises: what `open_gateway` raises.
    """
    time = asyncio.get_running_loop().time
    began = time()
    starts_redis = settings.redis.is_embedded and redis_url is None
    async with open_gateway(settings, rehearses=True, redis_url=redis_url) as gateway:
        deadline = (time() if starts_redis else began) + limit_seconds
        return await _explain(gateway, settings, question, deadline)


class Explaining:
    """Explains within a process that serves, `AT_ONCE` at a time.

    `redis_url` is that of the process's own Redis, an embedded one too.
    """

    def __init__(self, settings: Settings, redis_url: str) -> None:
        self._settings = settings
        self._redis_url = redis_url
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def explain(
        self, question: Question, limit_seconds: float = SERVED_SECONDS
    ) -> Explanation:
        """All that can be found out within the limit; what cannot is told in its place.

        Raises:
            NotExplained: others were under way all the time, or no parts could be opened.
        """
        deadline = asyncio.get_running_loop().time() + limit_seconds
        try:
            async with asyncio.timeout_at(deadline - _CLOSING_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            raise NotExplained(
                f"{AT_ONCE} others are being explained just now: ask again in some seconds."
            ) from None
        try:
            return await self._explain(question, deadline)
        finally:
            self._turns.release()

    async def _explain(self, question: Question, deadline: float) -> Explanation:
        left = deadline - _CLOSING_SECONDS - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(deadline):
                return await explained(self._settings, question, left, self._redis_url)
        except TimeoutError:
            raise NotExplained("No time was left to find anything out.") from None
        except KeyringInvalid as invalid:
            raise NotExplained(f"The keyring can't be used: {'; '.join(invalid.faults)}.") from None
        except (StateRefused, StoreRefused, StoreUnavailable) as fault:
            raise NotExplained(f"{fault}.") from None


class _Stored(NamedTuple):
    """What Redis tells, and what follows for the question from that."""

    document: Document | Fault
    clients: Everyone | Fault
    asker: Asker
    record: DnsRecord


class _Foreseen(NamedTuple):
    """What is found out once it is known who asks."""

    name: NameSeen | None
    authorities: dict[str, Granted | Held | Fault]
    sync: Foreseen
    certificate: Foreseen


async def _explain(
    gateway: Gateway, settings: Settings, question: Question, deadline: float
) -> Explanation:
    hostname = question.hostname
    zones = matching_zones(gateway.zones, hostname)
    zone = zones[0] if zones else None
    zone_seen, challenge, (stored, foreseen) = await asyncio.gather(
        _zone(gateway, zone, deadline),
        _challenge(gateway, hostname, deadline),
        _stored_and_foreseen(gateway, question, zone, deadline),
    )
    document, clients = stored.document, stored.clients
    now_ms = gateway.clock.now_ms()
    names = settings.authority_names
    return Explanation(
        hostname=hostname,
        zones=zones,
        zone=zone_seen,
        name=foreseen.name,
        challenge=challenge,
        document=document,
        outlook=None if isinstance(document, Fault) else outlook(document, now_ms, names),
        coverage=clients if isinstance(clients, Fault) else covering(clients.clients, hostname),
        authorities=foreseen.authorities,
        asker=stored.asker,
        record=stored.record,
        sync=foreseen.sync,
        certificate=foreseen.certificate,
        authority_names=names,
        zone_names=tuple(each.name for each in settings.zones),
        now_ms=now_ms,
        unreadable=() if isinstance(clients, Fault) else _sentences(clients),
    )


async def _stored_and_foreseen(
    gateway: Gateway, question: Question, zone: Zone | None, deadline: float
) -> tuple[_Stored, _Foreseen]:
    stored = await _stored(gateway, question, deadline)
    foresight = gateway.foresight
    if foresight is None:
        raise LookupError("a gateway that rehearses has foresight")
    hostname, asker = question.hostname, stored.asker
    # Each in a task of its own: what one call would change is not there for the other.
    found = await asyncio.gather(
        _name(gateway, zone, hostname, stored, deadline),
        _authorities(gateway, hostname, stored, deadline),
        foresight.sync(asker, hostname, stored.record, deadline),
        foresight.certificate(asker, hostname, deadline),
    )
    return stored, _Foreseen(*found)


async def _stored(gateway: Gateway, question: Question, deadline: float) -> _Stored:
    hostname = question.hostname
    read, clients = await asyncio.gather(
        _or_fault(lambda: gateway.documents.read(hostname), deadline),
        _or_fault(gateway.clients.all, deadline),
    )
    known = [] if isinstance(clients, Fault) else clients.clients
    # Who holds it can be told where the rest can't, and is who asks then too.
    holder = None if isinstance(read, Fault) else read.holder
    document = read if isinstance(read, Fault) else _readable(read)
    asker = choose_asker(hostname, holder, known, question.client_id, question.app_id)
    return _Stored(document, clients, asker, _record(question, document, asker))


def _sentences(clients: Everyone) -> tuple[str, ...]:
    return tuple(f"{fault}." for fault in clients.unreadable)


def _readable(document: Document) -> Document | Fault:
    """The document, or a fault where any part of it can't be told."""
    try:
        require_readable(document)
    except Unreadable as fault:
        return Fault(f"{fault}.")
    return document


async def _or_fault(ask: Callable[[], Awaitable[_T]], deadline: float) -> _T | Fault:
    """What Redis answers, or why it did not tell."""
    try:
        async with asyncio.timeout_at(deadline):
            return await ask()
    except TimeoutError:
        return Fault(NO_TIME)
    except (
        *(ClientUnreadable, Contended, StoreRefused),
        *(StoreUnavailable, Unreadable),
    ) as fault:
        return Fault(f"{fault}.")


async def _zone(gateway: Gateway, zone: Zone | None, deadline: float) -> ZoneSeen | None:
    return None if zone is None else await see_zone(gateway.exchange, zone, deadline)


async def _challenge(gateway: Gateway, hostname: Hostname, deadline: float) -> ChallengeSeen:
    return await see_challenge(
        gateway.exchange, gateway.challenges, hostname, deadline, markers=gateway.markers
    )


async def _name(
    gateway: Gateway, zone: Zone | None, hostname: Hostname, stored: _Stored, deadline: float
) -> NameSeen | None:
    """The name, and whether its markers are the holder's or those of who asks."""
    if zone is None:
        return None
    document, asker = stored.document, stored.asker
    owners = {Owner(asker.client_id, asker.app_id, hostname)}
    known: tuple[DnsRecord | None, ...] = ()
    if not isinstance(document, Fault):
        known = (remembered_record(document), *sought_records(document))
        if (holding := owner_of(document)) is not None:
            owners.add(holding)
    return await see_name(
        gateway.exchange,
        zone,
        hostname,
        deadline,
        markers=gateway.markers,
        owners=owners,
        known=known,
    )


async def _authorities(
    gateway: Gateway, hostname: Hostname, stored: _Stored, deadline: float
) -> dict[str, Granted | Held | Fault]:
    """What the ledger of each authority would say to an order now."""
    document, client_id = stored.document, stored.asker.client_id
    has_one = not isinstance(document, Fault) and document.certificate is not None
    renewal = Renewal.DUE if has_one else Renewal.NEW
    listed = list(gateway.authorities)
    verdicts = await asyncio.gather(
        *(
            _or_fault(partial(each.ledger.spend, hostname, client_id, renewal=renewal), deadline)
            for each in listed
        )
    )
    return {each.authority.name: verdict for each, verdict in zip(listed, verdicts, strict=True)}


def _record(question: Question, document: Document | Fault, asker: Asker) -> DnsRecord:
    """The record of the sync that is foreseen; its TTL is the present record's, else the usual."""
    present = None if isinstance(document, Fault) else remembered_record(document)
    if present is not None and question.address in (None, present.value):
        return present
    prefixes = () if asker.client is None else asker.client.allowed_dns_record_addresses
    value = question.address or first_allowed(prefixes)
    return DnsRecord(type=record_type_of(value), value=value)
