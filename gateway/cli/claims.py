"""`gateway claims`: hostnames that an operator holds against every client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeVar

import click

from gateway.cli.session import (
    REFUSED,
    config_option,
    end_with,
    hostname_argument,
    read_settings,
    say,
    with_gateway,
)
from gateway.views.times import time_words

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.contract.names import Hostname
    from gateway.holdings.claims import Claims


_T = TypeVar("_T")


@click.group("claims")
def command() -> None:
    """Hold hostnames against every client (route claims)."""


@command.command("add")
@config_option
@click.argument("hostname")
@click.option("--note", default="", help="Why, for the next operator.")
def add(config_path: str | None, hostname: str, note: str) -> None:
    """Claim HOSTNAME; refused while a client holds it."""
    checked = hostname_argument(hostname)
    refusal = _with_claims(config_path, lambda claims: _add(claims, checked, note))
    if refusal is not None:
        end_with(refusal, REFUSED)
    say(f"{hostname} is claimed.")


@command.command("remove")
@config_option
@click.argument("hostname")
def remove(config_path: str | None, hostname: str) -> None:
    """Take the claim on HOSTNAME back."""
    checked = hostname_argument(hostname)
    if not _with_claims(config_path, lambda claims: claims.remove(checked)):
        end_with(f"There is no claim on {hostname}.", REFUSED)
    say(f"{hostname} is no longer claimed.")


@command.command("list")
@config_option
@click.argument("hostname", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def list_all(config_path: str | None, hostname: str | None, *, as_json: bool) -> None:
    """List all claims, or the one on HOSTNAME."""
    everything = _with_claims(config_path, lambda claims: claims.all())
    for fault in everything.unreadable:
        if hostname in (None, fault.hostname):
            say(f"{fault}.", err=True)
    found = [claim for claim in everything.claims if hostname in (None, claim.hostname)]
    if as_json:
        entries = [
            {"hostname": claim.hostname, "since": claim.since_ms, "note": claim.note}
            for claim in found
        ]
        click.echo(json.dumps(entries))
        return
    for claim in found:
        say(f"{claim.hostname}  since {time_words(claim.since_ms)}  {claim.note}".rstrip())


async def _add(claims: Claims, hostname: Hostname, note: str) -> str | None:
    from gateway.holdings.claims import ClaimRefused

    try:
        await claims.add(hostname, note)
    except ClaimRefused as refused:
        return f"{refused}."
    return None


def _with_claims(config_path: str | None, work: Callable[[Claims], Awaitable[_T]]) -> _T:
    return with_gateway(read_settings(config_path), lambda gateway: work(gateway.claims))
