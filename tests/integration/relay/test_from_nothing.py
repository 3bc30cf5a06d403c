"""A relay from nothing to served TLS by one `gateway agent --once`: real gateway, Pebble, BIND."""

import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.service.calling import World
from tests.lab.lab import Lab
from tests.lab.nginx import Nginx
from tests.lab.tls_load import VERSIONS, client_context, connect

ADDRESS = "198.51.100.85"
_RUN_LIMIT_SECONDS = 90.0
"""For a whole issuance, on a machine that is busy with other tests."""

_CONFIG = """\
state_dir = {state_dir}
certificates_dir = {certificates_dir}

[gateway]
url = {url}
token_file = {token_file}

[[ownership]]
app_id = "relay"
hostname = {hostname}

[ownership.record]
value = {address}

[ownership.certificate]
deploy_hook = {deploy_hook}
"""


@dataclass(frozen=True)
class Machine:
    """A new relay: an nginx that waits for its first certificate, and an agent's configuration."""

    hostname: str
    nginx: Nginx
    config_file: Path
    root_file: Path

    def run_agent(self) -> subprocess.CompletedProcess[str]:
        """`gateway agent --once`, as a person at the terminal starts it."""
        command = [str(Path(sys.executable).with_name("gateway")), "agent", "--once"]
        command += ["--config", str(self.config_file)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=_RUN_LIMIT_SECONDS, check=False
        )


@pytest.fixture(scope="module")
def machine(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("relay")
    mine = World(lab.config.url, lab.config.admin_token).ownership()
    certificates_dir = folder / "certificates"
    (folder / "nginx").mkdir()
    nginx = Nginx(folder / "nginx", certificates_dir, [mine.hostname])
    token_file, config_file = folder / "token", folder / "agent.toml"
    token_file.touch(mode=0o600)
    token_file.write_text(f"{mine.caller.token}\n")
    values = {
        "state_dir": folder / "state",
        "certificates_dir": certificates_dir,
        "url": lab.config.url,
        "token_file": token_file,
        "hostname": mine.hostname,
        "address": ADDRESS,
    }
    # JSON's strings and lists are TOML's as well.
    config_file.write_text(
        _CONFIG.format(
            deploy_hook=json.dumps(nginx.reload_or_start_command),
            **{name: json.dumps(str(value)) for name, value in values.items()},
        )
    )
    nginx.start_on_order()
    yield Machine(mine.hostname, nginx, config_file, lab.pebble.root_file)
    nginx.stop()


@pytest.fixture(scope="module")
def first_run(machine: Machine) -> subprocess.CompletedProcess[str]:
    return machine.run_agent()


def test_one_run_of_the_agent_succeeds_on_a_machine_that_has_nothing(
    first_run: subprocess.CompletedProcess[str],
) -> None:
    assert first_run.returncode == 0, first_run.stdout + first_run.stderr


@pytest.mark.usefixtures("first_run")
@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_a_client_that_trusts_the_ca_is_served_once_the_agent_has_run(
    machine: Machine, version: ssl.TLSVersion
) -> None:
    context = client_context(machine.root_file, version)
    with connect(machine.nginx.address, context, machine.hostname) as tls:
        shown = tls.getpeercert()
    assert shown is not None
    assert shown["subjectAltName"] == (("DNS", machine.hostname),)


@pytest.mark.usefixtures("first_run")
def test_a_second_run_reloads_nothing(machine: Machine) -> None:
    assert machine.run_agent().returncode == 0
    assert machine.nginx.reloads() == 0
