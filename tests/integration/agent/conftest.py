"""Fixtures: machines with an agent each, on the session's gateway or on a server that lies."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.agent.machine import Machine
from tests.integration.dns.hand import Hand
from tests.integration.service.calling import Ownership, World
from tests.lab.lab import Lab
from tests.lab.liar import Liar


@pytest.fixture(scope="package")
def agent_world(lab: Lab) -> World:
    return World(lab.config.url, lab.config.admin_token)


@pytest.fixture(scope="package")
def zone_hand(lab: Lab) -> Hand:
    """Another person at work in the zones."""
    return Hand.at(lab.bind)


@pytest.fixture
def owned(agent_world: World) -> Ownership:
    """A new client's ownership of a new hostname."""
    return agent_world.ownership()


@pytest.fixture
def machine(tmp_path: Path, owned: Ownership) -> Machine:
    """A machine whose agent calls the real gateway."""
    return Machine(tmp_path, owned, owned.caller.url)


@pytest.fixture
def liar() -> Iterator[Liar]:
    with Liar() as server:
        yield server


@pytest.fixture
def misled(tmp_path: Path, owned: Ownership, liar: Liar) -> Machine:
    """A machine whose agent calls a server that lies."""
    return Machine(tmp_path, owned, liar.url)
