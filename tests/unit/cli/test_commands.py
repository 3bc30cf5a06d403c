import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import gateway.cli
import gateway.cli.claims
from gateway import __version__
from gateway.cli import COMMANDS, REFUSED_ARGUMENT, main
from gateway.variables import NO_SETTINGS

DOCS = Path(__file__).parents[3] / "docs"
VARIABLE = re.compile(r"\bGATEWAY_[A-Z0-9_]+")
PAGES_OF_CLIENTS = [
    *(DOCS / f"{name}.md" for name in ("agent", "clients", "command-line")),
    DOCS / "examples" / "two_hundred_relays.py",
    *sorted((DOCS / "examples" / "agent").iterdir()),
    *sorted((DOCS / "examples" / "cloudly").glob("*.mjs")),
]
TOKEN = "gwc_2a97516c354b68848cdbd8f5d206c53f54e5_D7kdDaVVv0EkLXcMHrgxixAL8FTbj5EB"
CHATTY = """
import sys
import click
from gateway.cli import claims, main

@click.command()
@click.argument("stream")
def chatty(stream):
    click.echo("heard by nobody", err=stream == "stderr")

claims.command = chatty
main(["claims", sys.argv[1]])
"""


def test_help_lists_every_command() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for name, meaning in COMMANDS.items():
        assert any(line.split()[:1] == [name] for line in result.output.splitlines()), name
        assert meaning.split()[0] in result.output


def test_help_loads_no_command_and_no_library_of_theirs() -> None:
    program = """if True:
        import sys
        from gateway.cli import main
        main(["--help"], standalone_mode=False)
        loaded = {"pydantic", "redis", "dns", "acme", "starlette", "asyncio"} & set(sys.modules)
        loaded |= {name for name in sys.modules if name.startswith("gateway.cli.")}
        loaded -= {"gateway.cli.streams"}
        sys.exit(", ".join(sorted(loaded)) or None)
    """
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.stderr == ""
    assert run.returncode == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_page(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert result.output.startswith("Usage:")


def test_command_whose_module_is_missing_does_not_break_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(gateway.cli.COMMANDS, "absent", "Is not there.")
    listing = CliRunner().invoke(main, ["--help"])
    assert listing.exit_code == 0
    assert "absent" not in listing.output
    assert CliRunner().invoke(main, ["absent"]).exit_code == 2
    assert CliRunner().invoke(main, ["check", "--help"]).exit_code == 0


def test_version_is_told() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"gateway {__version__}\n"


def test_unforeseen_fault_is_one_sentence_without_its_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @click.command()
    def broken() -> None:
        raise RuntimeError("hush")

    monkeypatch.setattr(gateway.cli.claims, "command", broken)
    result = CliRunner().invoke(main, ["claims"])
    assert result.exit_code == 70
    assert result.output.startswith("This is a fault of the gateway itself: RuntimeError at ")
    assert result.output.count("\n") == 1
    assert "hush" not in result.output


def test_interrupt_ends_a_command_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def endless() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gateway.cli.claims, "command", endless)
    result = CliRunner().invoke(main, ["claims"])
    assert (result.exit_code, result.output) == (130, "Interrupted.\n")


@pytest.mark.parametrize(
    "arguments", [[], ["agent"], ["agent", "--config"], ["clients", "ensure"], ["completion"]]
)
def test_token_is_refused_at_any_command_and_not_repeated(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, [*arguments, TOKEN])
    assert result.exit_code == 2
    assert REFUSED_ARGUMENT in result.output
    assert TOKEN not in result.output


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_closed_pipe_ends_a_command_quietly(stream: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: writer}
    run = subprocess.run(
        [sys.executable, "-c", CHATTY, stream], **streams, text=True, timeout=30, check=False
    )
    os.close(writer)
    assert run.returncode == 141
    assert not run.stdout
    assert not run.stderr


def test_broken_pipe_that_is_no_stream_of_ours_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def broken() -> None:
        raise BrokenPipeError

    monkeypatch.setattr(gateway.cli.claims, "command", broken)
    result = CliRunner().invoke(main, ["claims"])
    assert result.exit_code == 70
    assert "BrokenPipeError at " in result.output


@pytest.mark.parametrize("arguments", [["nope"], ["check", "--nope"], ["init"]])
def test_wrong_command_line_ends_with_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, arguments).exit_code == 2


@pytest.mark.parametrize("name", ["client", "agent"])
def test_variable_of_an_option_of_a_client_is_no_setting_of_the_server(name: str) -> None:
    found = main.get_command(click.Context(main), name)
    assert found is not None
    named = set(_variables(found))
    assert named <= NO_SETTINGS
    assert named or name == "agent"


@pytest.mark.parametrize("page", PAGES_OF_CLIENTS, ids=lambda page: page.name)
def test_variable_on_a_page_for_clients_is_no_setting_of_the_server(page: Path) -> None:
    """It may be exported on the machine of a gateway, whose `check` must not complain of it."""
    assert set(VARIABLE.findall(page.read_text())) <= NO_SETTINGS


def _variables(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter.envvar, str):
            yield parameter.envvar
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from _variables(each)
