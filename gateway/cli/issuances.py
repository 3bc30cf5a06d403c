"""`gateway issuances`: where each certificate stands, since when, why, and what is next and when.

Responsible for reading the documents and for the JSON; `views.issuances` has the words. Of the
group only `cli.retrying` changes anything. Shows no key.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.certificates.outlook import AT_REST, CLEANING_UP
from gateway.certificates.states import State
from gateway.cli import retrying
from gateway.cli.session import (
    REFUSED,
    config_option,
    end_with,
    hostname_argument,
    read_settings,
    say,
    with_gateway,
)
from gateway.contract.names import ClientId
from gateway.views import issuances as words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.access.clients import Client, ClientUnreadable
    from gateway.certificates.outlook import Outlook
    from gateway.certificates.states import Issuance, StoredCertificate
    from gateway.contract.names import Hostname
    from gateway.store.documents import Document, Unreadable
    from gateway.wiring import Gateway

_STATES: Final = [
    *(state.value for state in State if state is not State.ISSUED),
    CLEANING_UP,
    AT_REST,
]

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


@click.group("issuances")
def command() -> None:
    """Show where each certificate stands, why, and what is next; try one now."""


command.add_command(retrying.retry)


@command.command("list")
@config_option
@_json_option
@click.option("--state", type=click.Choice(_STATES), help="Only what is in this state.")
@click.option("--all", "with_rest", is_flag=True, help="Also certificates that are at rest.")
def list_all(config_path: str | None, state: str | None, *, with_rest: bool, as_json: bool) -> None:
    """List what is under way, waits or is still to be cleaned up, oldest first."""
    settings = read_settings(config_path)
    names = settings.authority_names
    everything, unreadable, now_ms = with_gateway(settings, lambda gateway: _all(gateway, names))
    for fault in unreadable:
        say(f"{fault}.", err=True)
    found = [
        each
        for each in everything
        if (state is None and (with_rest or each.state != AT_REST)) or each.state == state
    ]
    found.sort(key=lambda each: (each.since_ms or 0, each.document.hostname))
    if as_json:
        click.echo(json.dumps([view(each, names) for each in found]))
        return
    for each in found:
        say(words.line(each, now_ms))
    if not found:
        say(_nothing(state), err=True)


@command.command("show")
@config_option
@_json_option
@click.argument("hostname")
def show(config_path: str | None, hostname: str, *, as_json: bool) -> None:
    """Show all that is known of HOSTNAME's certificate and issuance."""
    checked = hostname_argument(hostname)
    settings = read_settings(config_path)
    names = settings.authority_names
    found, now_ms = with_gateway(settings, lambda gateway: _one(gateway, checked, names))
    if found is None:
        end_with(f"Nothing is issued or under way for {hostname}.", REFUSED)
    if as_json:
        click.echo(json.dumps(view(found, names)))
        return
    for label, text in words.rows(found, names, now_ms):
        say(f"{label:<12} {text}")


def _nothing(state: str | None) -> str:
    return "Nothing is under way." if state is None else f"Nothing is in the state {state}."


async def _all(
    gateway: Gateway, names: Mapping[str, str]
) -> tuple[list[Outlook], list[Unreadable], int]:
    """Of every hostname, what can't be read, and what time it is by the clock that all share."""
    from gateway.store.documents import Unreadable

    read: list[Outlook] = []
    unreadable: list[Unreadable] = []
    clients = await _clients(gateway)
    async for document in gateway.documents.all():
        try:
            found = _outlook(document, gateway.clock.now_ms(), names, clients)
        except Unreadable as fault:
            unreadable.append(fault)
            continue
        if found is not None:
            read.append(found)
    return read, unreadable, gateway.clock.now_ms()


async def _one(
    gateway: Gateway, hostname: Hostname, names: Mapping[str, str]
) -> tuple[Outlook | None, int]:
    document, now_ms = await gateway.documents.read(hostname), gateway.clock.now_ms()
    holders = [] if document.holder is None else [document.holder.client_id]
    return _outlook(document, now_ms, names, await _clients(gateway, holders)), now_ms


async def _clients(
    gateway: Gateway, client_ids: Sequence[ClientId] | None = None
) -> dict[ClientId, Client | None]:
    """These clients, as far as there are, or all: None of one that can't be read."""
    from gateway.access.clients import Client

    if client_ids is None:
        everyone = await gateway.clients.all()
        found: list[Client | ClientUnreadable] = [*everyone.clients, *everyone.unreadable]
    else:
        found = await gateway.clients.some(client_ids)
    return {ClientId(each.client_id): each if isinstance(each, Client) else None for each in found}


def _outlook(
    document: Document | Unreadable,
    now_ms: int,
    names: Mapping[str, str],
    clients: Mapping[ClientId, Client | None],
) -> Outlook | None:
    """How things stand. Raises `Unreadable` where any part of it can't be told."""
    from gateway.certificates.outlook import outlook
    from gateway.holdings.remembered import require_readable
    from gateway.store.documents import Unreadable

    if isinstance(document, Unreadable):
        raise document
    require_readable(document)
    return outlook(document, now_ms, names, _denied(document, clients, now_ms))


def _denied(
    document: Document, clients: Mapping[ClientId, Client | None], now_ms: int
) -> str | None:
    """Why the holder may have no new certificate; None where it may, or can't be read."""
    from gateway.access.gate import why_not_renewed
    from gateway.holdings.own_certificate import THE_GATEWAY

    holder = document.holder
    if holder is None or holder == THE_GATEWAY:
        return None
    client = clients.get(holder.client_id)
    if client is None and holder.client_id in clients:
        return None
    return why_not_renewed(client, document.hostname, now_ms)


def view(found: Outlook, names: Mapping[str, str]) -> dict[str, Any]:
    """The same for a program."""
    document, following = found.document, found.next
    return {
        "hostname": document.hostname,
        "clientId": document.holder and document.holder.client_id,
        "appId": document.holder and document.holder.app_id,
        "state": found.state,
        "since": found.since_ms,
        "next": following and {"what": following.what, "at": following.at_ms},
        "denied": found.denied,
        "worker": found.worker,
        "issuance": found.issuance and _issuance_view(found.issuance, names),
        "certificate": found.certificate and _certificate_view(found.certificate, names),
        "debts": [
            {
                "kind": debt.kind.value,
                "zone": debt.zone,
                "name": debt.name,
                "value": debt.value,
                "url": debt.url,
                "tries": debt.tries,
                "dueAt": debt.due_at_ms,
            }
            for debt in found.debts
        ],
    }


def _issuance_view(issuance: Issuance, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "state": issuance.state.value,
        "resume": issuance.resume and issuance.resume.value,
        "reason": issuance.reason and issuance.reason.value,
        "message": issuance.message,
        "renewal": issuance.renewal,
        "begunAt": issuance.begun_at_ms,
        "changedAt": issuance.changed_at_ms,
        "dueAt": issuance.due_at_ms,
        "toldUntil": issuance.told_until_ms,
        "failures": issuance.failures,
        "faults": issuance.faults,
        "authority": names.get(issuance.directory_url or ""),
        "failedAt": names.get(issuance.failed_at or ""),
        "directory": issuance.directory_url,
        "passedOver": dict(issuance.passed_over),
        "order": issuance.order_url,
        "challengeName": issuance.challenge_name,
        "challengeValue": issuance.challenge_value,
    }


def _certificate_view(certificate: StoredCertificate, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "serial": certificate.serial,
        "issuer": certificate.issuer,
        "authority": names.get(certificate.directory_url),
        "directory": certificate.directory_url,
        "validFrom": certificate.valid_from_ms,
        "validUntil": certificate.valid_until_ms,
        "renewAt": certificate.renew_at_ms,
        "renewAfter": certificate.renew_after_ms,
        "window": certificate.window_ms,
        "askAt": certificate.ask_at_ms,
    }
