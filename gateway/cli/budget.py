"""`gateway budget`: what each authority may still be asked for, and what holds orders back.

For the operator alone: it names the hostnames and the clients that the figures are used by.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.cli.session import config_option, read_settings, say, with_gateway
from gateway.moments import rfc3339_moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.certificates.ledger import Hold, LedgerState, LimitUse
    from gateway.wiring import Gateway

# In the order in which they are shown: the account, its domains, its hostnames.
_WORDS: Final = {
    "orders": "new orders in 3 hours",
    "orders-of": "new orders in 3 hours, this client's share",
    "domain": "certificates in 7 days",
    "domain-of": "certificates in 7 days, this client's share",
    "host": "certificates in 7 days",
    "failed": "failed validations in an hour",
}
_ORDER: Final = list(_WORDS)
_OF_HOSTNAMES: Final = {"host", "failed"}


@click.command("budget")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.option("--all", "with_rest", is_flag=True, help="Also hostnames that have room left.")
def command(config_path: str | None, *, with_rest: bool, as_json: bool) -> None:
    """Show what of each authority's budget is used, and what holds orders back."""
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
    """What a person is told; the share of a client holds nothing while there is no other."""
    uses = [use for use in state.uses if clients > 1 or not use.client_id]
    told = [use for use in uses if with_rest or not _is_roomy_hostname(use)]
    for use in sorted(told, key=_place):
        yield _use_line(use)
    left_out = len({use.subject for use in uses} - {use.subject for use in told})
    if left_out:
        of_them = "1 hostname that has" if left_out == 1 else f"{left_out} hostnames that have"
        yield f"and {of_them} room left: --all"
    yield from map(_hold_line, state.holds)
    if not uses and not state.holds:
        yield "nothing is counted or held"


def _is_roomy_hostname(use: LimitUse) -> bool:
    return use.limit.value in _OF_HOSTNAMES and use.used < use.of


def _place(use: LimitUse) -> tuple[int, str, str]:
    return _ORDER.index(use.limit.value), use.subject, use.client_id


def _use_line(use: LimitUse) -> str:
    whose = " ".join(part for part in (use.subject, use.client_id) if part)
    line = f"{use.used} of {use.of} {_WORDS[use.limit.value]}"
    if use.used >= use.of:
        line += f"; the next one is free at {rfc3339_moment(use.next_free_ms)}"
    return f"{whose}: {line}" if whose else line


def _hold_line(hold: Hold) -> str:
    from gateway.certificates.ledger import HeldBy

    end = f"until {rfc3339_moment(hold.until_ms)}: {hold.detail}"
    if hold.by is HeldBy.SUSPENDED:
        return f"left alone {end}"
    return f"{hold.subject or 'every order'}: held by the authority {end}"


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
