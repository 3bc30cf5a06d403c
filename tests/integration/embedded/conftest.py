"""Fixtures: a state directory, and any number of private Redises on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.store.embedded import EmbeddedRedis
from tests.integration.embedded.servers import Embed


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
async def embed(state_dir: Path) -> AsyncIterator[Embed]:
    """Make any number of them on one state directory; no server is left behind."""
    made: list[EmbeddedRedis] = []

    def make() -> EmbeddedRedis:
        made.append(EmbeddedRedis(state_dir))
        return made[-1]

    yield make
    for embedded in made:
        await embedded.stop()
    if made:
        last = EmbeddedRedis(state_dir)
        if (state_dir / "redis" / "server.lock").exists():
            await last.start()
            await last.stop()
