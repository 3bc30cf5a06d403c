"""A configuration of the agent that is right, for tests to spoil."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gateway.agent.config import AgentSettings, ConfigInvalid, load_agent_settings

GATEWAY = """
[gateway]
url = "https://gateway.example.com"
token_file = "token"
"""
OWNERSHIP = """
[[ownership]]
app_id = "cluster-relay:a"
hostname = "relay.example.com"
"""
RECORD = OWNERSHIP + '[ownership.record]\nvalue = "198.51.100.85"\n'
CERTIFICATE = OWNERSHIP + "[ownership.certificate]\n"

Load = Callable[..., AgentSettings]
Faults = Callable[..., list[str]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load a file with this text, in `tmp_path`, under this environment."""

    def run(text: str, environ: Mapping[str, str] | None = None) -> AgentSettings:
        file = tmp_path / "agent.toml"
        file.write_text(text)
        return load_agent_settings(file, environ or {})

    return run


@pytest.fixture
def faults(load: Load) -> Faults:
    """The faults that loading such a file tells."""

    def run(text: str) -> list[str]:
        with pytest.raises(ConfigInvalid) as caught:
            load(text)
        return caught.value.faults

    return run
