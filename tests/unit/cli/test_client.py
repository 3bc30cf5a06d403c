"""The command line of `gateway client`: help, completion, and where a token may come from."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from gateway import variables
from gateway.cli import REFUSED_ARGUMENT, main
from gateway.cli.client import command
from gateway.cli.client_connection import FirstFailure
from gateway.cli.client_token import NO_TOKEN, find_token
from gateway.client import Unreachable

TOKEN = "gwc_2a97516c354b68848cdbd8f5d206c53f54e5_D7kdDaVVv0EkLXcMHrgxixAL8FTbj5EBdtWORqeohWY"
COMMANDS = [
    ("context",),
    ("capabilities",),
    ("record", "set"),
    ("record", "delete"),
    ("certificate", "get"),
    ("certificate", "wait"),
    ("certificate", "release"),
]


def run(*arguments: str) -> Result:
    environ = {variables.URL: "", variables.TOKEN: "", variables.TOKEN_FILE: ""}
    return CliRunner(env=environ).invoke(main, ["client", *arguments])


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_help_of_each_command_has_examples_as_they_are_typed(names: tuple[str, ...]) -> None:
    text = run(*names, "--help").output
    examples = text[text.index("Examples:") :]
    assert examples.count(f"gateway client {' '.join(names)}") > 1
    assert "\b" not in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_no_command_has_an_option_for_the_token_itself(names: tuple[str, ...]) -> None:
    text = run(*names, "--help").output
    assert "--token-file FILE" in text
    assert "--token " not in text


def test_help_loads_neither_the_sdk_nor_its_libraries() -> None:
    program = """if True:
        import sys
        from gateway.cli import main
        main(["client", "certificate", "wait", "--help"], standalone_mode=False)
        heavy = {"pydantic", "httpx", "anyio", "asyncio", "cryptography", "gateway.client"}
        sys.exit(", ".join(sorted(heavy & set(sys.modules))) or None)
    """
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.stderr == ""
    assert result.returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        (TOKEN,),
        ("--token", TOKEN),
        ("context", TOKEN),
        ("context", "--token", TOKEN),
        ("context", f"--token={TOKEN}"),
        ("context", "--token", "in-a-form-that-is-not-known"),
        ("context", "--url", f"https://{TOKEN}@gateway.example.com"),
        ("context", "--deadline", TOKEN),
        ("context", "--token-file", TOKEN),
        ("record", TOKEN),
        ("record", "set", "a.example.test", "--app-id", TOKEN, "--address", "198.51.100.1"),
        ("record", "set", "a.example.test", "--ttl", TOKEN),
        ("certificate", "get", "a.example.test", f"--apiToken={TOKEN}"),
    ],
)
def test_token_among_the_arguments_is_refused_and_not_repeated(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert REFUSED_ARGUMENT in result.output
    assert not any(word in result.output for word in (TOKEN, "in-a-form"))


def test_token_among_the_arguments_does_not_break_completion() -> None:
    completion = ShellComplete(main, {}, "gateway", "_GATEWAY_COMPLETE")
    offered = completion.get_completions(["client", "context", "--url", TOKEN], "--js")
    assert [item.value for item in offered] == ["--json"]


@pytest.mark.parametrize("given", ["0", "-1", "nan", "soon", ""])
@pytest.mark.parametrize("option", ["--deadline", "--timeout"])
def test_time_that_is_none_is_refused(option: str, given: str) -> None:
    result = run("certificate", "wait", "a.example.test", "--app-id", "relay", option, given)
    assert result.exit_code == 2
    assert f"{given!r} is not a number of seconds above 0." in result.output


@pytest.mark.parametrize("given", ["inf", "1e308", "31536001"])
@pytest.mark.parametrize("option", ["--deadline", "--timeout"])
def test_time_that_is_no_limit_is_refused(option: str, given: str) -> None:
    result = run("certificate", "wait", "a.example.test", "--app-id", "relay", option, given)
    assert result.exit_code == 2
    assert f"{given!r} is more than 31536000 seconds, a year." in result.output


def test_app_id_is_needed_and_its_variable_is_named() -> None:
    result = run("certificate", "get", "a.example.test")
    assert result.exit_code == 2
    assert "--app-id" in result.output
    assert "GATEWAY_APP_ID" in result.output


def test_url_with_a_password_is_refused_without_it() -> None:
    result = run("context", "--url", "https://someone:hush@gateway.example.com")
    assert result.exit_code == 2
    assert "must not hold a user name or a password" in result.output
    assert "hush" not in result.output


@pytest.mark.parametrize("url", ["http://[", "gateway.example.com", "ftp://gateway.example.com"])
def test_url_that_is_none_is_refused(url: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("gwc_x")
    result = run("context", "--url", url, "--token-file", str(file))
    assert result.exit_code == 2
    assert url in result.output


def test_options_are_completed_and_a_token_file_by_the_files_there_are() -> None:
    completion = ShellComplete(main, {}, "gateway", "_GATEWAY_COMPLETE")
    offered = completion.get_completions(["client", "certificate", "wait"], "--t")
    assert [item.value for item in offered] == ["--timeout", "--token-file"]
    (kind,) = completion.get_completions(["client", "context", "--token-file"], "")
    assert kind.type == "file"
    (kind,) = completion.get_completions(["client", "certificate", "get", "--out"], "")
    assert kind.type == "dir"


def test_token_is_taken_from_the_first_place_that_is_named(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("option", "variable")]
    for file in files:
        file.write_text(f"gwc_{file.name}\n")
    environ = {variables.TOKEN_FILE: str(files[1]), variables.TOKEN: "gwc_itself"}
    assert find_token(str(files[0]), environ)[1] == "gwc_option"
    assert find_token(None, environ)[1] == "gwc_variable"
    source, token = find_token(None, environ | {variables.TOKEN_FILE: ""})
    assert token == "gwc_itself"
    assert variables.TOKEN in source


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "Standard input holds no token: it is empty."),
        ("two words\n", "Standard input must hold one token and nothing else."),
    ],
)
def test_standard_input_that_holds_no_token_is_told(typed: str, said: str) -> None:
    arguments = ["client", "context", "--token-file", "-", "--url", "http://127.0.0.1"]
    result = CliRunner().invoke(main, arguments, input=typed)
    assert result.exit_code == 2
    assert result.output == f"{said}\n"


def test_standard_input_is_read_for_a_token() -> None:
    @click.command()
    def show() -> None:
        click.echo(find_token("-", {}))

    assert "gwc_piped" in CliRunner().invoke(show, input="gwc_piped\nmore\n").output


def test_pipe_is_read_for_a_token_as_a_shell_names_one() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"gwc_piped\n")
    os.close(writer)
    try:
        assert find_token(f"/dev/fd/{reader}", {})[1] == "gwc_piped"
    finally:
        os.close(reader)


def test_person_at_a_terminal_is_told_of_the_first_failure_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    first = FirstFailure(30.0)
    first.tell(Unreachable("It is gone.", may_have_arrived=False))
    first.tell(Unreachable("It is gone for good.", may_have_arrived=False))
    told = "It is gone. Trying again until 30 s are over; ^C ends it.\n"
    assert capsys.readouterr() == ("", told)


def test_log_is_not_told_of_a_failure_that_may_pass(capsys: pytest.CaptureFixture[str]) -> None:
    FirstFailure(30.0).tell(Unreachable("It is gone.", may_have_arrived=False))
    assert capsys.readouterr() == ("", "")


def test_no_source_at_all_is_told_with_all_of_them() -> None:
    result = run("context", "--url", "http://127.0.0.1")
    assert result.exit_code == 2
    assert result.output == f"{NO_TOKEN}\n"


def test_group_is_what_the_command_list_finds() -> None:
    assert isinstance(command, click.Group)
    assert sorted(command.commands) == ["capabilities", "certificate", "context", "record"]
