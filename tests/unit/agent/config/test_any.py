"""`agent.toml`: whatever is in it, it is settings or faults, and the contract's own rules hold."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gateway.agent.config import ConfigInvalid, load_agent_settings
from gateway.contract.addresses import address_fault
from gateway.contract.hostnames import hostname_fault
from gateway.contract.identifiers import app_id_fault
from gateway.contract.records import ttl_fault
from tests.unit.agent.config.toml import written

WORDS = st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF, exclude_categories=["Cc"]))
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
CONTRACT_CHECKS = {
    "app_id": app_id_fault,
    "hostname": hostname_fault,
    "record.value": address_fault,
    "record.ttl": ttl_fault,
}
KEYS = st.sampled_from(
    (
        *("state_dir", "textfile", "log_format", "gateway", "ownership", "url", "token_file"),
        *("token_env", "ca_file", "app_id", "hostname", "record", "certificate", "type", "value"),
        *("interface", "command", "ttl", "owner", "group", "key_mode", "combined", "deploy_hook"),
        "x",
    )
)
TABLES = st.recursive(
    st.dictionaries(KEYS, VALUES, max_size=4),
    lambda inner: st.dictionaries(KEYS, VALUES | inner | st.lists(inner, max_size=2), max_size=5),
    max_leaves=5,
)


@given(data=st.data(), place=st.sampled_from(sorted(CONTRACT_CHECKS)))
def test_what_the_wire_knows_is_judged_as_the_gateway_would(
    data: st.DataObject, place: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    value = data.draw(VALUES)
    ownership: dict[str, Any] = {
        "app_id": "a",
        "hostname": "relay.example.com",
        "record": {"value": "198.51.100.85"},
    }
    table, key = (ownership["record"], place[7:]) if "." in place else (ownership, place)
    table[key] = value
    document = {
        "gateway": {"url": "https://gateway.example.com", "token_env": "TOKEN"},
        "ownership": [ownership],
    }
    sentence = CONTRACT_CHECKS[place](value)
    expected = [] if sentence is None else [f"ownership[0].{place}: {sentence}"]
    assert _faults_of(document, tmp_path_factory.getbasetemp()) == expected


@given(document=TABLES)
def test_any_file_is_settings_or_faults(
    document: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert all(": " in fault for fault in _faults_of(document, tmp_path_factory.getbasetemp()))


def _faults_of(document: dict[str, Any], folder: Path) -> list[str]:
    file = folder / "agent.toml"
    file.write_text(written(document), encoding="utf-8")
    try:
        load_agent_settings(file, {})
    except ConfigInvalid as invalid:
        return invalid.faults
    return []
