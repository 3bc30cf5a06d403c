"""Fixtures: the session's lab with its real gateway, clients at it, and a server that lies."""

import secrets
from collections.abc import AsyncIterator, Iterator

import pytest

from gateway.client import AsyncGatewayClient, GatewayClient, Ownership
from tests.integration.service.calling import Ownership as Mine, World
from tests.lab.lab import Lab
from tests.lab.liar import Liar

TOKEN = "gwc_c7f3_kJ0xExample"
RELAY = Ownership.of("relay", "relay.example.test")
"""What is asked of the liar, which knows no hostnames."""


@pytest.fixture(scope="package")
def world(lab: Lab) -> World:
    return World(lab.config.url, lab.config.admin_token)


@pytest.fixture
def mine(world: World) -> Mine:
    """A new client's right to a new hostname."""
    return world.ownership()


@pytest.fixture
async def client(mine: Mine) -> AsyncIterator[AsyncGatewayClient]:
    """At the real gateway, with the token of `mine`."""
    async with AsyncGatewayClient(mine.caller.url, mine.caller.token or "") as client:
        yield client


@pytest.fixture
def blocking(mine: Mine) -> Iterator[GatewayClient]:
    """The same, blocking."""
    with GatewayClient(mine.caller.url, mine.caller.token or "") as client:
        yield client


@pytest.fixture
async def operator(lab: Lab) -> AsyncIterator[AsyncGatewayClient]:
    """At the real gateway, with the operator's token."""
    async with AsyncGatewayClient(lab.config.url, lab.config.admin_token) as client:
        yield client


@pytest.fixture
def liar() -> Iterator[Liar]:
    with Liar() as liar:
        yield liar


@pytest.fixture
async def deceived(liar: Liar) -> AsyncIterator[AsyncGatewayClient]:
    """A client of the liar."""
    async with AsyncGatewayClient(liar.url, TOKEN) as client:
        yield client


@pytest.fixture
def new_client_id() -> str:
    return f"client-{secrets.token_hex(6)}"
