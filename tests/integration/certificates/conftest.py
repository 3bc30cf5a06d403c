"""An authority on the real Pebble, and what stands around it."""

from collections.abc import AsyncIterator, Callable

import pytest

from gateway.certificates.authority import Authority, AuthoritySettings
from tests.integration.certificates.issuing import ZONE, MemoryAccountStore, settings_for
from tests.lab.pebble import PebbleProcess

MakeAuthority = Callable[..., Authority]


@pytest.fixture
async def make_authority() -> AsyncIterator[MakeAuthority]:
    """Makes authorities that are closed at the test's end."""
    made: list[Authority] = []

    def make(settings: AuthoritySettings, store: MemoryAccountStore | None = None) -> Authority:
        authority = Authority(settings, store or MemoryAccountStore())
        made.append(authority)
        return authority

    yield make
    for authority in made:
        await authority.close()


@pytest.fixture
async def authority(pebble: PebbleProcess, make_authority: MakeAuthority) -> Authority:
    """An authority with a fresh account."""
    authority = make_authority(settings_for(pebble))
    await authority.ensure_account()
    return authority


@pytest.fixture
def hostname(fresh_label: str) -> str:
    """A hostname that no other test uses."""
    return f"relay.{fresh_label}.{ZONE}"
