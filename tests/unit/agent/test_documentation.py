"""What `docs/agent.md` lists is what there is: keys with their tables and defaults, metrics."""

import re
from pathlib import Path

import pytest

from gateway.agent.addresses import CommandAddress
from gateway.agent.config import AgentSettings, ConfigInvalid, load_agent_settings
from gateway.agent.metrics import registry_of

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "agent.md").read_text(encoding="utf-8")
EXAMPLE = (DOCS / "examples" / "agent" / "agent.toml").read_text(encoding="utf-8")
LISTED = PAGE.partition("## The files")[0]
ROW = re.compile(r"^\| (`[^|]+`) \| ([^|]+) \|", re.MULTILINE)
HEADERS = {
    "": "",
    "[gateway]": "[gateway]",
    "[[ownership]]": "[[ownership]]",
    "[ownership.record]": "[[ownership]]\n[ownership.record]",
    "[ownership.certificate]": "[[ownership]]\n[ownership.certificate]",
}
"""The tables that the page names, as they begin in a file."""


def keys_of_tables() -> list[tuple[str, str]]:
    """Each key of the page with its table."""
    first, *rest = re.split(r"^`(\[.*?\])`[,:]", LISTED, flags=re.MULTILINE)
    tables = [("", first), *zip(rest[::2], rest[1::2], strict=True)]
    return [
        (table, key)
        for table, text in tables
        for cell, _ in ROW.findall(text)
        for key in re.findall(r"`(\w+)`", cell)
    ]


KEYS_OF_TABLES = keys_of_tables()

SMALLEST = """
[gateway]
url = "https://gateway.example.com"
token_env = "TOKEN"

[[ownership]]
app_id = "a"
hostname = "relay.example.com"
[ownership.record]
command = ["/bin/true"]
[ownership.certificate]
deploy_hook = "true"
"""


def default_of(key: str) -> str:
    rows = ROW.findall(LISTED)
    (default,) = [default for cell, default in rows if f"`{key}`" in cell]
    return str(default).strip("` ")


@pytest.fixture
def smallest(tmp_path: Path) -> AgentSettings:
    file = tmp_path / "agent.toml"
    file.write_text(SMALLEST)
    return load_agent_settings(file, {})


def test_first_configuration_of_the_page_is_read(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "agent.toml"
    file.write_text(text)
    (ownership,) = load_agent_settings(file, {}).ownerships
    assert ownership.hostname == "relay.cluster-a.example.com"


def test_page_has_every_key_of_the_example_and_no_other() -> None:
    shown = re.findall(r"^(?:# )?(\w+) = ", EXAMPLE, re.MULTILINE)
    assert sorted(key for _, key in KEYS_OF_TABLES) == sorted(set(shown))


@pytest.mark.parametrize(("table", "key"), KEYS_OF_TABLES)
def test_key_of_the_page_is_one_of_its_table(tmp_path: Path, table: str, key: str) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(f"{HEADERS[table]}\n{key} = {{}}\n")
    with pytest.raises(ConfigInvalid) as raised:
        load_agent_settings(file, {})
    assert not [fault for fault in raised.value.faults if "is not a key" in fault]


def test_defaults_are_as_the_page_says(smallest: AgentSettings) -> None:
    (ownership,) = smallest.ownerships
    record, certificate = ownership.record, ownership.certificate
    assert record is not None
    assert certificate is not None
    assert certificate.hook is not None
    assert isinstance(record.source, CommandAddress)
    assert {
        "state_dir": str(smallest.state_dir),
        "log_format": smallest.log_format,
        "allow_plain_http": str(smallest.gateway.allow_plain_http).lower(),
        "ttl": str(record.ttl),
        "check_seconds": str(record.check_seconds),
        "republish_seconds": str(record.republish_seconds),
        "command_timeout_seconds": str(int(record.source.timeout_seconds)),
        "key_mode": f"{certificate.access.key_mode:04o}",
        "combined": str(certificate.access.combined).lower(),
        "hook_timeout_seconds": str(int(certificate.hook.timeout_seconds)),
    } == {
        key: default_of(key)
        for key in (
            "state_dir",
            "log_format",
            "allow_plain_http",
            "ttl",
            "check_seconds",
            "republish_seconds",
            "command_timeout_seconds",
            "key_mode",
            "combined",
            "hook_timeout_seconds",
        )
    }
    assert smallest.certificates_dir == smallest.state_dir / "certificates"


def test_page_has_every_metric_and_no_other() -> None:
    there = {family.name for family in registry_of([], 0).collect()}
    # Told once the gateway has answered.
    there.add("gateway_agent_last_contact_time_seconds")
    assert set(re.findall(r"`(gateway_agent_\w+)`", PAGE)) == there
