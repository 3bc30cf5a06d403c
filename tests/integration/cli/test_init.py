"""`gateway init`: new files only, each readable by its user alone."""

import hashlib
import re
import tomllib
from pathlib import Path

import pytest

from tests.integration.cli.running import check, run

TOKEN = re.compile(r"gwa_[A-Za-z0-9_-]{43}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "new" / "gateway"


def test_init_writes_a_configuration_that_check_accepts(folder: Path) -> None:
    assert run("init", folder).returncode == 0
    findings = check(folder / "gateway.toml")
    assert {part: finding["state"] for part, finding in findings.items()} == {
        "config": "ok",
        "keyring": "ok",
        "redis": "ok",
        "clock redis": "ok",
        "clients": "warning",
        "zones": "warning",
        "acme": "ok",
        "page": "ok",
    }


def test_init_writes_files_for_its_user_alone(folder: Path) -> None:
    run("init", folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    for name in ("gateway.toml", "keyring"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600


def test_init_shows_the_token_and_stores_its_digest(folder: Path) -> None:
    output = run("init", folder).stdout
    (token,) = TOKEN.findall(output)
    text = (folder / "gateway.toml").read_text()
    assert token not in text
    digest = hashlib.sha256(token.encode()).hexdigest()
    assert tomllib.loads(text)["admin"]["token_sha256"] == digest


def test_init_makes_a_new_token_and_a_new_key_each_time(tmp_path: Path) -> None:
    outputs = [run("init", tmp_path / name).stdout for name in ("a", "b")]
    assert TOKEN.findall(outputs[0]) != TOKEN.findall(outputs[1])
    assert (tmp_path / "a" / "keyring").read_text() != (tmp_path / "b" / "keyring").read_text()


def test_init_tells_the_next_steps(folder: Path) -> None:
    output = run("init", folder).stdout
    assert f"gateway check --config {folder / 'gateway.toml'}" in output
    assert f"gateway serve --config {folder / 'gateway.toml'}" in output


@pytest.mark.parametrize("name", ["gateway.toml", "keyring"])
def test_init_overwrites_nothing(folder: Path, name: str) -> None:
    folder.mkdir(parents=True)
    (folder / name).write_text("mine")
    result = run("init", folder)
    assert result.returncode == 1
    assert result.stderr == f"Nothing was written: {folder / name} would be overwritten.\n"
    assert [path.name for path in folder.iterdir()] == [name]
    assert (folder / name).read_text() == "mine"


def test_init_follows_no_link(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "keyring").symlink_to(tmp_path / "elsewhere")
    assert run("init", folder).returncode == 1
    assert not (tmp_path / "elsewhere").exists()


def test_init_says_why_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("init", tmp_path / "file" / "folder")
    assert result.returncode == 1
    assert "cannot be written: Not a directory" in result.stderr
    assert result.stderr.count("\n") == 1
