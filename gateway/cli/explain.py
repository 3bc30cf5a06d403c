"""`gateway explain`: how a hostname is judged, and what a sync and an issuance would do now.

Responsible for asking all parts at once, with one deadline for all; `cli.explanation` has the
words, `access.foresight` the verdicts. Changes nothing: the gateway is opened for rehearsals. A
part that cannot be asked, or that no time is left for, is a sentence in its place. Exit code 1 when
neither Redis nor the zone told anything.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import click

from gateway.cli.session import (
    REFUSED,
    WRONG,
    carry_out,
    config_option,
    end_with,
    read_settings,
    say,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from gateway.access.clients import Client
    from gateway.access.foresight import Asker, Foreseen
    from gateway.certificates.ledger import Granted, Held
    from gateway.cli.explanation import Explanation, Fault
    from gateway.config import Settings
    from gateway.contract import DnsRecord
    from gateway.contract.names import AppId, ClientId, Hostname
    from gateway.dns.situation import ChallengeSeen, NameSeen, ZoneSeen
    from gateway.dns.zones import Zone
    from gateway.store.documents import Document
    from gateway.wiring import Gateway

_T = TypeVar("_T")

LIMIT_SECONDS: Final = 11.0
"""How long all of it may take, so that the command ends within 15 seconds: Python's start, and the
end of what is under way, take seconds on a busy machine."""


class Question(NamedTuple):
    """What was asked on the command line, each part valid by itself."""

    hostname: Hostname
    client_id: ClientId | None
    app_id: AppId | None
    address: str | None


@click.command("explain")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.option("--client", "client_id", help="Who asks; else the holder, else one who may.")
@click.option("--app-id", help="The client's appId; else its own that holds the hostname.")
@click.option("--address", help="Of the record; else the present one, else one that is allowed.")
@click.argument("hostname")
def command(
    config_path: str | None,
    hostname: str,
    client_id: str | None,
    app_id: str | None,
    address: str | None,
    *,
    as_json: bool,
) -> None:
    """Explain how HOSTNAME is judged, and what a call for it would be answered now.

    Changes nothing, neither in Redis nor in a zone, and asks no authority.
    """
    from gateway.cli import explanation, explanation_json

    question = _question(hostname, client_id, app_id, address)
    settings = read_settings(config_path)
    found = carry_out(explained(settings, question))
    if as_json:
        click.echo(json.dumps(explanation_json.view(found)))
    else:
        for line in explanation.lines(found):
            say(line)
    if not found.says_anything:
        raise SystemExit(REFUSED)


def _question(
    hostname: str, client_id: str | None, app_id: str | None, address: str | None
) -> Question:
    from gateway.contract.addresses import address_fault
    from gateway.contract.hostnames import hostname_fault
    from gateway.contract.identifiers import app_id_fault, client_id_fault
    from gateway.contract.names import AppId, ClientId, Hostname

    faults = [("HOSTNAME", hostname_fault(hostname))]
    if client_id is not None:
        faults.append(("--client", client_id_fault(client_id)))
    if app_id is not None:
        faults.append(("--app-id", app_id_fault(app_id)))
        if client_id is None:
            faults.append(("--app-id", "needs --client"))
    if address is not None:
        faults.append(("--address", address_fault(address)))
    told = [f"{what} {fault}" for what, fault in faults if fault is not None]
    if told:
        end_with(told, WRONG)
    return Question(
        Hostname(hostname),
        None if client_id is None else ClientId(client_id),
        None if app_id is None else AppId(app_id),
        address,
    )


async def explained(
    settings: Settings, question: Question, limit_seconds: float = LIMIT_SECONDS
) -> Explanation:
    """All that can be found out within the limit; what cannot is told in its place.

    The start of an embedded Redis does not count.
    """
    from gateway.wiring import open_gateway

    time = asyncio.get_running_loop().time
    began = time()
    async with open_gateway(settings, rehearses=True) as gateway:
        deadline = (time() if settings.redis.is_embedded else began) + limit_seconds
        return await _explain(gateway, settings, question, deadline)


class _Stored(NamedTuple):
    """What Redis tells, and what follows for the question from that."""

    document: Document | Fault
    clients: list[Client] | Fault
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
    from gateway.access.foresight import covering
    from gateway.certificates.outlook import outlook
    from gateway.cli.explanation import Explanation, Fault
    from gateway.dns.situation import matching_zones

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
        coverage=clients if isinstance(clients, Fault) else covering(clients, hostname),
        authorities=foreseen.authorities,
        asker=stored.asker,
        record=stored.record,
        sync=foreseen.sync,
        certificate=foreseen.certificate,
        settings=settings,
        now_ms=now_ms,
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
    from gateway.access.foresight import choose_asker
    from gateway.cli.explanation import Fault

    hostname = question.hostname
    read, clients = await asyncio.gather(
        _or_fault(gateway.documents.read(hostname), deadline),
        _or_fault(_clients(gateway), deadline),
    )
    known = [] if isinstance(clients, Fault) else clients
    # Who holds it can be told where the rest can't, and is who asks then too.
    holder = None if isinstance(read, Fault) else read.holder
    document = read if isinstance(read, Fault) else _readable(read)
    asker = choose_asker(hostname, holder, known, question.client_id, question.app_id)
    return _Stored(document, clients, asker, _record(question, document, asker))


async def _clients(gateway: Gateway) -> list[Client]:
    """All that can be read; who can't is named."""
    found = await gateway.clients.all()
    for fault in found.unreadable:
        say(f"{fault}.", err=True)
    return found.clients


def _readable(document: Document) -> Document | Fault:
    """The document, or a fault where any part of it can't be told."""
    from gateway.cli.explanation import Fault
    from gateway.holdings.records import require_readable
    from gateway.store.documents import Unreadable

    try:
        require_readable(document)
    except Unreadable as fault:
        return Fault(f"{fault}.")
    return document


async def _or_fault(asked: Awaitable[_T], deadline: float) -> _T | Fault:
    """What was asked of Redis, or why it did not tell."""
    from gateway.access.clients import ClientUnreadable
    from gateway.access.foresight import NO_TIME
    from gateway.cli.explanation import Fault
    from gateway.store.connection import StoreRefused, StoreUnavailable
    from gateway.store.documents import Contended, Unreadable

    try:
        async with asyncio.timeout_at(deadline):
            return await asked
    except TimeoutError:
        return Fault(NO_TIME)
    except (
        *(ClientUnreadable, Contended, StoreRefused),
        *(StoreUnavailable, Unreadable),
    ) as fault:
        return Fault(f"{fault}.")


async def _zone(gateway: Gateway, zone: Zone | None, deadline: float) -> ZoneSeen | None:
    from gateway.dns.situation import see_zone

    return None if zone is None else await see_zone(gateway.exchange, zone, deadline)


async def _challenge(gateway: Gateway, hostname: Hostname, deadline: float) -> ChallengeSeen:
    from gateway.dns.situation import see_challenge

    return await see_challenge(
        gateway.exchange, gateway.challenges, hostname, deadline, markers=gateway.markers
    )


async def _name(
    gateway: Gateway, zone: Zone | None, hostname: Hostname, stored: _Stored, deadline: float
) -> NameSeen | None:
    """The name, and whether its markers are the holder's or those of who asks."""
    from gateway.cli.explanation import Fault
    from gateway.dns.owner import Owner
    from gateway.dns.situation import see_name
    from gateway.holdings.hold import owner_of
    from gateway.holdings.records import remembered_record, sought_records

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
    from gateway.certificates.budget import Renewal
    from gateway.cli.explanation import Fault

    document, client_id = stored.document, stored.asker.client_id
    has_one = not isinstance(document, Fault) and document.certificate is not None
    renewal = Renewal.DUE if has_one else Renewal.NEW
    listed = list(gateway.authorities)
    verdicts = await asyncio.gather(
        *(
            _or_fault(each.ledger.spend(hostname, client_id, renewal=renewal), deadline)
            for each in listed
        )
    )
    return {each.authority.name: verdict for each, verdict in zip(listed, verdicts, strict=True)}


def _record(question: Question, document: Document | Fault, asker: Asker) -> DnsRecord:
    """The record of the sync that is foreseen; its TTL is the present record's, else the usual."""
    from gateway.cli.explanation import Fault, first_allowed
    from gateway.contract import DnsRecord, record_type_of
    from gateway.holdings.records import remembered_record

    present = None if isinstance(document, Fault) else remembered_record(document)
    if present is not None and question.address in (None, present.value):
        return present
    prefixes = () if asker.client is None else asker.client.allowed_dns_record_addresses
    value = question.address or first_allowed(prefixes)
    return DnsRecord(type=record_type_of(value), value=value)
