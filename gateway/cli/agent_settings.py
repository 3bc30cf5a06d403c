"""How the commands of `gateway agent` find their configuration.

Responsible for the option that all of them have, for the file that it means, and for saying how to
name another one. Must not: load the agent for a help page. Used by `cli.agent` and
`cli.agent_check`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from gateway.cli.session import WRONG, end_with
from gateway.variables import AGENT_CONFIG

if TYPE_CHECKING:
    from gateway.agent.config import AgentSettings, ConfigInvalid

CONFIG_VARIABLE: Final = AGENT_CONFIG
DEFAULT_CONFIG: Final = "/etc/gateway-agent/agent.toml"

agent_config_option = click.option(
    "--config",
    "config_path",
    metavar="FILE",
    help=f"The configuration file; else ${CONFIG_VARIABLE}, else {DEFAULT_CONFIG}.",
)


def config_file(config_path: str | None) -> Path:
    """The file that is meant, whether it is there or not."""
    return Path(config_path or os.environ.get(CONFIG_VARIABLE) or DEFAULT_CONFIG)


def remedy_of(invalid: ConfigInvalid, config_path: str | None) -> str:
    """What to do about a file that is not there; empty for another fault, or a file typed here."""
    if config_path or not invalid.is_missing:
        return ""
    if os.environ.get(CONFIG_VARIABLE):
        return f"${CONFIG_VARIABLE} names it: correct that, or name a file by --config FILE"
    return f"make it, or name another one by --config FILE or ${CONFIG_VARIABLE}"


def read_agent_settings(config_path: str | None) -> AgentSettings:
    """The settings; ends the command with every fault when there is one."""
    from gateway.agent.config import ConfigInvalid, load_agent_settings

    try:
        return load_agent_settings(config_file(config_path), os.environ)
    except ConfigInvalid as invalid:
        remedy = remedy_of(invalid, config_path)
        end_with([f"{fault}: {remedy}" if remedy else fault for fault in invalid.faults], WRONG)
