"""The command line: `gateway COMMAND`. One module per command, each loaded when it is called.

Responsible for the list of commands and for the last resort: whatever goes wrong, a person reads
one sentence and not a traceback. Must not: do a command's work, or import what only one of them
needs; `gateway --help` and shell completion stay fast. `cli.session` has what commands share.
"""

from __future__ import annotations

import traceback
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import click

from gateway import __version__

# Said here and not taken from the modules: a help page must not load them all.
COMMANDS: Final = {
    "init": "Write a first configuration, a keyring and an admin token.",
    "check": "Say what is wrong with the configuration or the servers, before a start.",
    "serve": "Answer clients, issue and renew certificates.",
    "worker": "Issue and renew certificates, without an HTTP listener.",
    "clients": "Provision clients: policy, credentials, removal.",
    "claims": "Hold hostnames against every client.",
}

_UNFORESEEN = 70  # EX_SOFTWARE of sysexits.h


class _Commands(click.Group):
    """Finds `command` in `gateway.cli.<name>` when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [name for name in COMMANDS if find_spec(f"{__name__}.{name}") is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"{__name__}.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:  # noqa: BLE001  (the last resort)
            click.echo(_sentence(error), err=True)
            ctx.exit(_UNFORESEEN)


@click.group(cls=_Commands)
@click.version_option(__version__, message="gateway %(version)s")
def main() -> None:
    """Publish DNS records and issue certificates for machines, within each client's policy."""


def _sentence(error: Exception) -> str:
    """Kind and place of a fault that nobody foresaw; its message could quote a secret."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    kind = type(error).__name__
    return f"This is a fault of the gateway itself: {kind} at {frame.filename}:{frame.lineno}."
