"""`gateway client certificate`: fetch a certificate, wait for it, give it up.

Responsible for the three commands. Must not: print a private key that was not asked for by name.
The words are in `cli.client_words`, the waiting's in `cli.client_progress`, the files in
`cli.client_files`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.cli.client_connection import (
    NOT_YET,
    Failure,
    Seconds,
    connection_options,
    end_failed,
    ownership_options,
)
from gateway.cli.session import REFUSED, end_with, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.cli.client_connection import Connection
    from gateway.client import Bundle, Certificate, GatewayClient

_GET_EXAMPLES: Final = """\b
Examples:
  gateway client certificate get relay.example.com --app-id relay
  gateway client certificate get relay.example.com --out /etc/relay/tls
  gateway client certificate get relay.example.com --json | jq .status
"""

_WAIT_EXAMPLES: Final = """\b
Examples:
  gateway client certificate wait relay.example.com --app-id relay
  gateway client certificate wait relay.example.com --timeout 600 \\
      --out /etc/relay/tls && systemctl reload nginx
  gateway client certificate wait relay.example.com --quiet
"""

_RELEASE_EXAMPLES: Final = """\b
Examples:
  gateway client certificate release relay.example.com --app-id relay
  gateway client certificate release relay.example.com --json
"""

_GOES_ON: Final = "Not waited for any longer; the gateway goes on by itself."
_NOT_BEGUN: Final = "Not waited for any longer; no issuance was seen to be under way."


@dataclass(frozen=True)
class Wanted:
    """What is to become of a certificate that is there."""

    out: str | None
    show_chain: bool
    show_key: bool


def _wanted_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--show-key", is_flag=True, help="Print the private key, too."),
        click.option("--show-chain", is_flag=True, help="Print the chain as PEM, too."),
        click.option(
            "--out",
            type=click.Path(file_okay=False),
            metavar="DIR",
            help="Write cert.pem, chain.pem, fullchain.pem and privkey.pem (0600) there.",
        ),
    ):
        command = option(command)
    return command


@click.group("certificate")
def command() -> None:
    """Fetch, wait for or give up the certificate of a hostname."""


@command.command("get", epilog=_GET_EXAMPLES)
@ownership_options
@_wanted_options
@connection_options
def get(connection: Connection, ownership: dict[str, str], **wanted: Any) -> None:
    """Fetch the certificate of HOSTNAME; if there is none, have it issued.

    Does not wait: it ends with 3 while the issuance is under way. The private
    key is neither printed nor in the JSON unless you say --show-key.
    """
    from gateway.cli.client_words import pending_lines
    from gateway.client import Ready

    answer = connection.call(lambda client: client.get_certificate(ownership))
    if isinstance(answer, Ready):
        _tell(connection, answer.certificate, Wanted(**wanted))
        return
    exit_code = REFUSED if answer.retry_after_ms is None else NOT_YET
    if connection.as_json:
        connection.show(answer.to_wire())
        sys.exit(exit_code)
    end_with(pending_lines(answer, ownership["hostname"]), exit_code)


@command.command("wait", epilog=_WAIT_EXAMPLES)
@ownership_options
@click.option(
    "--timeout",
    type=Seconds(),
    default=300.0,
    show_default=True,
    help="How long to wait before it ends with 3.",
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@_wanted_options
@connection_options
def wait(
    connection: Connection,
    ownership: dict[str, str],
    timeout: float,
    *,
    quiet: bool,
    **wanted: Any,
) -> None:
    """Wait until the certificate of HOSTNAME is there, and fetch it.

    Asks when the gateway says that it makes sense, and passes over what passes
    by itself. Progress goes to standard error. The private key is neither
    printed nor in the JSON unless you say --show-key.
    """
    from gateway.cli.client_progress import progress_shower

    is_wanted = not (quiet or connection.as_json)
    shower = progress_shower(ownership["hostname"], timeout, is_wanted=is_wanted)

    def work(client: GatewayClient) -> Certificate:
        with shower:
            return client.wait_for_certificate(ownership, timeout, shower.tell)

    certificate = connection.call(
        work,
        on_repeat=shower.tell_failure,
        interrupted=lambda: _GOES_ON if shower.is_under_way else _NOT_BEGUN,
    )
    _tell(connection, certificate, Wanted(**wanted))


@command.command("release", epilog=_RELEASE_EXAMPLES)
@ownership_options
@connection_options
def release(connection: Connection, ownership: dict[str, str]) -> None:
    """Give up the certificate of HOSTNAME, with an issuance under way.

    Files that were fetched stay where they are. May be repeated.
    """
    from gateway.cli.client_words import release_line

    answer = connection.call(lambda client: client.release_certificate(ownership))
    if connection.as_json:
        connection.show(answer.to_wire())
        return
    say(release_line(answer, ownership["hostname"]))


def _tell(connection: Connection, certificate: Certificate, wanted: Wanted) -> None:
    from gateway.cli.client_words import certificate_lines, certificate_view
    from gateway.client import read_bundle

    # The client has judged it; this reads the parts.
    bundle = read_bundle(certificate.chain_pem, certificate.private_key_pem, certificate.hostname)
    files = None if wanted.out is None else _written(connection, Path(wanted.out), bundle)
    if connection.as_json:
        connection.show(
            certificate_view(certificate, bundle, with_key=wanted.show_key, files=files)
        )
        return
    for line in certificate_lines(certificate, bundle, datetime.now(UTC)):
        say(line)
    for file in (files or {}).values():
        say(f"written      {file}")
    for is_shown, pem in (
        (wanted.show_chain, bundle.chain_pem),
        (wanted.show_key, bundle.private_key_pem),
    ):
        for line in pem.splitlines() if is_shown else ():
            say(line)


def _written(connection: Connection, folder: Path, bundle: Bundle) -> dict[str, str]:
    from gateway.cli.client_files import FileNotWritten, write_bundle

    try:
        files = write_bundle(folder, bundle)
    except FileNotWritten as fault:
        failure = Failure(REFUSED, "file-not-written", (str(fault),))
        end_failed(failure, as_json=connection.as_json)
    return {name: str(file) for name, file in files.items()}
