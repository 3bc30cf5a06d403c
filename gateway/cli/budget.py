"""`gateway budget`: what each authority may still be asked for, and what holds orders back.

Responsible for the command line and the JSON; `views.budget` has the words. For the operator alone:
it names the hostnames and the clients that the figures are used by.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.session import config_option, read_settings, say, with_gateway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.certificates.ledger import LedgerState
    from gateway.wiring import Gateway


@click.command("budget")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.option("--all", "with_rest", is_flag=True, help="Also hostnames that have room left.")
def command(config_path: str | None, *, with_rest: bool, as_json: bool) -> None:
    """Show what of each authority's budget is free now, and what holds orders back."""
    states, clients = with_gateway(read_settings(config_path), _read)
    if as_json:
        click.echo(json.dumps([_as_json(name, state) for name, state in states.items()]))
        return
    for name, state in states.items():
        say(name)
        for line in _lines(state, clients=clients, with_rest=with_rest):
            say(f"  {line}")


async def _read(gateway: Gateway) -> tuple[dict[str, LedgerState], int]:
    """The ledgers by the authorities' names, and how many clients there are."""
    states = {each.authority.name: await each.ledger.state() for each in gateway.authorities}
    return states, await gateway.clients.count()


def _lines(state: LedgerState, *, clients: int, with_rest: bool) -> Iterator[str]:
    """What a person is told."""
    from gateway.views.budget import hold_words, told_uses, use_words, whose_words

    told = told_uses(state, clients=clients, with_rest=with_rest)
    for use in told.uses:
        whose, words = whose_words(use), use_words(use)
        yield f"{whose}: {words}" if whose else words
    left_out = told.hostnames_left_out
    if left_out:
        of_them = "1 hostname that has" if left_out == 1 else f"{left_out} hostnames that have"
        yield f"and {of_them} room left: --all"
    yield from map(hold_words, state.holds)
    if not told.uses and not left_out and not state.holds:
        yield "nothing is counted or held"


def _as_json(name: str, state: LedgerState) -> dict[str, Any]:
    return {
        "name": name,
        "uses": [
            {
                "limit": use.limit.value,
                "subject": use.subject or None,
                "clientId": use.client_id or None,
                "used": use.used,
                "of": use.of,
                "nextFreeAt": use.next_free_ms,
                "unusedAt": use.unused_ms,
            }
            for use in state.uses
        ],
        "holds": [
            {
                "by": hold.by.value,
                "until": hold.until_ms,
                "subject": hold.subject or None,
                "hostname": hold.hostname or None,
                "detail": hold.detail,
            }
            for hold in state.holds
        ],
    }
