"""The same parts of `gateway.dns` and the same other person, on each kind of server in turn.

A test says what it saw by `tells(behaviour, outcome)`: it must be what `docs/dns-servers.md` has in
its table for this server, and `scripts/dns-servers` shows all of it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.dns.challenges import Challenges
from gateway.dns.exchange import Exchange
from gateway.dns.zones import Zone, Zones
from tests.faults.tables import TABLES
from tests.integration.dns.conftest import call, caller, hostname, zone_at, zones
from tests.integration.dns.hand import Hand
from tests.lab.bind import BindPair, start_bind_pair
from tests.lab.bind_secondary import start_bind_secondary
from tests.lab.dns_server import DnsServer
from tests.lab.knot import KnotServer
from tests.lab.powerdns import PowerDnsServer
from tests.lab.process import Process
from tests.servers.eyes import Eyes
from tests.servers.table import COLUMNS, documented, drawn

__all__ = ["call", "caller", "hostname", "zones"]  # the fixtures that are the same here

ZONES = ("example.test", "example.net.test", "child.example.test")
"""The last one lies below the first on the same server, and no delegation tells of it."""

Tells = Callable[[str, str], None]
AnyServer = BindPair | KnotServer | PowerDnsServer


@dataclass
class Running:
    """The servers that were started so far, each with a BIND that follows it."""

    make_folder: Callable[[str], Path]
    started: dict[str, AnyServer] = field(default_factory=dict)
    secondaries: list[Process] = field(default_factory=list)

    def server(self, kind: str) -> AnyServer:
        """The server of a kind, started when it is first asked for."""
        if kind not in self.started:
            self.started[kind] = self._start(kind)
        return self.started[kind]

    def stop(self) -> None:
        """Stop all of them."""
        for each in (*self.secondaries, *self.started.values()):
            each.stop()

    def _start(self, kind: str) -> AnyServer:
        folder = self.make_folder(kind)
        if kind == "bind":
            return start_bind_pair(folder, ZONES)
        server = (KnotServer if kind == "knot" else PowerDnsServer)(folder, ZONES)
        server.start()
        self.started[kind] = server  # to be stopped whatever becomes of its follower
        # Knot lets an update wait while it notifies a secondary that isn't there.
        follower = self.make_folder(f"{kind}-secondary")
        self.secondaries.append(
            # PowerDNS signs its NOTIFY with the key that it lets transfer.
            start_bind_secondary(follower, server, server.secondary, has_key=kind == "powerdns")
        )
        return server


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    servers = Running(lambda name: tmp_path_factory.mktemp(f"servers-{name}"))
    yield servers
    servers.stop()


@pytest.fixture(params=COLUMNS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(running: Running, kind: str) -> AnyServer:
    return running.server(kind)


@pytest.fixture
def crash(running: Running, kind: str) -> Callable[[], None]:
    """Kill the server and start it again."""
    server = running.server(kind)

    def again() -> None:
        if isinstance(server, BindPair):
            server.primary_process.kill()
            server.start_primary()
        else:
            server.process.kill()
            server.start()

    return again


@pytest.fixture(scope="module")
def seen(request: pytest.FixtureRequest) -> Iterator[dict[str, dict[str, str]]]:
    """What the tests of one file saw; shown when all tests are over."""
    behaviours: dict[str, dict[str, str]] = {}
    yield behaviours
    request.config.stash.setdefault(TABLES, []).append(drawn(behaviours))


@pytest.fixture
def tells(seen: dict[str, dict[str, str]], kind: str) -> Tells:
    def tell(behaviour: str, outcome: str) -> None:
        seen.setdefault(behaviour, {})[kind] = outcome
        assert outcome == documented()[behaviour][kind]

    return tell


@pytest.fixture
def zone(server: DnsServer) -> Zone:
    return zone_at(server.primary, server.tsig, port=server.nameserver_port)


@pytest.fixture
def net_zone(server: DnsServer) -> Zone:
    return zone_at(server.primary, server.tsig, "example.net.test", server.nameserver_port)


@pytest.fixture
def challenges(zones: Zones) -> Challenges:
    return Challenges(zones, Exchange())


@pytest.fixture
def hand(server: DnsServer) -> Hand:
    return Hand.at(server)


@pytest.fixture
def eyes(server: DnsServer) -> Eyes:
    return Eyes(server)
