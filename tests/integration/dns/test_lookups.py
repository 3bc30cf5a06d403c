"""A server's name whose resolver does not answer: it holds up nobody but who waits for it.

The resolver is a fake, since the system's can't be made to hang for one name.
"""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from gateway.contract.names import ZoneName
from gateway.dns.exchange import Exchange, Limits
from gateway.dns.lookups import Lookups, by_system
from gateway.dns.outcome import OutcomeKind
from gateway.dns.publisher import Publisher
from gateway.dns.zones import Endpoint, Zone, Zones
from tests.integration.dns.conftest import MARKERS, V4, Caller, owner_of, soon

NAMES = 20


class Hanging:
    """A resolver that answers for `localhost` only; counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._end = threading.Event()

    def __call__(self, host: str) -> list[str]:
        self.asked.append(host)
        if host != "localhost":
            self._end.wait()
        return by_system(host)

    def end(self) -> None:
        self._end.set()


@pytest.fixture
def resolver() -> Iterator[Hanging]:
    resolver = Hanging()
    yield resolver
    resolver.end()


async def test_names_that_hang_delay_no_other_zone_and_no_other_thread(
    zone: Zone, hostname: str, resolver: Hanging
) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    dead = [
        replace(zone, name=ZoneName(f"z{n}.test"), primary=Endpoint(f"ns.z{n}.invalid", 53))
        for n in range(NAMES)
    ]
    well = replace(zone, primary=Endpoint("localhost", zone.primary.port))
    exchange = Exchange(Limits(resolve_seconds=0.5), Lookups(resolver))
    publisher = Publisher(Zones([well, *dead]), MARKERS, exchange)
    waiting = [
        asyncio.ensure_future(Caller(publisher, owner_of(f"x.{each.name}")).publish())
        for each in dead
    ]
    assert (await Caller(publisher, owner_of(hostname)).publish(V4)).kind is OutcomeKind.CREATED
    assert await asyncio.to_thread(lambda: "done") == "done"
    outcomes = await asyncio.gather(*waiting)
    assert {each.kind for each in outcomes} == {OutcomeKind.UNAVAILABLE}
    assert all("No address" in each.detail for each in outcomes)


async def test_name_that_hangs_is_looked_up_once_at_a_time(resolver: Hanging) -> None:
    lookups = Lookups(resolver)
    found = await asyncio.gather(
        *(lookups.addresses("hangs.invalid", until=0.0) for _ in range(NAMES))
    )
    assert found == [[]] * NAMES
    assert resolver.asked == ["hangs.invalid"]


async def test_name_is_looked_up_again_when_it_is_asked_for_again(resolver: Hanging) -> None:
    lookups = Lookups(resolver)
    for _ in range(2):
        assert "127.0.0.1" in await lookups.addresses("localhost", until=soon())
    assert resolver.asked == ["localhost"] * 2


@pytest.mark.parametrize("host", ["no-such-host.invalid", "x" * 64, "a..b"])
async def test_name_without_address_has_none(host: str) -> None:
    assert await Lookups().addresses(host, until=soon()) == []


async def test_machine_without_a_thread_left_finds_nothing_and_looks_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fake: no test may use up the machine's threads."""

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    lookups = Lookups()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        assert await lookups.addresses("localhost", until=soon()) == []
    assert await lookups.addresses("localhost", until=soon()) != []
