"""The starter file and the page about the configuration say what the code does."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.starter import starter_text
from gateway.config.faults import Location, keys_at
from tests.unit.config.conftest import SECRET_BASE64, TOKEN_SHA256, Load

TABLES: tuple[Location, ...] = (
    (),
    ("admin",),
    ("http",),
    ("redis",),
    ("log",),
    ("metrics",),
    ("page",),
    ("traces",),
    ("audit",),
    ("zones", 0),
    ("zones", 0, "tsig"),
    ("acme", 0),
    ("acme", 0, "eab"),
    ("acme", 0, "budget"),
    ("worker",),
    ("limits",),
)
BY_NAME = {"limits.clients"}
"""Tables of tables by names that are nobody's keys."""

TABLE_NAMES = {part for table in TABLES for part in table}
KEYS = [
    ".".join(str(part) for part in (*table, key) if part != 0)
    for table in TABLES
    for key in keys_at(table)
    if key not in TABLE_NAMES
]
DOCUMENT = Path(__file__).parents[3] / "docs" / "configuration.md"


def uncommented(text: str) -> str:
    return re.sub(r"^#(?=[a-z\[])", "", text, flags=re.MULTILINE)


def test_starter_is_valid_as_it_is(load: Load) -> None:
    settings = load(starter_text(TOKEN_SHA256))
    assert settings.admin.token_sha256 == TOKEN_SHA256
    assert settings.zones == ()


def test_starter_is_valid_with_every_setting_taken_over(load: Load, tmp_path: Path) -> None:
    (tmp_path / "tsig-secret").write_text(SECRET_BASE64)
    (tmp_path / "eab-hmac-key").write_text("a" * 32)
    (tmp_path / "trace-headers").write_text("Authorization: Bearer of-a-collector")
    text = uncommented(starter_text(TOKEN_SHA256)).replace("ca_bundle = ", "#")
    # The other way to have TLS.
    text = text.replace("\ncertificate_file = ", "\n#").replace("\nkey_file = ", "\n#")
    settings = load(text)
    assert [zone.name for zone in settings.zones] == ["example.org"]
    (acme,) = settings.acme
    assert (acme.name, acme.profile) == ("letsencrypt", "shortlived")
    assert acme.eab is not None


def test_starter_states_the_defaults(load: Load) -> None:
    minimal = load(f'[admin]\ntoken_sha256 = "{TOKEN_SHA256}"')
    assert load(starter_text(TOKEN_SHA256)) == minimal


def test_starter_has_every_key() -> None:
    table = tomllib.loads(uncommented(starter_text(TOKEN_SHA256)))
    assert _without_forms(_keys_of(table)) == _without_forms(KEYS)


@pytest.mark.parametrize("key", KEYS)
def test_page_explains_every_key_and_its_variable(key: str) -> None:
    text = DOCUMENT.read_text("utf-8")
    variable = f"GATEWAY_{key.upper().replace('.', '__')}"
    variable = variable.replace("ZONES__", "ZONES__0__").replace("ACME__", "ACME__0__")
    assert f"`{key}`" in text
    assert f"`{variable}`" in text


def test_whole_file_of_the_page_is_valid(load: Load, tmp_path: Path) -> None:
    match = re.search(r"```toml\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert match is not None
    contents = {"admin-token.sha256": TOKEN_SHA256, "eab-second": "a" * 32}
    for name in ("tsig-example.org", "tsig-example.net"):
        contents[name] = SECRET_BASE64
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    settings = load(match[1].replace("/etc/gateway", str(tmp_path)))
    assert [zone.name for zone in settings.zones] == ["example.org", "example.net"]
    assert [acme.name for acme in settings.acme] == ["letsencrypt", "second"]
    assert settings.acme[1].eab is not None


def _keys_of(table: dict[str, Any], prefix: str = "") -> list[str]:
    keys = []
    for key, value in table.items():
        inner = value[0] if isinstance(value, list) and isinstance(value[0], dict) else value
        is_table = isinstance(inner, dict) and prefix + key not in BY_NAME
        keys += _keys_of(inner, f"{prefix}{key}.") if is_table else [prefix + key]
    return keys


def _without_forms(keys: list[str]) -> set[str]:
    """A secret counts once, whether it is given inline or as a file."""
    return {key.removesuffix("_file") for key in keys}
