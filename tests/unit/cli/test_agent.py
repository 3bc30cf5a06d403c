"""`gateway agent` on the command line, as far as it goes without a gateway."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway import logs
from gateway.cli import agent_settings
from gateway.cli.agent import command
from gateway.cli.agent_settings import CONFIG_VARIABLE

CONFIG = """\
state_dir = "state"

[gateway]
url = "https://gateway.example.com"
token_env = "RELAY_TOKEN"

[[ownership]]
app_id = "relay"
hostname = "relay.example.com"

[ownership.certificate]
"""


@pytest.fixture(autouse=True)
def logging_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in this process; how it logs afterwards is not theirs to say."""
    monkeypatch.setattr(logs, "configure_logging", lambda *_: None)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "agent.toml"
    file.write_text(CONFIG)
    return file


def run(*arguments: object, **environ: str) -> Result:
    return CliRunner().invoke(command, [str(each) for each in arguments], env=environ)


def test_help_has_examples_and_exit_codes() -> None:
    shown = run("--help").output
    assert "gateway agent --config agent.toml --once" in shown
    assert "Exit codes of --once: 0 all is current; 1" in shown


def test_status_before_anything_was_served_is_not_current(config: Path) -> None:
    ran = run("--config", config, "status", "--json")
    shown = json.loads(ran.output)
    assert (ran.exit_code, shown["current"]) == (1, False)
    assert [each["hostname"] for each in shown["ownerships"]] == ["relay.example.com"]


def test_status_takes_its_own_configuration_before_the_agent_s(config: Path) -> None:
    ran = run("--config", "/nonexistent", "status", "--config", config)
    assert (ran.exit_code, "relay.example.com" in ran.output) == (1, True)


def test_configuration_is_found_by_its_variable(config: Path) -> None:
    ran = run("status", **{CONFIG_VARIABLE: str(config)})
    assert "relay.example.com" in ran.output


def test_missing_configuration_is_told_by_its_name(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    ran = run("--config", missing, "--once")
    assert ran.exit_code == 2
    assert str(missing) in ran.output


@pytest.mark.parametrize("arguments", [(), ("--once",), ("status",), ("check",)])
def test_who_names_no_configuration_is_told_how_to(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(agent_settings, "DEFAULT_CONFIG", str(tmp_path / "none.toml"))
    ran = run(*arguments)
    assert ran.exit_code == 2
    assert f"or name another one by --config FILE or ${CONFIG_VARIABLE}" in ran.output
    misnamed = run(*arguments, **{CONFIG_VARIABLE: str(tmp_path / "other.toml")})
    assert f"${CONFIG_VARIABLE} names it" in misnamed.output


@pytest.mark.parametrize("word", ["run", "agent.toml"])
def test_who_names_a_command_that_there_is_not_is_told_how_the_agent_runs(word: str) -> None:
    ran = run(word)
    assert ran.exit_code == 2
    assert "Without a command the agent runs: gateway agent --config FILE." in ran.output


@pytest.mark.parametrize("name", ["status", "check"])
def test_json_is_one_line(config: Path, name: str) -> None:
    ran = run("--config", config, name, "--json")
    assert len(ran.stdout.splitlines()) == 1
    assert json.loads(ran.stdout)


def test_every_fault_of_the_configuration_is_told(config: Path) -> None:
    config.write_text(CONFIG.replace("relay.example.com", "Relay").replace("https://", "ftp://"))
    ran = run("--config", config)
    assert ran.exit_code == 2
    assert len(ran.output.splitlines()) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--timeout", "5"), "--timeout goes with --once"),
        (("-v", "status"), "go with no subcommand"),
        (("--once", "status"), "go with no subcommand"),
        (("--renew", "check"), "go with no subcommand"),
        (("--renew",), "--renew goes with --once"),
        (("--once", "--timeout", "0"), "above 0"),
        (("--once", "--timeout", "nan"), "above 0"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    config: Path, options: tuple[str, ...], said: str
) -> None:
    ran = run("--config", config, *options)
    assert ran.exit_code == 2
    assert said in ran.output


def test_state_folder_that_cannot_be_made_ends_the_agent_in_one_sentence(config: Path) -> None:
    (config.parent / "state").write_text("no folder")
    ran = run("--config", config, "--once")
    assert ran.exit_code == 1
    assert len(ran.output.splitlines()) == 1
