"""`gateway worker`: issues and renews, without an HTTP listener."""

from __future__ import annotations

import click

from gateway.cli.serve import start
from gateway.cli.session import config_option


@click.command("worker")
@config_option
def command(config_path: str | None) -> None:
    """Issue and renew certificates, beside any number of other processes."""
    start(config_path, serves_http=False, works=True)
