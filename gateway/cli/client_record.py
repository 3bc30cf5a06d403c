"""`gateway client record`: publish, replace or withdraw the address record of a hostname.

Responsible for the two commands. Must not: judge an address or a hostname; the SDK does, with the
gateway's own rules. The words are in `cli.client_words`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.cli.client_connection import NOT_YET, connection_options, ownership_options
from gateway.cli.session import REFUSED, say

if TYPE_CHECKING:
    from gateway.cli.client_connection import Connection
    from gateway.client import SyncDnsRecordResponse

_SET_EXAMPLES: Final = """\b
Examples:
  gateway client record set relay.example.com --app-id relay \\
      --address 198.51.100.85
  gateway client record set relay.example.com --app-id relay \\
      --address 2001:db8::85 --ttl 60
  gateway client record set relay.example.com --address 198.51.100.85 --json
"""

_DELETE_EXAMPLES: Final = """\b
Examples:
  gateway client record delete relay.example.com --app-id relay
  GATEWAY_APP_ID=relay gateway client record delete relay.example.com --json
"""


@click.group("record")
def command() -> None:
    """Publish or withdraw the address record of a hostname."""


@command.command("set", epilog=_SET_EXAMPLES)
@ownership_options
@click.option("--address", required=True, help="IPv4 for an A record, IPv6 for an AAAA record.")
@click.option("--ttl", type=int, help="Seconds; 300 when left out.")
@connection_options
def set_record(
    connection: Connection, ownership: dict[str, str], address: str, ttl: int | None
) -> None:
    """Publish an address for HOSTNAME, in place of the one that is there.

    May be repeated as often as you like: what is there already is left alone.
    """
    from gateway.contract import record_type_of

    record: dict[str, Any] = {"type": record_type_of(address), "value": address}
    if ttl is not None:
        record["ttl"] = ttl
    _tell(connection, connection.call(lambda client: client.sync_dns_record(ownership, record)))


@command.command("delete", epilog=_DELETE_EXAMPLES)
@ownership_options
@connection_options
def delete_record(connection: Connection, ownership: dict[str, str]) -> None:
    """Withdraw the address of HOSTNAME; that there is none is fine, too."""
    _tell(connection, connection.call(lambda client: client.delete_dns_record(ownership)))


def _tell(connection: Connection, answer: SyncDnsRecordResponse) -> None:
    from gateway.cli.client_words import is_done, record_lines

    done = is_done(answer)
    if connection.as_json:
        connection.show(answer.to_wire())
    else:
        for line in record_lines(answer):
            say(line, err=not done)
    if not done:
        sys.exit(REFUSED if answer.retry_after_ms is None else NOT_YET)
