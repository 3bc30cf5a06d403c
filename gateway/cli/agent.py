"""`gateway agent`: keeps this machine's records and certificate files current.

Responsible for the options, the lock, the log's form and the exit codes. Must not: need any library
of the server, or load the agent for a help page. The work is in `gateway.agent`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from gateway.cli import agent_check
from gateway.cli.agent_settings import agent_config_option, read_agent_settings
from gateway.cli.client_connection import NOT_YET, Seconds
from gateway.cli.session import REFUSED, WRONG, end_with, say

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from gateway.agent.config import AgentSettings
    from gateway.agent.lock import Held
    from gateway.agent.running import Holder

ONCE_SECONDS: Final = 300.0

_EXAMPLES: Final = """\b
Examples:
  gateway agent --config agent.toml         # until it is stopped
  gateway agent --config agent.toml --once  # bring all up to date, and end
  gateway agent --once --timeout 60 -v      # and say what needed no change
  gateway agent --once --renew              # and ask for everything now
  gateway agent check                       # before a start: what is wrong?
  gateway agent status                      # how it stands; asks nobody
  gateway agent status --json | jq .

\b
Exit codes of --once: 0 all is current; 1 something failed that waiting does
not mend; 2 the command line or the configuration is wrong; 3 not yet: under
way, or the gateway was not reached in time, so running it again makes sense.
"""

_STATUS_EXAMPLES: Final = """\b
Examples:
  gateway agent status --config agent.toml
  gateway agent status --json | jq '.ownerships[] | select(.current | not)'

\b
Exit codes: 0 all is current; 1 something is not; 2 the command line or the
configuration is wrong.
"""

_T = TypeVar("_T")

_BARE: Final = "Without a command the agent runs: gateway agent --config FILE."

_STOP_FIRST: Final = (
    "To ask at once, stop it, run this, and start it again; by itself it asks every hour."
)


class _Group(click.Group):
    """Says how the agent is run to those who take that for a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            ctx.fail(f"{error.message} {_BARE}")


@click.group("agent", cls=_Group, invoke_without_command=True, epilog=_EXAMPLES)
@agent_config_option
@click.option("--once", is_flag=True, help="Bring everything up to date and end, as for cron.")
@click.option(
    "--timeout",
    "timeout_seconds",
    metavar="SECONDS",
    type=Seconds(),
    help=f"How long --once waits for the gateway; {ONCE_SECONDS:g} unless said.",
)
@click.option(
    "--renew",
    is_flag=True,
    help="With --once: publish each record and ask for each certificate now, due or not, and heed "
    "no wait that the gateway asked for.",
)
@click.option("-v", "--verbose", is_flag=True, help="Say also what needed no change.")
@click.pass_context
def command(
    context: click.Context,
    config_path: str | None,
    timeout_seconds: float | None,
    *,
    once: bool,
    renew: bool,
    verbose: bool,
) -> None:
    """Keep this machine's address records and certificate files current.

    For each hostname in the configuration: its record is published again when the address changes,
    and its certificate's files are replaced in one step when there is a newer one, after which the
    deploy hook is run. Without a gateway, all that is there stays as it is. Without a command and
    --once, it stays until it is stopped.
    """
    context.obj = config_path
    if context.invoked_subcommand is not None:
        if once or renew or verbose or timeout_seconds is not None:
            raise click.UsageError("--once, --renew, --timeout and -v go with no subcommand")
        return
    if timeout_seconds is not None and not once:
        raise click.UsageError("--timeout goes with --once")
    if renew and not once:
        raise click.UsageError("--renew goes with --once")
    settings = read_agent_settings(config_path)
    with _locked(settings, f" {_STOP_FIRST}" if renew else "") as held:
        if once:
            seconds = timeout_seconds or ONCE_SECONDS
            code = _once(settings, seconds, renew=renew, verbose=verbose)
        else:
            code = _stay(settings, held, verbose=verbose)
    sys.exit(code)


@command.command(
    "status", epilog=_STATUS_EXAMPLES, short_help="Show how each hostname stands; asks nobody."
)
@agent_config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_context
def status(context: click.Context, config_path: str | None, *, as_json: bool) -> None:
    """Show how each hostname stands: what is published, what is on disk, what is wrong.

    Reads the agent's own notes and the files, beside a running agent or without one. Asks nobody,
    and needs no right to read the token or a key.
    """
    from gateway.agent.clocks import Clocks
    from gateway.agent.memory import Memories
    from gateway.agent.status import read_statuses
    from gateway.agent.status_words import agent_line, lines, view

    settings = read_agent_settings(context.obj if config_path is None else config_path)
    now_ms = Clocks().now_ms()
    statuses = read_statuses(settings, Memories(settings.state_dir).read, now_ms)
    holder = _holder(settings)
    if as_json:
        click.echo(json.dumps(view(statuses, now_ms, holder)))
    else:
        for line in (*lines(statuses, now_ms), agent_line(holder)):
            say(line)
    sys.exit(0 if all(each.is_current for each in statuses) else REFUSED)


command.add_command(agent_check.command)


def _holder(settings: AgentSettings) -> Holder | str | None:
    """Who works on the state folder; a text says why that is not known."""
    from gateway.agent.durable import DiskFault
    from gateway.agent.running import holder_of

    try:
        return holder_of(settings.state_dir)
    except DiskFault as fault:
        return str(fault)


@contextmanager
def _locked(settings: AgentSettings, remedy: str) -> Iterator[Held]:
    """Be the one agent of these folders; ends the command when there is another."""
    from gateway.agent.durable import DiskFault
    from gateway.agent.lock import Locked, WrongUser, agent_lock

    has_files = any(each.certificate is not None for each in settings.ownerships)
    certificates_dir = settings.certificates_dir if has_files else None
    with ExitStack() as stack:
        try:
            held = stack.enter_context(agent_lock(settings.state_dir, certificates_dir))
        except WrongUser as wrong:
            end_with(f"{wrong}.", WRONG)
        except Locked as locked:
            end_with(f"{locked}.{remedy}", NOT_YET)
        except DiskFault as fault:
            end_with(f"{fault}.", REFUSED)
        yield held


def _once(settings: AgentSettings, timeout_seconds: float, *, renew: bool, verbose: bool) -> int:
    from gateway.agent.clocks import Clocks
    from gateway.agent.memory import Memories
    from gateway.agent.once import keep_once
    from gateway.agent.status import read_statuses
    from gateway.agent.status_words import lines
    from gateway.logs import configure_logging

    # What matters is said at the end, once; the log has what hooks print when they fail.
    configure_logging("info" if verbose else "error", settings.log_format)
    clocks = Clocks()
    _say_warning(settings)
    said: list[str] = []

    def complain(line: str) -> None:
        say(line, err=True)

    def tell(line: str) -> None:
        said.append(line)
        say(line)

    code = _carry_out(keep_once(settings, clocks, timeout_seconds, tell, complain, renew=renew))
    if renew and code == 0 and not said:
        say("The gateway was asked for everything, and all is as it was.")
    if verbose:
        now_ms = clocks.now_ms()
        recall = Memories(settings.state_dir).read
        for line in lines(read_statuses(settings, recall, now_ms), now_ms):
            say(line)
    return code


def _stay(settings: AgentSettings, held: Held, *, verbose: bool) -> int:
    from gateway.agent.clocks import Clocks
    from gateway.agent.lock import LockLost
    from gateway.agent.service import serve
    from gateway.logs import configure_logging

    configure_logging("debug" if verbose else "info", settings.log_format)
    _say_warning(settings)
    try:
        _carry_out(serve(settings, os.environ, Clocks(), held.demand))
    except LockLost as lost:
        end_with(f"{lost}.", REFUSED)
    return 0


def _carry_out(work: Coroutine[Any, Any, _T]) -> _T:
    from gateway.agent.contact import ContactInvalid

    try:
        return asyncio.run(work)
    except ContactInvalid as wrong:
        end_with(str(wrong), WRONG)


def _say_warning(settings: AgentSettings) -> None:
    warning = settings.gateway.token.warning()
    if warning is not None:
        say(f"{warning}.", err=True)
