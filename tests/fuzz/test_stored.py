"""What lies on disks and in Redis, once somebody has altered it: read, or said to be unreadable."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from gateway.access.tokens import new_client_token, parse_admin_token, parse_client_token
from gateway.agent.config import ConfigInvalid as AgentConfigInvalid, load_agent_settings
from gateway.agent.memory import Memories
from gateway.certificates.sealing import KeyringInvalid, load_keyring, new_keyring_text
from gateway.config import ConfigInvalid, load_settings
from gateway.contract.names import Hostname
from gateway.holdings.remembered import require_readable
from gateway.store.documents import Unreadable, as_document
from tests.fuzz.conftest import FUZZ
from tests.fuzz.mutations import altered, damaged
from tests.unit.config.conftest import ACME, MINIMAL, ZONE

HOSTNAME = Hostname("relay.example.test")
DOCUMENT: dict[str, Any] = {
    "record": {
        "type": "A",
        "value": "198.51.100.85",
        "ttl": 300,
        "published": True,
        "edition": "e",
        "sought": [{"type": "A", "value": "198.51.100.86", "ttl": 300}],
    },
    "claim": {"sinceMs": 1, "note": "n"},
    "issuance": {"id": "i", "state": "waiting", "resume": "ordered", "reason": "rate-limited"},
    "certificate": {"issuance_id": "i", "chain_pem": "", "sealed_key": "v1:k:x", "window_ms": [1]},
    "debts": [{"kind": "challenge-record", "zone": "example.test", "name": "n", "value": "v"}],
}
AGENT = f"""
state_dir = "/var/lib/gateway-agent"
[gateway]
url = "https://gateway.example.test"
token_file = "/etc/token"
[[ownership]]
app_id = "relay"
hostname = "{HOSTNAME}"
[ownership.record]
interface = "eth0"
[ownership.certificate]
deploy_hook = ["true"]
"""
MEMORY = json.dumps(
    {"format": 1, "published": {"type": "A", "value": "192.0.2.1", "ttl": 60}, "hook_tries": 1}
).encode()


@settings(FUZZ)
@given(parts=altered([DOCUMENT]))
def test_document_is_readable_or_said_not_to_be(parts: dict[str, Any]) -> None:
    fields = {name: json.dumps(value) for name, value in parts.items()}
    try:
        require_readable(as_document(HOSTNAME, fields))
    except Unreadable as unreadable:
        said = str(unreadable)
        if HOSTNAME not in said:
            raise AssertionError(said) from unreadable


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("stored")
    (made / "state").mkdir()
    (made / "keyring").write_text(new_keyring_text())
    return made


@settings(FUZZ)
@given(content=damaged([new_keyring_text().encode()]))
def test_keyring_is_taken_or_refused(folder: Path, content: bytes) -> None:
    path = folder / "altered-keyring"
    path.touch(0o600)
    path.write_bytes(content)
    try:
        load_keyring(path)
    except KeyringInvalid as invalid:
        if not invalid.faults:
            raise AssertionError("refused without a reason") from invalid


@settings(FUZZ)
@given(content=damaged([(MINIMAL + ZONE + ACME).encode()]))
def test_configuration_is_taken_or_refused(folder: Path, content: bytes) -> None:
    path = folder / "gateway.toml"
    path.write_bytes(content)
    try:
        load_settings(path, {})
    except ConfigInvalid as invalid:
        if not invalid.faults:
            raise AssertionError("refused without a reason") from invalid


@settings(FUZZ)
@given(content=damaged([AGENT.encode()]))
def test_agents_configuration_is_taken_or_refused(folder: Path, content: bytes) -> None:
    path = folder / "agent.toml"
    path.write_bytes(content)
    try:
        load_agent_settings(path, {})
    except AgentConfigInvalid as invalid:
        if not invalid.faults:
            raise AssertionError("refused without a reason") from invalid


@settings(FUZZ)
@given(content=damaged([MEMORY]))
def test_agents_memory_is_used_or_told_to_be_useless(folder: Path, content: bytes) -> None:
    (folder / "state" / f"{HOSTNAME}.json").write_bytes(content)
    recalled = Memories(folder).read(HOSTNAME)
    assert recalled.forgotten is None or str(folder) in recalled.forgotten


@settings(FUZZ)
@given(token=damaged([new_client_token("cluster-a").token.encode(), b"gwa_secret"]))
def test_token_is_of_a_known_form_or_none(token: bytes) -> None:
    text = token.decode("latin-1")
    read = parse_client_token(text)
    assert read is None or text.isascii()
    assert parse_admin_token(text) is None or text.isascii()
