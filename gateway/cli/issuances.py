"""`gateway issuances`: where each certificate stands, since when, why, and what is next and when.

Responsible for reading the documents and for the words; `certificates.outlook` knows what is next.
Changes nothing, and shows no key.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.certificates.outlook import AT_REST, CLEANING_UP
from gateway.certificates.states import State
from gateway.cli.session import (
    REFUSED,
    config_option,
    end_with,
    hostname_argument,
    read_settings,
    say,
    with_gateway,
)
from gateway.moments import rfc3339_moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gateway.certificates.outlook import Outlook
    from gateway.certificates.states import Issuance, StoredCertificate
    from gateway.contract.names import Hostname
    from gateway.store.documents import Document, Unreadable
    from gateway.wiring import Gateway

OVERDUE_MS: Final = 5_000

_STATES: Final = [
    *(state.value for state in State if state is not State.ISSUED),
    CLEANING_UP,
    AT_REST,
]
_UNITS: Final = ((86_400_000, "days"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


@click.group("issuances")
def command() -> None:
    """Show where each certificate stands, why, and what is next."""


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
        say(_line(each, now_ms))
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
    for label, text in rows(found, names, now_ms):
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
    async for document in gateway.documents.all():
        try:
            found = _outlook(document, gateway.clock.now_ms(), names)
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
    return _outlook(document, now_ms, names), now_ms


def _outlook(
    document: Document | Unreadable, now_ms: int, names: Mapping[str, str]
) -> Outlook | None:
    """How things stand. Raises `Unreadable` where any part of it can't be told."""
    from gateway.certificates.outlook import outlook
    from gateway.holdings.records import require_readable
    from gateway.store.documents import Unreadable

    if isinstance(document, Unreadable):
        raise document
    require_readable(document)
    return outlook(document, now_ms, names)


def _line(found: Outlook, now_ms: int) -> str:
    age = "" if found.since_ms is None else f" for {duration(now_ms - found.since_ms)}"
    parts = [f"{found.document.hostname}  {found.state}{age}"]
    issuance = found.issuance
    if issuance is not None and issuance.reason is not None:
        parts.append(f"{issuance.reason.value}: {issuance.message}")
    elif issuance is not None and issuance.message is not None:
        parts.append(issuance.message)
    if found.issuance is None and found.certificate is not None:
        parts.append(f"valid until {time_words(found.certificate.valid_until_ms)}")
    working = found.worker is not None
    parts.append(f"being worked on by {found.worker}" if working else _next_words(found, now_ms))
    if issuance is not None and issuance.told_until_ms is not None:
        parts.append(f"held until {time_words(issuance.told_until_ms)}")
    return "; ".join(parts)


def _next_words(found: Outlook, now_ms: int) -> str:
    if found.next is None:
        return "nothing is to be done"
    what, late_ms = found.next.what, now_ms - found.next.at_ms
    if late_ms > OVERDUE_MS and found.worker is None:
        return f"{what}, due since {duration(late_ms)}: no worker has taken it up"
    return f"{what}, now" if late_ms >= 0 else f"{what}, in {duration(-late_ms)}"


def rows(found: Outlook, names: Mapping[str, str], now_ms: int) -> Iterator[tuple[str, str]]:
    """All that is known, as labels and texts for a person; `names` are the authorities'."""
    document = found.document
    yield "hostname", document.hostname
    if document.holder is not None:
        yield "held by", f"{document.holder.client_id}, {document.holder.app_id}"
    since = found.since_ms
    yield "state", found.state + ("" if since is None else f" since {time_and_age(since, now_ms)}")
    if found.issuance is not None:
        yield from _issuance_rows(found.issuance, names, now_ms)
    yield "next", _next_words(found, now_ms)
    if found.next is not None and found.next.at_ms > now_ms:
        yield "at", time_words(found.next.at_ms)
    if found.worker is not None:
        yield "worked on by", f"{found.worker} (fencing number {document.fence})"
    if found.certificate is not None:
        yield from _certificate_rows(found.certificate, names, now_ms)
    yield from _debt_rows(found, now_ms)


def _issuance_rows(
    issuance: Issuance, names: Mapping[str, str], now_ms: int
) -> Iterator[tuple[str, str]]:
    from gateway.certificates.outlook import authority_name

    yield from _reason_rows(issuance)
    yield "kind", "renewal" if issuance.renewal else "first certificate"
    yield "begun", time_and_age(issuance.begun_at_ms, now_ms)
    if issuance.directory_url is not None:
        yield "authority", authority_name(issuance.directory_url, names)
    elif issuance.failed_at:
        yield "failed at", authority_name(issuance.failed_at, names)
    for url, until_ms in issuance.passed_over.items():
        if until_ms > now_ms:
            name = authority_name(url, names)
            yield "passed over", f"{name} until {time_words(until_ms)}"
    if issuance.order_url is not None:
        yield "order", issuance.order_url
    if issuance.challenge_name is not None:
        yield "challenge", f"{issuance.challenge_name} TXT {issuance.challenge_value or '(done)'}"
    yield from _count_rows(issuance)


def _reason_rows(issuance: Issuance) -> Iterator[tuple[str, str]]:
    if issuance.reason is not None:
        yield "why", f"{issuance.reason.value}: {issuance.message}"
    elif issuance.message is not None:
        yield "why", issuance.message
    if issuance.told_until_ms is not None:
        yield "held until", time_words(issuance.told_until_ms)
    if issuance.resume is not None:
        yield "goes on as", issuance.resume.value


def _count_rows(issuance: Issuance) -> Iterator[tuple[str, str]]:
    if issuance.failures:
        yield "failures", f"{_counted(issuance.failures, 'order')} came to nothing"
    if issuance.faults:
        yield "faults", f"{_counted(issuance.faults, 'passing fault')} in a row"


def _certificate_rows(
    certificate: StoredCertificate, names: Mapping[str, str], now_ms: int
) -> Iterator[tuple[str, str]]:
    from gateway.certificates.outlook import authority_name

    is_valid = certificate.may_be_served_at(now_ms)
    until = time_words(certificate.valid_until_ms)
    left = duration(abs(certificate.valid_until_ms - now_ms))
    yield "certificate", f"serial {certificate.serial}, {certificate.issuer}"
    yield "from", authority_name(certificate.directory_url, names)
    yield "valid until", f"{until} ({'in ' + left if is_valid else 'expired ' + left + ' ago'})"
    yield "renewal at", time_words(certificate.renew_at_ms)
    if certificate.window_ms is not None:
        start_ms, end_ms = certificate.window_ms
        yield (
            "window",
            f"{time_words(start_ms)} to {time_words(end_ms)}, as the authority suggests;"
            f" renewal times asked again at {time_words(certificate.ask_at_ms)}",
        )


def _debt_rows(found: Outlook, now_ms: int) -> Iterator[tuple[str, str]]:
    from gateway.certificates.outlook import debt_words

    for debt in found.debts:
        pause_ms = debt.due_at_ms - now_ms
        when = f", next try in {duration(pause_ms)}" if pause_ms > 0 else ""
        yield "owes", f"{debt_words(debt)} (tried {_counted(debt.tries, 'time')}{when})"


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


def time_words(at_ms: int) -> str:
    """A time in UTC."""
    return rfc3339_moment(at_ms)


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def time_and_age(at_ms: int, now_ms: int) -> str:
    """A time in UTC, and how long ago that is."""
    return f"{time_words(at_ms)} ({duration(now_ms - at_ms)} ago)"


def duration(length_ms: int) -> str:
    """In the largest unit of which there are two or more."""
    for unit_ms, word in _UNITS:
        if length_ms >= 2 * unit_ms:
            return f"{length_ms // unit_ms} {word}"
    return f"{max(length_ms, 0) / 1000:.1f} s"
