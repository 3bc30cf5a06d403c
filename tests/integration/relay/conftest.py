"""Fixtures: a running relay of two hostnames, each with its first certificate."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.relay.relays import Relay

HOSTNAMES = ("a.relay.example.test", "b.relay.example.test")


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    relay = Relay(tmp_path, HOSTNAMES)
    for hostname in HOSTNAMES:
        relay.install(hostname)
    relay.nginx.start()
    yield relay
    relay.nginx.stop()


@pytest.fixture
def hostname() -> str:
    """The second one: the first is also what nginx takes for clients that name none."""
    return HOSTNAMES[1]
