"""The commands beside a running gateway: what they print, and what they refuse."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

from tests.integration.service.calling import CONTEXT, Caller, World
from tests.lab import forks
from tests.lab.lab import Lab

COMMAND = Path(sys.executable).with_name("gateway")
LIMIT_SECONDS = 30.0


def gateway(lab: Lab, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    typed = [*arguments, "--config", str(lab.config.config_file)]
    return forks.run_command(typed, environ or os.environ, LIMIT_SECONDS)


def ensure(lab: Lab, client_id: str, *more: str) -> subprocess.CompletedProcess[str]:
    return gateway(lab, "clients", "ensure", client_id, "--type", "test", *more)


def test_client_made_by_command_may_call_at_once(service_lab: Lab, world: World) -> None:
    client_id = f"client-{secrets.token_hex(4)}"
    made = ensure(service_lab, client_id, "--pattern", "*.example.test", "--json")
    assert made.returncode == 0
    assert made.stderr == ""
    token = json.loads(made.stdout)["apiToken"]
    context = Caller(world.url, token).call(CONTEXT)["context"]
    assert (context["clientId"], context["hostnamePatterns"]) == (client_id, ["*.example.test"])
    shown = json.loads(gateway(service_lab, "clients", "show", client_id, "--json").stdout)
    assert shown["clientId"] == client_id
    assert token.split("_", 2)[2] not in str(shown)


def test_second_ensure_says_where_the_token_is(service_lab: Lab) -> None:
    client_id = f"client-{secrets.token_hex(4)}"
    ensure(service_lab, client_id)
    again = ensure(service_lab, client_id)
    assert again.returncode == 0
    assert "rotate" in again.stderr


def test_faults_are_told_in_the_words_of_the_command_line(service_lab: Lab) -> None:
    wrong = ensure(service_lab, "client", "--pattern", "*", "--allow", "198.51.100.1/24")
    assert wrong.returncode == 2
    assert "--pattern[0]" in wrong.stderr
    assert "--allow[0]" in wrong.stderr
    assert "spec." not in wrong.stderr
    unknown = gateway(service_lab, "clients", "revoke", "nobody")
    assert unknown.returncode == 1
    assert unknown.stderr == "CLIENT_ID nobody names no client\n"


def test_check_prints_nothing_but_its_findings(service_lab: Lab) -> None:
    result = gateway(service_lab, "check", "--json")
    assert result.returncode == 0, result.stdout
    assert json.loads(result.stdout)["ok"] is True
    assert result.stderr == ""


def test_another_keyring_is_refused_at_the_start(service_lab: Lab, tmp_path: Path) -> None:
    other = tmp_path / "keyring"
    original = service_lab.config.config_file.with_name("keyring").read_text()
    key_id, secret = original.split()
    other.write_text(f"{key_id}-other {secret[::-1].lstrip('=')[:43]}=\n")
    result = gateway(service_lab, "worker", GATEWAY_KEYRING_FILE=str(other))
    assert result.returncode == 2
    assert result.stderr.startswith("keyring_file does not hold the key")
    assert result.stderr.count("\n") == 1
