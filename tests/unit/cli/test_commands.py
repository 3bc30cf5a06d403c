import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import gateway.cli
import gateway.cli.claims
from gateway import __version__
from gateway.cli import COMMANDS, main


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


@pytest.mark.parametrize("arguments", [["nope"], ["check", "--nope"], ["init"]])
def test_wrong_command_line_ends_with_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, arguments).exit_code == 2
