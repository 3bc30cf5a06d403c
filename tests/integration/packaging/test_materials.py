"""The bill of materials says what the lock says, and says it the same each time."""

import json
from pathlib import Path

import pytest

from tests.integration.packaging.installed import ROOT
from tests.integration.packaging.test_locks import read_lock
from tests.inventory.materials import LOCKS, bill_of_materials, write_materials


@pytest.mark.parametrize("lock", LOCKS)
def test_bill_of_materials_names_what_the_lock_pins(lock: str, tmp_path: Path) -> None:
    listed = json.loads(write_materials(ROOT / lock, tmp_path).read_text())["components"]
    found = {
        each["name"]: (
            each["version"],
            frozenset(f"--hash=sha256:{one['content']}" for one in each["hashes"]),
        )
        for each in listed
    }
    assert found == {name: (pin.version, pin.hashes) for name, pin in read_lock(lock).items()}


def test_bill_of_materials_of_a_lock_is_always_the_same() -> None:
    assert bill_of_materials(ROOT / LOCKS[0]) == bill_of_materials(ROOT / LOCKS[0])
