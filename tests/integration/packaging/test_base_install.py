"""What a client's machine gets: nothing of the server, and a word on it where it is asked for."""

import ast
from pathlib import Path

import pytest

from gateway.cli import COMMANDS
from tests.integration.packaging.installed import (
    BASE,
    ROOT,
    SERVER_DISTRIBUTIONS,
    SERVER_MODULES,
    WITH_SERVER,
    Installed,
    applying,
)

OF_THE_BASE = ["client", "agent", "completion"]
OF_THE_SERVER = [name for name in COMMANDS if name not in OF_THE_BASE]

# Every module of the client's side, and what the command line shares.
IMPORTING = """
import importlib, pkgutil, sys
import gateway.agent, gateway.cli, gateway.client, gateway.contract, gateway.logs

for package in (gateway.contract, gateway.client, gateway.agent):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
for module in pkgutil.iter_modules(gateway.cli.__path__):
    if module.name.startswith(("agent", "client_")) or module.name in {
        "client", "completion", "session"
    }:
        importlib.import_module(f"gateway.cli.{module.name}")
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.parametrize("installed", [BASE, WITH_SERVER], ids=["base", "with-server"])
def test_client_side_loads_no_server_library(installed: Installed) -> None:
    run = installed.run("python", "-W", "error", "-c", IMPORTING)
    assert run.returncode == 0, run.stderr
    loaded = set(run.stdout.split())
    assert {"httpx", "pydantic", "gateway"} <= loaded
    assert loaded.isdisjoint(SERVER_MODULES)


def test_base_install_holds_no_server_library() -> None:
    assert SERVER_DISTRIBUTIONS.isdisjoint(BASE.distributions())


def test_base_install_holds_what_the_project_needs_and_nothing_else() -> None:
    distributions = BASE.distributions()
    needed: set[str] = set()
    asked = applying(distributions["gateway"].requires, frozenset())
    while asked:
        requirement = asked.pop()
        found = distributions.get(requirement.name.lower().replace("_", "-"))
        assert found is not None, f"{requirement} is not installed"
        assert requirement.specifier.contains(found.version), requirement
        if requirement.name not in needed:
            needed.add(requirement.name)
            asked += applying(found.requires, frozenset(requirement.extras))
    names = {name.lower().replace("_", "-") for name in needed}
    assert set(distributions) - {"gateway", "pip", "setuptools"} == names


def test_every_library_of_the_base_is_imported_by_the_client_side() -> None:
    package = ROOT / "gateway"
    files = [package / "logs.py", package / "cli/__init__.py"]
    for part in ("contract", "client", "agent"):
        files += (package / part).rglob("*.py")
    imported = {name for file in files for name in _imports_of(file)}
    asked = applying(BASE.distributions()["gateway"].requires, frozenset())
    assert {each.name.replace("-", "_") for each in asked} <= imported


def test_server_install_holds_every_server_library() -> None:
    assert set(WITH_SERVER.distributions()) >= SERVER_DISTRIBUTIONS


@pytest.mark.parametrize("arguments", [[], ["--config", "/nowhere"], ["ensure", "x", "--json"]])
def test_command_of_the_server_tells_what_to_install(arguments: list[str]) -> None:
    run = BASE.run("gateway", "serve", *arguments)
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr == (
        "`gateway serve` needs the server, which is not installed here (acme is missing): "
        "run pip install 'gateway[server]'.\n"
    )


def test_help_of_a_command_of_the_server_tells_what_to_install() -> None:
    run = BASE.run("gateway", "clients", "ensure", "--help")
    assert run.returncode == 0
    assert COMMANDS["clients"] in run.stdout
    assert "pip install 'gateway[server]'" in " ".join(run.stdout.split())


def test_help_lists_the_commands_of_the_server_apart() -> None:
    run = BASE.run("gateway", "--help")
    assert run.returncode == 0
    usable, heading, others = run.stdout.partition(
        "Commands of the server, not installed here (pip install 'gateway[server]'):\n"
    )
    assert heading
    assert _commands_in(usable) == OF_THE_BASE
    assert _commands_in(others) == OF_THE_SERVER


def test_help_with_the_server_installed_asks_for_nothing() -> None:
    run = WITH_SERVER.run("gateway", "--help")
    assert "Commands of the server:\n" in run.stdout
    assert "pip install" not in run.stdout


@pytest.mark.parametrize("name", OF_THE_BASE)
def test_command_of_the_base_has_its_help_page(name: str) -> None:
    run = BASE.run("gateway", name, "--help")
    assert run.returncode == 0, run.stderr
    assert "pip install" not in run.stdout


def _imports_of(file: Path) -> set[str]:
    """The top packages that a file imports anywhere, also within functions."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def _commands_in(text: str) -> list[str]:
    firsts = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
    return [first for first in firsts if first in COMMANDS]
