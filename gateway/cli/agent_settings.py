"""How the commands of `gateway agent` find their configuration.

Responsible for the option that all of them have, and for the file that it means. Must not: load the
agent for a help page. Used by `cli.agent` and `cli.agent_check`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from gateway.cli.session import WRONG, end_with
from gateway.variables import AGENT_CONFIG

if TYPE_CHECKING:
    from gateway.agent.config import AgentSettings

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


def read_agent_settings(config_path: str | None) -> AgentSettings:
    """The settings; ends the command with every fault when there is one."""
    from gateway.agent.config import ConfigInvalid, load_agent_settings

    try:
        return load_agent_settings(config_file(config_path), os.environ)
    except ConfigInvalid as invalid:
        end_with(invalid.faults, WRONG)
