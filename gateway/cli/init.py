"""`gateway init DIR`: a first configuration, its keyring and an admin token.

Responsible for new files only: what exists is never overwritten, a keyring least of all. The token
is printed once; the file has its digest.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import click

from gateway.cli.new_files import write_new
from gateway.cli.session import REFUSED, end_with
from gateway.cli.starter import starter_text
from gateway.hardening import forbid_dumps

CONFIG_NAME = "gateway.toml"
KEYRING_NAME = "keyring"

_TOKEN_BYTES = 32


@click.command("init")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def command(directory: Path) -> None:
    """Write a first configuration, a keyring and an admin token.

    DIR is made when it is missing. Files that are there already are left alone.
    """
    from gateway.access.tokens import digest_of
    from gateway.certificates.sealing import new_keyring_text

    forbid_dumps()
    config_file, keyring_file = directory / CONFIG_NAME, directory / KEYRING_NAME
    present = [str(path) for path in (config_file, keyring_file) if os.path.lexists(path)]
    if present:
        end_with(f"Nothing was written: {' and '.join(present)} would be overwritten.", REFUSED)
    token = f"gwa_{secrets.token_urlsafe(_TOKEN_BYTES)}"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_new(keyring_file, new_keyring_text())
        write_new(config_file, starter_text(digest_of(token)))
    except OSError as error:
        end_with(f"{error.filename} cannot be written: {error.strerror}.", REFUSED)
    click.echo(_next_steps(config_file, keyring_file, token))


def _next_steps(config_file: Path, keyring_file: Path, token: str) -> str:
    return f"""\
Wrote {config_file} and {keyring_file}.

Admin token, shown this once:

  {token}

Next:
  1. Keep a copy of {keyring_file} in a safe place: without it the stored private keys are lost.
  2. Add your zones, and the certificate authority, to {config_file}.
  3. gateway check --config {config_file}
  4. gateway serve --config {config_file}"""
