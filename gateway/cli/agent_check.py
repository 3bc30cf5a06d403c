"""`gateway agent check`: what is wrong, before a start or beside a running agent.

Responsible for making all checks at once, for printing what they found and for the exit code. Must
not: change anything on the disk or at the gateway. `cli.agent_findings` asks the gateway and the
sources of addresses, `cli.agent_machine` looks at this machine. Registered by `cli.agent`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Final

import click

from gateway.cli.agent_settings import agent_config_option, config_file, remedy_of
from gateway.cli.client_connection import NOT_YET
from gateway.cli.session import REFUSED, WRONG, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.agent.config import AgentSettings
    from gateway.cli.finding import Finding

_EXAMPLES: Final = """\b
Examples:
  sudo -u gateway-agent gateway agent check
  gateway agent check --config agent.toml --json | jq '.checks[] | select(.state != "ok")'

\b
With a token that systemd hands over (token_credential), as the unit would run it:
  systemd-run --pipe --wait -p User=gateway-agent \\
    -p LoadCredential=token:/etc/gateway-agent/token \\
    /opt/gateway/bin/gateway agent check

\b
Exit codes: 0 nothing is wrong (warnings do not count); 1 something is; 2 the
command line or the configuration is wrong; 3 nothing but that the gateway was
not reached, so running it again makes sense.
"""


@click.command("check", epilog=_EXAMPLES, short_help="Say what is wrong, before a start.")
@agent_config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_context
def command(context: click.Context, config_path: str | None, *, as_json: bool) -> None:
    """Say everything that is wrong, each with what to do about it. Changes nothing.

    Is the configuration right? Can the token be read, and does the gateway know it? May its client
    have these hostnames and publish these addresses? Can the folders be written, and are the hooks'
    programs there? Run it as the agent's user. It asks the gateway two questions, and runs the
    commands that print an address; deploy hooks are not run. Whether somebody else holds a hostname
    is not seen: that is known when it is asked for, as `gateway agent --once` does.
    """
    from gateway.agent.config import ConfigInvalid, load_agent_settings
    from gateway.cli.finding import Finding, State
    from gateway.logs import configure_logging

    config_path = context.obj if config_path is None else config_path
    path = config_file(config_path)
    try:
        settings = load_agent_settings(path, os.environ)
    except ConfigInvalid as invalid:
        remedy = remedy_of(invalid, config_path)
        faults = [Finding("config", State.FAILED, fault, remedy) for fault in invalid.faults]
        _print(faults, as_json=as_json)
        sys.exit(WRONG)
    configure_logging("error", settings.log_format)  # the findings say it all
    findings = [Finding("config", State.OK, f"{path} is valid.")]
    found, is_away = asyncio.run(_check(settings))
    findings += found
    _print(findings, as_json=as_json)
    sys.exit(_exit_code(findings, is_away=is_away))


async def _check(settings: AgentSettings) -> tuple[list[Finding], bool]:
    from gateway.cli.agent_findings import ask_gateway, check_ownerships
    from gateway.cli.agent_machine import check_machine

    asked, machine = await asyncio.gather(
        ask_gateway(settings), asyncio.to_thread(check_machine, settings)
    )
    ownerships = await check_ownerships(settings, asked.client)
    return [*asked.findings, *ownerships, *machine], asked.is_away


def _print(findings: Sequence[Finding], *, as_json: bool) -> None:
    from gateway.cli.finding import lines_of

    for line in lines_of(findings, as_json=as_json):
        say(line)


def _exit_code(findings: Sequence[Finding], *, is_away: bool) -> int:
    from gateway.cli.finding import State

    failures = sum(finding.state is State.FAILED for finding in findings)
    if not failures:
        return 0
    # That the gateway is away is one of the failures.
    return NOT_YET if is_away and failures == 1 else REFUSED
