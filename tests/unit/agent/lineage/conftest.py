"""A lineage in a folder of its own, and certificates for it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.agent.lineage import FileAccess, Lineage
from gateway.client import Bundle, read_bundle
from tests.lab.certificates import LabAuthority

HOSTNAME = "relay.cluster-a.example.com"
NOON = 1_700_000_000_000


@pytest.fixture(scope="session")
def authority() -> LabAuthority:
    return LabAuthority()


@pytest.fixture(scope="session")
def bundles(authority: LabAuthority) -> list[Bundle]:
    issued = [authority.issue(HOSTNAME) for _ in range(4)]
    return [read_bundle(each.chain_pem, each.private_key_pem, HOSTNAME) for each in issued]


@pytest.fixture
def lineage(tmp_path: Path) -> Lineage:
    return Lineage(tmp_path, HOSTNAME, FileAccess(), lambda: NOON)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive" / HOSTNAME


@pytest.fixture
def strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)
