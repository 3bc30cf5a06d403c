"""An authority on the real Pebble, and what stands around it."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from gateway.certificates.authority import Authority, AuthoritySettings
from tests.integration.authorities.renewing import (
    NINETY_DAYS_SECONDS,
    RenewingCa,
    renewing_ca,
)
from tests.integration.certificates.issuing import ZONE, MemoryAccountStore, settings_for
from tests.lab import pebble_newer
from tests.lab.bind import BindPair
from tests.lab.pebble import PebbleProcess

MakeAuthority = Callable[..., Authority]


PROFILES = {
    "default": {"description": "ninety days", "validityPeriod": NINETY_DAYS_SECONDS},
    "shortlived": {"description": "six days", "validityPeriod": 518_400},
}


@pytest.fixture(scope="package")
def renewing(tmp_path_factory: pytest.TempPathFactory, bind: BindPair) -> Iterator[RenewingCa]:
    """A CA that says when to renew, and has profiles where it is the newer Pebble."""
    folder = tmp_path_factory.mktemp("renewing") / "ca"
    with renewing_ca(folder, bind, settings={"profiles": PROFILES}) as ca:
        yield ca


@pytest.fixture(scope="package")
def newer_pebble(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair
) -> Iterator[PebbleProcess]:
    """The newer Pebble, for `each_pebble` where it can be had."""
    folder = tmp_path_factory.mktemp("newer-pebble")
    server = pebble_newer.start_newer_pebble(folder, bind.primary)
    assert server is not None, pebble_newer.why_not()
    yield server
    server.stop()


@pytest.fixture(params=["pebble", "newer_pebble"] if pebble_newer.newer_pebble() else ["pebble"])
def each_pebble(request: pytest.FixtureRequest) -> PebbleProcess:
    """The system's Pebble and, if it can be had, the newer one: they differ in how they refuse."""
    server: PebbleProcess = request.getfixturevalue(request.param)
    return server


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
