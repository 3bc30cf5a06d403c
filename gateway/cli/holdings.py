"""`gateway holdings`: who holds what, and the operator's own hand in it.

Responsible for the command line of the group; `interventions` has the parts that carry them out,
`cli.holding_words` says what came of it. Must not decide anything.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from gateway.cli import releasing
from gateway.cli.session import (
    REFUSED,
    WRONG,
    config_option,
    end_with,
    hostname_argument,
    ownership_option,
    read_settings,
    say,
    with_gateway,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.contract import DnsRecord
    from gateway.contract.names import AppId, Hostname
    from gateway.dns.owner import Owner
    from gateway.dns.zones import Zone, Zones
    from gateway.holdings.candidates import Supposed
    from gateway.holdings.forgetting import Forgotten
    from gateway.holdings.handing_over import HandedOver
    from gateway.holdings.rebuilding import ZoneReport
    from gateway.store.documents import Document, Unreadable
    from gateway.wiring import Gateway

_T = TypeVar("_T")
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("holdings")
def command() -> None:
    """Show who holds what; rebuild that from the zones, hand over, release, withdraw, forget."""


command.add_command(releasing.release)
command.add_command(releasing.withdraw)


@command.command("list")
@config_option
@_json_option
@click.option("--client", "client_id", metavar="ID", help="Only what this client holds.")
@click.option("--zone", "zone_name", help="Only hostnames of this zone, configured or not.")
def list_all(
    config_path: str | None, client_id: str | None, zone_name: str | None, *, as_json: bool
) -> None:
    """List what Redis holds of each hostname, by hostname."""
    from gateway.cli import holding_words as words
    from gateway.views import holdings as held

    if zone_name is not None:
        _require_zone_spelling(zone_name)
    documents, zones = with_gateway(read_settings(config_path), _documents)
    found = [
        document
        for document in documents
        if (client_id is None or held.client_of(document) == client_id)
        and (zone_name is None or _lies_in(document.hostname, zone_name, zones))
    ]
    if as_json:
        click.echo(json.dumps([words.view(document, zones) for document in found]))
        return
    for document in found:
        say(held.line(document, zones))
    if not found:
        say("Redis holds nothing of that.", err=True)


@command.command("rebuild")
@config_option
@_json_option
@click.option("--dry-run", is_flag=True, help="Report only; write nothing.")
@click.option("--app-id", "app_ids", multiple=True, help="Try it for every client; repeatable.")
@click.option(
    "--owners", "owners_file", type=_FILE, help="Lines `clientId appId [hostname]` to try."
)
@click.option("--zone", "zone_names", multiple=True, help="Only this zone; repeatable.")
@click.option(
    "--names", "names_file", type=_FILE, help="Hostnames, one a line, for zones without transfer."
)
def rebuild(
    config_path: str | None,
    app_ids: tuple[str, ...],
    owners_file: Path | None,
    zone_names: tuple[str, ...],
    names_file: Path | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Write into Redis what the zones prove, and report what they cannot.

    After Redis has lost its data: provision the clients again, then run this. A marker names
    nobody, so it is tried for each client whose patterns match the hostname, with each appId that
    is given here or known to Redis. What stays unproven is not lost: its owner's next sync proves
    it by itself.

    No zone is changed, and no document that says something else. Exit code 1 when something is left
    that is not proven, a zone could not be read, or a name of --names lies in no configured zone.
    """
    from gateway.cli import holding_words as words
    from gateway.interventions import build_interventions

    for zone_name in zone_names:
        _require_zone_spelling(zone_name)
    supposed, names = _supposed(owners_file), _names(names_file)
    checked = [_app_id(app_id) for app_id in app_ids]

    async def work(gateway: Gateway) -> tuple[list[ZoneReport], list[Hostname]]:
        zones = _chosen(gateway.zones, zone_names)
        clients, unreadable = await gateway.clients.all()
        for fault in unreadable:
            say(f"{fault}; what it holds is not proven.", err=True)
        interventions = build_interventions(gateway)
        rebuilding = interventions.rebuilding(clients, checked, supposed, writes=not dry_run)
        await rebuilding.survey_redis()
        reports = []
        for zone in zones:
            say(f"Reading the zone {zone.name} …", err=True)
            reports.append(await rebuilding.rebuild(zone, names))
        if not dry_run:
            _note_rebuilt(gateway, reports)
        return reports, [name for name in names if gateway.zones.holding(name) is None]

    reports, strays = with_gateway(read_settings(config_path), work)
    if as_json:
        click.echo(json.dumps(words.rebuilt_view(reports, dry_run=dry_run, strays=strays)))
    else:
        for line in words.rebuilt_lines(reports):
            say(line)
    if strays:
        say(words.stray_words(strays), err=True)
    is_settled = not strays and all(report.is_settled for report in reports)
    sys.exit(0 if is_settled else REFUSED)


@command.command("hand-over")
@config_option
@_json_option
@click.argument("hostname")
@click.option("--from", "giver", required=True, metavar="CLIENT:APPID", help="Who has the record.")
@click.option("--to", "taker", required=True, metavar="CLIENT:APPID", help="Who gets it.")
def hand_over(
    config_path: str | None, hostname: str, giver: str, taker: str, *, as_json: bool
) -> None:
    """Hand the record at HOSTNAME from one ownership to another.

    In the zone only the marker changes; the address stays. A certificate stays behind and is
    released. The taker's policy must allow hostname and address. May be repeated: a command that
    was interrupted is finished by the next one.
    """
    from gateway.cli import holding_words as words
    from gateway.holdings.handing_over import HandOverRefused

    checked = hostname_argument(hostname)
    giving = ownership_option(giver, "--from", checked)
    taking = ownership_option(taker, "--to", checked)
    settings = read_settings(config_path)
    try:
        done = with_gateway(settings, lambda gateway: _hand_over(gateway, giving, taking))
    except HandOverRefused as refused:
        end_with(str(refused), REFUSED)
    if as_json:
        click.echo(json.dumps(words.handed_view(taking, done)))
    else:
        say(words.handed_words(taking, done))


@command.command("forget")
@config_option
@_json_option
@click.argument("hostname")
@click.option("--from", "holder", metavar="CLIENT:APPID", help="Who holds it, if anybody does.")
def forget(config_path: str | None, hostname: str, holder: str | None, *, as_json: bool) -> None:
    """Forget what HOSTNAME has in a zone that is not configured any more.

    Its record can't be withdrawn there, nor a challenge removed; so its client could never be
    removed. What lies in the zone stays there. Nothing in a configured zone is forgotten, unless
    that zone delegates the name away.
    """
    from gateway.cli import holding_words as words
    from gateway.holdings.forgetting import ForgetRefused

    checked = hostname_argument(hostname)
    owner = None if holder is None else ownership_option(holder, "--from", checked)
    settings = read_settings(config_path)
    try:
        forgotten = with_gateway(settings, lambda gateway: _forget(gateway, checked, owner))
    except ForgetRefused as refused:
        end_with(str(refused), REFUSED)
    if as_json:
        click.echo(json.dumps(words.forgotten_view(checked, forgotten)))
        return
    for line in words.forgotten_lines(checked, forgotten):
        say(line)


@command.command("give-up")
@config_option
@click.argument("hostname")
def give_up(config_path: str | None, hostname: str) -> None:
    """Give up the certificate at HOSTNAME that was the gateway's own and is so no more.

    It was `http.tls_hostname` once. Until it is given up it is renewed, and no client can have the
    hostname.
    """
    checked = hostname_argument(hostname)
    settings = read_settings(config_path)
    if settings.http.tls_hostname == checked:
        end_with(f"{checked} is http.tls_hostname: change that first, everywhere.", REFUSED)
    with_gateway(settings, lambda gateway: _give_up(gateway, checked))
    say(f"{checked} is given up.")


async def _give_up(gateway: Gateway, hostname: Hostname) -> None:
    from gateway.cli import holding_words as words
    from gateway.dns.owner import Owner
    from gateway.holdings import deeds, own_certificate
    from gateway.holdings.own_certificate import THE_GATEWAY

    before = await own_certificate.give_up(gateway.documents, hostname, gateway.clock.now_ms)
    if before is None:
        end_with(words.not_the_gateways(await gateway.documents.read(hostname)), REFUSED)
    owner = Owner(THE_GATEWAY.client_id, THE_GATEWAY.app_id, hostname)
    gateway.trail.note(deeds.of_release(owner, had_certificate=before.certificate is not None))


async def _documents(gateway: Gateway) -> tuple[list[Document | Unreadable], Zones]:
    found = [each async for each in gateway.documents.all()]
    return sorted(found, key=lambda each: each.hostname), gateway.zones


async def _hand_over(gateway: Gateway, giver: Owner, taker: Owner) -> HandedOver:
    from gateway.holdings import deeds
    from gateway.holdings.handing_over import HandOverRefused
    from gateway.store.deeds import Action

    try:
        done = await _handed_over(gateway, giver, taker)
    except HandOverRefused as refused:
        deed = deeds.of_refused_command(Action.HAND_OVER, taker.hostname, str(refused))
        gateway.trail.note(deed)
        raise
    gateway.trail.note(deeds.of_handing_over(giver, taker, done))
    return done


async def _handed_over(gateway: Gateway, giver: Owner, taker: Owner) -> HandedOver:
    from gateway.access.suitability import why_not
    from gateway.holdings.handing_over import HandOverRefused
    from gateway.interventions import build_interventions

    stored = await gateway.clients.by_id(taker.client_id)
    if stored is None:
        raise HandOverRefused(f"There is no client {taker.client_id}.")
    client = stored.client

    def judge(record: DnsRecord) -> None:
        refusal = why_not(client, taker.hostname, record)
        if refusal is not None:
            raise HandOverRefused(refusal)

    return await build_interventions(gateway).handing_over.hand_over(giver, taker, judge)


async def _forget(gateway: Gateway, hostname: Hostname, owner: Owner | None) -> Forgotten:
    from gateway.holdings import deeds
    from gateway.interventions import build_interventions
    from gateway.store.documents import Holder

    holder = None if owner is None else Holder(owner.client_id, owner.app_id)
    forgotten = await build_interventions(gateway).forgetting.forget(hostname, holder)
    gateway.trail.note(deeds.of_forgetting(hostname, owner, forgotten))
    return forgotten


def _note_rebuilt(gateway: Gateway, reports: list[ZoneReport]) -> None:
    from gateway.holdings import deeds
    from gateway.holdings.rebuilding import Upshot

    restored = sum(
        finding.outcome is Upshot.RESTORED for report in reports for finding in report.findings
    )
    if restored:
        gateway.trail.note(deeds.of_rebuilding([report.zone for report in reports], restored))


def _chosen(zones: Zones, names: tuple[str, ...]) -> list[Zone]:
    unknown = set(names) - {zone.name for zone in zones.all}
    if unknown:
        end_with(f"--zone {min(unknown)} is not configured.", WRONG)
    return [zone for zone in zones.all if not names or zone.name in names]


def _require_zone_spelling(name: str) -> None:
    """End the command where a zone is named as no zone is spelled: it would match nothing."""
    usual = name.strip().rstrip(".").lower()
    if not usual:
        end_with(f"--zone must be the name of a zone, not {name!r}.", WRONG)
    if usual != name:
        end_with(f"--zone must be written as {usual!r}, not {name!r}.", WRONG)


def _lies_in(hostname: str, zone_name: str, zones: Zones) -> bool:
    """Whether the zone, be it configured or not, is the deepest that holds the hostname."""
    if not f".{hostname}".endswith(f".{zone_name}"):
        return False
    holding = zones.holding(hostname)
    return holding is None or len(holding.name) <= len(zone_name)


def _supposed(file: Path | None) -> list[Supposed]:
    from gateway.holdings.candidates import read_supposed

    return _read("--owners", file, read_supposed)


def _names(file: Path | None) -> list[Hostname]:
    from gateway.holdings.candidates import read_hostnames

    return _read("--names", file, read_hostnames)


def _read(
    option: str, file: Path | None, read: Callable[[str], tuple[list[_T], list[str]]]
) -> list[_T]:
    if file is None:
        return []
    try:
        found, faults = read(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as fault:
        end_with(f"{option} {file} can't be read: {type(fault).__name__}.", WRONG)
    if faults:
        end_with((f"{option} {fault}" for fault in faults), WRONG)
    return found


def _app_id(text: str) -> AppId:
    from gateway.contract.identifiers import app_id_fault
    from gateway.contract.names import AppId

    fault = app_id_fault(text)
    if fault is not None:
        end_with(f"--app-id {fault}", WRONG)
    return AppId(text)
