"""`gateway holdings release` and `withdraw`: what a client's own calls do, by the operator's hand.

Responsible for the command line and the JSON; `holdings.operator_deeds` does it, `views.deed_words`
has the words. Must not decide anything. Called by `cli.holdings`, whose group they are in.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.session import (
    REFUSED,
    config_option,
    hostname_argument,
    ownership_option,
    read_settings,
    say,
    with_deeds,
)

if TYPE_CHECKING:
    from gateway.holdings.operator_deeds import Released, Withdrawn

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
_from_option = click.option(
    "--from", "holder", required=True, metavar="CLIENT:APPID", help="Who must hold it."
)


@click.command("release")
@config_option
@_json_option
@click.argument("hostname")
@_from_option
def release(config_path: str | None, hostname: str, holder: str, *, as_json: bool) -> None:
    """Release the certificate at HOSTNAME, with its key and any issuance.

    It does what the client's releaseGatewayClientCertificate does; the client may ask for another
    one at once. The certificate stays valid at its authority: it is not revoked there. Refused
    where another holds HOSTNAME. May be repeated.
    """
    from gateway.views import deed_words as words

    owner = ownership_option(holder, "--from", hostname_argument(hostname))
    done = with_deeds(read_settings(config_path), lambda deeds: deeds.release(owner))
    if as_json:
        click.echo(json.dumps(_released_view(done)))
    else:
        say(words.released_words(done))


@click.command("withdraw")
@config_option
@_json_option
@click.argument("hostname")
@_from_option
def withdraw(config_path: str | None, hostname: str, holder: str, *, as_json: bool) -> None:
    """Withdraw the address record at HOSTNAME from its zone.

    It does what the client's syncGatewayClientDnsRecord without a record does; the client may
    publish again at once. A certificate stays. Refused where another holds HOSTNAME; what the
    gateway did not publish is not touched. May be repeated. Exit code 1 when the zone did not
    answer, or would not have it.
    """
    from gateway.views import deed_words as words

    owner = ownership_option(holder, "--from", hostname_argument(hostname))
    done = with_deeds(read_settings(config_path), lambda deeds: deeds.withdraw(owner))
    if as_json:
        click.echo(json.dumps(_withdrawn_view(done)))
    else:
        say(words.withdrawn_words(done), err=not done.is_done)
    sys.exit(0 if done.is_done else REFUSED)


def _released_view(done: Released) -> dict[str, Any]:
    return {
        "hostname": done.owner.hostname,
        "clientId": done.owner.client_id,
        "appId": done.owner.app_id,
        "status": "released" if done.is_released else "unchanged",
        "keepsRecord": done.keeps_record,
    }


def _withdrawn_view(done: Withdrawn) -> dict[str, Any]:
    return {
        "clientId": done.owner.client_id,
        "appId": done.owner.app_id,
        **done.answer.to_wire(),
        "keepsCertificate": done.keeps_certificate,
        "remains": done.remains,
    }
