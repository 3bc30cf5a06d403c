"""Certificates for one hostname, and folders that other users can reach."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.client import Bundle, read_bundle
from tests.lab import disks
from tests.lab.certificates import LabAuthority

HOSTNAME = "relay.cluster-a.example.com"


@pytest.fixture(scope="session")
def bundles() -> list[Bundle]:
    authority = LabAuthority()
    issued = [authority.issue(HOSTNAME) for _ in range(8)]
    return [read_bundle(each.chain_pem, each.private_key_pem, HOSTNAME) for each in issued]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    with disks.open_folder() as folder:
        yield folder


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    """Such a folder where hundreds of installations take no time."""
    with disks.open_folder(in_memory=True) as folder:
        yield folder
