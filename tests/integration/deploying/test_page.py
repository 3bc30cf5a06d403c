"""What docs/deploying.md names is there: pages, files, units, services, keys, commands."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import click
import pytest

from gateway.agent.config import load_agent_settings
from gateway.cli import main
from gateway.cli.starter import starter_text
from gateway.config import load_settings
from gateway.config.faults import keys_at
from tests.integration.deploying.composing import read_compose
from tests.integration.deploying.page import (
    PAGE,
    ROOT,
    SEVERAL,
    TEXT,
    blocks,
    commands,
    heading_names,
    links,
)
from tests.lab.process import find_program

EXAMPLES = ROOT / "docs" / "examples"
SECRET_BASE64 = "AAECAwQFBgcICQoLDA0ODw=="
TABLES = {"http", "redis", "log", "metrics", "audit", "worker", "limits", "acme", "zones", "admin"}
BEFORE_SERVICE = {"--rm", "-T", "-d", "--detach", "--stop", "--force", "-s", "HUP"}


def of_compose(text: str) -> list[tuple[str, list[str]]]:
    """What docker-compose is told, as a verb and what follows it without its options."""
    return [
        (words[1], [word for word in words[2:] if word not in BEFORE_SERVICE])
        for words in commands(text)
        if words[0] == "docker-compose"
    ]


def gateway_commands() -> list[list[str]]:
    """The arguments of `gateway`, however it is reached."""
    found = [words[1:] for words in commands() if words[0] == "gateway"]
    found += [words[5:] for words in commands() if words[0] == "runuser"]
    found += [words[6:] for words in commands() if words[:2] == ["docker", "run"]]
    for verb, rest in of_compose(TEXT):
        if verb == "run" or (verb == "exec" and rest[1] == "gateway"):
            found.append(rest[1:] if verb == "run" else rest[2:])
    return found


@pytest.mark.parametrize("link", sorted(set(links())))
def test_link_leads_somewhere(link: str) -> None:
    path, _, fragment = link.partition("#")
    page = (PAGE.parent / path).resolve() if path else PAGE
    assert page.exists()
    assert not fragment or fragment in heading_names(page)


def test_every_file_of_the_source_that_is_named_is_there() -> None:
    named = set(re.findall(r"\bdocs/[\w./-]*\w|\brequirements[\w-]*\.txt|\bscripts/[\w-]+", TEXT))
    assert len(named) >= 8
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_unit_that_is_named_is_there() -> None:
    named = set(re.findall(r"\bgateway[\w-]*\.(?:service|timer|sysusers)\b(?!\.d)", TEXT))
    assert {"gateway.service", "gateway-backup.timer", "gateway-backup.service"} <= named
    there = {file.name for folder in ("systemd", "agent") for file in (EXAMPLES / folder).iterdir()}
    assert named - there == set()


def test_units_run_the_program_that_the_page_installs() -> None:
    assert "ln -sfnT" in TEXT
    for unit in (EXAMPLES / "systemd").glob("*.service"):
        assert set(re.findall(r"[/\w.]+/gateway (?=serve|worker|backup)", unit.read_text())) == {
            "/opt/gateway/bin/gateway "
        }


def test_every_key_that_is_named_is_there() -> None:
    named = set(re.findall(r"`([a-z]+\.[a-z_]+)\b", TEXT))
    named = {key for key in named if key.partition(".")[0] in TABLES}
    assert {"http.tls", "acme.directory", "redis.url_file"} <= named
    for key in named:
        table, _, name = key.partition(".")
        place = (table, 0) if table in ("acme", "zones") else (table,)
        assert name.removesuffix("_file") in {each.removesuffix("_file") for each in keys_at(place)}


@pytest.mark.parametrize("block", blocks("sh"))
def test_commands_are_ones_that_a_shell_can_read(block: str) -> None:
    done = subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", gateway_commands(), ids=" ".join)
def test_gateway_knows_each_command_with_its_options(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As the page exports it before.
    monkeypatch.setenv("GATEWAY_APP_ID", "trial")
    command: click.Command = main
    context = click.Context(command)
    rest = list(arguments)
    while isinstance(command, click.Group):
        found = command.get_command(context, rest.pop(0))
        assert found is not None
        command, context = found, click.Context(found, parent=context)
    # Reads the arguments, and does nothing yet.
    command.make_context(command.name, rest, parent=context.parent)


@pytest.mark.parametrize(
    ("text", "example"),
    [(TEXT.partition(SEVERAL)[0], "one"), (TEXT.partition(SEVERAL)[2], "several")],
    ids=["one", "several"],
)
def test_every_service_that_is_named_is_there(text: str, example: str) -> None:
    services = read_compose(EXAMPLES / example / "docker-compose.yml")["services"].keys()
    told = of_compose(text)
    assert len(told) >= 5
    for verb, rest in told:
        named = rest[:1] if verb in ("run", "exec") else rest
        assert {word for word in named if not word.startswith("--")} <= services


@pytest.mark.parametrize("block", blocks("toml"))
def test_settings_of_the_page_are_valid_over_the_first_file(block: str, tmp_path: Path) -> None:
    (tmp_path / "tsig-secret").write_text(SECRET_BASE64)
    file = tmp_path / "gateway.toml"
    file.write_text(starter_text("0" * 64))
    tables = tomllib.loads(blocks("toml")[0]) | tomllib.loads(block)
    changed = {
        f"GATEWAY_{key.upper()}": told if isinstance(told, str) else json.dumps(told)
        for key, told in tables.items()
    }
    settings = load_settings(file, changed)
    assert [zone.name for zone in settings.zones] == ["example.com"]
    assert all("letsencrypt.org/directory" in acme.directory for acme in settings.acme)


def test_bind_takes_the_zone_of_the_page(tmp_path: Path) -> None:
    (block,) = (block for block in blocks("") if "update-policy" in block)
    key = subprocess.run(
        [find_program("tsig-keygen", "bind9"), "-a", "hmac-sha256", "gateway"],
        check=True,
        capture_output=True,
        text=True,
    )
    (tmp_path / "gateway.key").write_text(key.stdout)
    shutil.copy(EXAMPLES / "compose/bind/example.test.zone", tmp_path / "example.com.zone")
    zone = tmp_path / "example.com.zone"
    zone.write_text(zone.read_text().replace("example.test", "example.com"))
    shown = block.replace("/etc/bind/", f"{tmp_path}/").replace("/var/lib/bind/", f"{tmp_path}/")
    (tmp_path / "named.conf").write_text(shown)
    checker = find_program("named-checkconf", "bind9-utils")
    subprocess.run([checker, "-z", tmp_path / "named.conf"], check=True, timeout=30)


def test_agent_of_the_page_is_valid(tmp_path: Path) -> None:
    (block,) = (block for block in blocks("") if "[[ownership]]" in block)
    (tmp_path / "agent.toml").write_text(block)
    (tmp_path / "token").write_text("gwc_0")
    settings = load_agent_settings(
        tmp_path / "agent.toml", {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    )
    assert [each.hostname for each in settings.ownerships] == ["gateway.example.com"]
