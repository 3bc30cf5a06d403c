import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

import gateway.cli
from gateway.cli import COMMANDS, main

BASE = ["client", "agent", "completion"]


def offered(*words: str) -> list[str]:
    """What Tab offers for the last word."""
    completer = BashComplete(main, {}, "gateway", "_GATEWAY_COMPLETE")
    return [item.value for item in completer.get_completions(list(words[:-1]), words[-1])]


@pytest.fixture
def without_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway.cli, "_SERVER_LIBRARIES", ("click", "library_that_is_not_there"))


@pytest.mark.parametrize(
    ("shell", "telling"),
    [
        ("bash", "complete -o nosort -F _gateway_completion gateway\n"),
        ("zsh", "#compdef gateway\n"),
        ("fish", "complete --no-files --command gateway"),
    ],
)
def test_script_is_the_one_of_the_shell(shell: str, telling: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell], prog_name="gateway")
    assert result.exit_code == 0
    assert telling in result.output
    assert f"_GATEWAY_COMPLETE={shell}_complete" in result.output


def test_script_is_for_the_name_that_the_program_is_called_by() -> None:
    result = CliRunner().invoke(main, ["completion", "bash"], prog_name="gateway-1.2")
    assert "complete -o nosort -F _gateway_12_completion gateway-1.2\n" in result.output
    assert "_GATEWAY_1_2_COMPLETE=bash_complete" in result.output


def test_script_and_program_agree_on_the_variable_between_them() -> None:
    environ = {"_GATEWAY_1_2_COMPLETE": "bash_complete", "COMP_WORDS": "g comp", "COMP_CWORD": "1"}
    result = CliRunner().invoke(main, [], prog_name="gateway-1.2", env=environ)
    assert result.output == "plain,completion\n"


def test_help_shows_each_command_on_a_line_of_its_own() -> None:
    shown = CliRunner().invoke(main, ["completion", "--help"]).output
    assert "  gateway completion fish | source\n" in shown
    assert "\\b" not in shown


def test_unknown_shell_is_refused_with_those_there_are() -> None:
    result = CliRunner().invoke(main, ["completion", "ksh"])
    assert result.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in result.output


def test_every_command_is_offered() -> None:
    assert offered("") == list(COMMANDS)


def test_commands_that_begin_alike_are_offered() -> None:
    assert offered("cl") == ["client", "clients", "claims"]


def test_options_of_the_program_are_offered() -> None:
    assert offered("--v") == ["--version"]


def test_options_of_a_nested_command_are_offered() -> None:
    assert offered("clients", "ensure", "--patt") == ["--pattern"]


@pytest.mark.usefixtures("without_server")
def test_only_commands_that_can_be_run_are_offered_without_the_server() -> None:
    assert offered("") == BASE


@pytest.mark.usefixtures("without_server")
def test_nothing_is_offered_within_a_command_of_the_server_that_is_not_there() -> None:
    assert offered("clients", "") == []


@pytest.mark.usefixtures("without_server")
def test_command_of_the_server_names_the_library_that_is_missing() -> None:
    result = CliRunner().invoke(main, ["worker", "--config", "x"])
    assert result.exit_code == 2
    assert result.output == (
        "`gateway worker` needs the server, which is not installed here "
        "(library_that_is_not_there is missing): run pip install 'gateway[server]'.\n"
    )


@pytest.mark.usefixtures("without_server")
def test_help_lists_the_commands_of_the_server_apart_from_those_that_can_be_run() -> None:
    usable, heading, others = (
        CliRunner()
        .invoke(main, ["--help"])
        .output.partition(
            "Commands of the server, not installed here (pip install 'gateway[server]'):\n"
        )
    )
    assert heading
    assert all(f"\n  {name} " in usable for name in BASE)
    assert all(f"  {name} " in others for name in COMMANDS if name not in BASE)
