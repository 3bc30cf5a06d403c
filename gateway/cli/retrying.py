"""`gateway issuances retry`: have a certificate tried now, and see what comes of it.

Responsible for the command line and the JSON; `holdings.operator_deeds` does it, `views.deed_words`
has the words. Must not decide anything. Called by `cli.issuances`, whose group it is in.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.cli.session import (
    REFUSED,
    config_option,
    hostname_argument,
    read_settings,
    say,
    with_deeds,
)

if TYPE_CHECKING:
    from gateway.certificates.retrying import Retried
    from gateway.holdings.operator_deeds import OperatorDeeds, Watched

WATCHED_SECONDS: Final = 10.0
LONGEST_WATCH_SECONDS: Final = 3600.0


@click.command("retry")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.option("--renew", "renews", is_flag=True, help="Renew a certificate before its time.")
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(0, LONGEST_WATCH_SECONDS),
    default=WATCHED_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for what comes of it; 0 to not wait.",
)
@click.argument("hostname")
def retry(
    config_path: str | None, hostname: str, wait_seconds: float, *, renews: bool, as_json: bool
) -> None:
    """Have the issuance of HOSTNAME that waits or failed tried now.

    So is a renewal that is due and rests. With --renew a certificate whose time has not come is
    renewed with a new key; the old one is served until then, and is not revoked. The gateway's own
    pauses end; the budget of the authority, and what it has said about when to come back, hold as
    always. A worker that runs does it. May be repeated.

    Exit code 1: nothing rests there, or it waits or failed again.
    """
    from gateway.views import deed_words as words

    checked, settings = hostname_argument(hostname), read_settings(config_path)

    async def work(deeds: OperatorDeeds) -> tuple[Retried, Watched]:
        retried = await deeds.retry(checked, renews=renews)
        if not as_json:
            say(words.retried_words(retried))
        return retried, await deeds.watch(retried, wait_seconds)

    retried, seen = with_deeds(settings, work)
    if as_json:
        click.echo(json.dumps(_view(retried, seen)))
    else:
        say(words.watched_words(retried, seen), err=seen.standing.is_refusal)
    sys.exit(REFUSED if seen.standing.is_refusal else 0)


def _view(retried: Retried, seen: Watched) -> dict[str, Any]:
    issuance, certificate = seen.issuance, seen.certificate
    return {
        "hostname": retried.hostname,
        "clientId": retried.holder.client_id,
        "appId": retried.holder.app_id,
        "began": retried.began.value,
        "issuance": retried.issuance.issuance_id,
        "standing": seen.standing.value,
        "state": issuance and issuance.state.value,
        "reason": issuance and issuance.reason and issuance.reason.value,
        "message": issuance and issuance.message,
        "dueAt": issuance and issuance.due_at_ms,
        "toldUntil": issuance and issuance.told_until_ms,
        "worker": seen.worker,
        "serial": certificate and certificate.serial,
        "validUntil": certificate and certificate.valid_until_ms,
    }
