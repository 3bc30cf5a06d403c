"""`gateway serve`: the HTTP listener, with the worker in the same process unless told otherwise."""

from __future__ import annotations

import os
import sys

import click

from gateway import early_signals
from gateway.cli.session import carry_out, config_option, load_configuration, read_settings


@click.command("serve")
@config_option
@click.option("--no-worker", is_flag=True, help="Leave issuing and renewing to `gateway worker`.")
def command(config_path: str | None, *, no_worker: bool) -> None:
    """Answer clients, issue and renew certificates, until SIGTERM or Ctrl-C."""
    start(config_path, serves_http=True, works=not no_worker)


def start(config_path: str | None, *, serves_http: bool, works: bool) -> None:
    """Run a process in the given roles."""
    # Imports take a while: what comes meanwhile waits for whoever hears it.
    early_signals.hold()
    from gateway.generation import Roles
    from gateway.logs import configure_logging
    from gateway.running import run

    settings = read_settings(config_path)
    configure_logging(settings.log.level, settings.log.format)
    carry_out(run(settings, Roles(serves_http, works), lambda: load_configuration(config_path)))
    sys.stdout.flush()
    sys.stderr.flush()
    # All has been handed over. A thread that waits for a CA which hangs would keep Python from
    # ending for as long as that call may take.
    os._exit(0)
