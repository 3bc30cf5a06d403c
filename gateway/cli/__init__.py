"""The command line: `gateway COMMAND`. One module per command, each loaded when it is called.

Responsible for the list of commands, for saying what to install where a command's libraries are
not, for refusing a token among the arguments without repeating it, and for the last resort:
whatever goes wrong, a person reads one sentence and not a traceback.
Must not: do a command's work, or import what only one of them needs; `gateway --help` and shell
completion stay fast. `cli.session` has what commands share.
"""

from __future__ import annotations

import re
import sys
import traceback
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import click

from gateway import __version__
from gateway.cli.streams import (
    fault_words,
    has_no_reader,
    is_of_output,
    open_standard_files,
    say_error,
    silence_error,
    silence_output,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

# Said here and not taken from the modules: a help page must not load them all.
COMMANDS: Final = {
    "client": "Call a gateway as a client does: records, certificates, who I am.",
    "agent": "Keep this machine's records and certificate files current.",
    "completion": "Print the completion script of a shell.",
    "init": "Write a first configuration, a keyring and an admin token.",
    "check": "Say what is wrong with the configuration or the servers, before a start.",
    "serve": "Answer clients, issue and renew certificates.",
    "worker": "Issue and renew certificates, without an HTTP listener.",
    "clients": "Provision clients: policy, credentials, removal.",
    "claims": "Hold hostnames against every client.",
    "holdings": "Show who holds what; rebuild that, hand over, release, withdraw, forget.",
    "accounts": "Look after the accounts at the authorities: list, new key, contact.",
    "budget": "Show what each authority may still be asked for, and what holds orders back.",
    "explain": "Explain how a hostname is judged, and what a call for it would be answered.",
    "audit": "Show who changed what, when, from where; follow it.",
    "issuances": "Show where each certificate stands, why, and what is next; try one now.",
    "backup": "Write all that Redis holds into a sealed file, or look such a file through.",
    "restore": "Write a backup into an empty Redis.",
    "reseal": "Move everything that is sealed to the first key of the keyring.",
}

# What the base install brings the libraries of; every other command is one of the server.
_OF_THE_BASE: Final = ("client", "agent", "completion")

# One module of each library that only the server has.
_SERVER_LIBRARIES: Final = (
    *("acme", "dns", "hiredis", "httptools", "jinja2", "josepy", "publicsuffixlist"),
    *("pydantic_settings", "redis", "starlette", "uvicorn", "uvloop"),
)

_CLOSED_PIPE = 141  # what a shell calls a program that SIGPIPE ended
_INTERRUPTED = 130  # what a shell calls a program that ^C ended
_UNFORESEEN = 70  # EX_SOFTWARE of sysexits.h
_FAILED, _WRONG = 1, 2  # as `cli.session` has them

_NO_LOCALE: Final = (
    "A file's name has characters that the locale of this process does not have: run it with a"
    " UTF-8 one, such as LC_ALL=C.UTF-8."
)

REFUSED_ARGUMENT: Final = (
    "A token is not taken from the command line, where other users and the shell's history see it:"
    " name a file that holds it (--token-file; token_file in an agent's configuration), and have a"
    " token that was typed there replaced."
)

_TOKEN: Final = re.compile(r"gw[ac]_[A-Za-z0-9_-]{16,}")
_TOKEN_OPTIONS: Final = {"--token", "--api-token", "--apitoken", "--apiToken"}


class _Commands(click.Group):
    """Finds `command` in `gateway.cli.<name>` when it is needed."""

    def main(self, *args: Any, **named: Any) -> Any:
        """Run with all standard files; one that takes no output ends it in a sentence."""
        open_standard_files()
        try:
            return super().main(*args, **named)
        except Exception as error:
            if not is_of_output(error):
                raise
            silence_output()
            say_error(
                f"The output cannot be written: {fault_words(error)}; what was asked for may be"
                " done all the same."
            )
            sys.exit(_FAILED)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Refuse a token before anything is parsed: what is parsed may be quoted in a complaint."""
        # A shell that completes is told no faults.
        if not extra.get("resilient_parsing") and _holds_token(args):
            raise click.UsageError(REFUSED_ARGUMENT)
        return super().make_context(info_name, args, parent, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [name for name in COMMANDS if find_spec(f"{__name__}.{name}") is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        missing = None if cmd_name in _OF_THE_BASE else _missing_library()
        if missing is not None:
            return _without_server(cmd_name, missing)
        command: click.Command = import_module(f"{__name__}.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lists: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
        for name in self.list_commands(ctx):
            lists[name in _OF_THE_BASE].append((name, COMMANDS[name]))
        of_the_server = "Commands of the server"
        if _missing_library() is not None:
            of_the_server += ", not installed here (pip install 'gateway[server]')"
        with formatter.section("Commands"):
            formatter.write_dl(lists[True])
        with formatter.section(of_the_server):
            formatter.write_dl(lists[False])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Options as click has them, and the commands that can be run here.

        click would load every command for its help.
        """
        from click.shell_completion import CompletionItem

        names = self.list_commands(ctx) if _missing_library() is None else _OF_THE_BASE
        commands = [
            CompletionItem(name, help=COMMANDS[name])
            for name in names
            if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except KeyboardInterrupt:
            say_error("Interrupted.")
            ctx.exit(_INTERRUPTED)
        except Exception as error:  # the last resort
            if isinstance(error, BrokenPipeError) and _silence_closed_pipes():
                ctx.exit(_CLOSED_PIPE)
            if is_of_output(error):
                raise
            if isinstance(error, UnicodeEncodeError) and sys.getfilesystemencoding() != "utf-8":
                say_error(_NO_LOCALE)
                ctx.exit(_WRONG)
            say_error(_sentence(error))
            ctx.exit(_UNFORESEEN)


@click.group(cls=_Commands)
@click.version_option(__version__, message="gateway %(version)s")
def main() -> None:
    """Publish DNS records and issue certificates for machines, within each client's policy."""


def _holds_token(arguments: Sequence[str]) -> bool:
    """Whether one of the arguments is a token, holds one, or is an option that would take one."""
    return any(
        _TOKEN.search(each) is not None or each.partition("=")[0] in _TOKEN_OPTIONS
        for each in arguments
    )


def _missing_library() -> str | None:
    """The first library of the server that is not installed, if any; loads none of them."""
    return next((name for name in _SERVER_LIBRARIES if find_spec(name) is None), None)


def _without_server(name: str, missing: str) -> click.Command:
    """What stands for a command of the server where that is not installed: says what to install."""
    from gateway.cli.session import WRONG, end_with

    sentence = (
        f"`gateway {name}` needs the server, which is not installed here ({missing} is missing): "
        "run pip install 'gateway[server]'."
    )
    return click.Command(
        name,
        callback=lambda: end_with(sentence, WRONG),
        help=f"{COMMANDS[name]}\n\n{sentence}",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


def _silence_closed_pipes() -> bool:
    """Whether a reader of ours has gone (`| head`); what is still buffered for it goes nowhere.

    Else the interpreter would complain of it when it flushes at its end.
    """
    was_closed = False
    for descriptor, silence in ((1, silence_output), (2, silence_error)):
        if has_no_reader(descriptor):
            silence()
            was_closed = True
    return was_closed


def _sentence(error: Exception) -> str:
    """Kind and place of a fault that nobody foresaw; its message could quote a secret."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    kind = type(error).__name__
    return f"This is a fault of the gateway itself: {kind} at {frame.filename}:{frame.lineno}."
