"""`gateway client`: what a client may ask the gateway for, from a terminal or a script.

Responsible for the group and for its two commands that read. Must not: load the SDK for a help
page or a completion. `cli.client_connection` has what its commands share; the words are in
`cli.client_words`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from gateway.cli import client_certificate, client_record
from gateway.cli.client_connection import connection_options
from gateway.cli.session import say

if TYPE_CHECKING:
    from gateway.cli.client_connection import Connection

_GROUP_EXAMPLES: Final = """\b
Examples:
  export GATEWAY_URL=https://gateway.example.com
  export GATEWAY_TOKEN_FILE=/etc/relay/token GATEWAY_APP_ID=relay
  gateway client context
  gateway client record set relay.example.com --address 198.51.100.85
  gateway client certificate wait relay.example.com --out /etc/relay/tls

\b
Exit codes: 0 done; 1 the gateway said no; 2 the command line or the set-up
is wrong; 3 not yet, the same command makes sense again later.
"""

_CONTEXT_EXAMPLES: Final = """\b
Examples:
  gateway client context --url https://gateway.example.com
  gateway client context --token-file /etc/relay/token
  pass show gateway/relay | gateway client context --token-file - --json
"""

_CAPABILITIES_EXAMPLES: Final = """\b
Examples:
  gateway client capabilities --url https://gateway.example.com
  gateway client capabilities --json | jq .capabilities.certificates
"""


@click.group("client", epilog=_GROUP_EXAMPLES)
def command() -> None:
    """Call a gateway as one of its clients: records, certificates, who am I."""


command.add_command(client_record.command)
command.add_command(client_certificate.command)


@command.command("context", epilog=_CONTEXT_EXAMPLES)
@connection_options
def context(connection: Connection) -> None:
    """Show who the gateway takes you for, and what you may ask for."""
    from gateway.cli.client_words import context_lines

    answer = connection.call(lambda client: client.get_context())
    if connection.as_json:
        connection.show({"context": answer.to_wire()})
        return
    for line in context_lines(answer):
        say(line)


@command.command("capabilities", epilog=_CAPABILITIES_EXAMPLES)
@connection_options
def capabilities(connection: Connection) -> None:
    """Show what the gateway is set up to do, whoever asks."""
    from gateway.cli.client_words import capability_lines

    answer = connection.call(lambda client: client.get_capabilities())
    if connection.as_json:
        connection.show({"capabilities": answer.to_wire()})
        return
    for line in capability_lines(answer):
        say(line)
