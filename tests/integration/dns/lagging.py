"""A zone whose secondary follows it over a line that may hang. Used by the tests of this folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.dns.zones import Endpoint, Zone
from tests.integration.dns.conftest import zone_at
from tests.integration.dns.lone_bind import LoneBind, lone_bind
from tests.lab.bind import Tsig, is_authoritative, relay_process
from tests.lab.bind_secondary import start_bind_secondary
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import Process

NAME = "parent.test"


@dataclass(frozen=True)
class _Followed:
    """What a secondary is to follow."""

    zones: tuple[str, ...]
    primary: tuple[str, int]
    tsig: Tsig
    nameserver_port: int = 53

    @property
    def hand(self) -> Tsig:
        """Nobody else has a key."""
        return self.tsig


@dataclass(frozen=True)
class Followed:
    """The zone `NAME` with both servers. While `line` is paused the secondary has the old zone."""

    zone: Zone
    primary: LoneBind
    line: Process


@contextmanager
def followed_over_a_line(folder: Path, records: str = "") -> Iterator[Followed]:
    """The zone with these lines of a zone file; its primary says each change to the secondary."""
    listen, line_address = (LOOPBACK, free_port()), (LOOPBACK, free_port())
    permission = 'allow-update { key "gateway"; }; notify explicit; notify-delay 0; '
    permission += f"also-notify {{ {listen[0]} port {listen[1]}; }};"
    with lone_bind(folder, {NAME: records}, permission=permission) as primary:
        line = relay_process(folder, "line", line_address, primary.primary)
        line.start(lambda: is_authoritative(line_address, NAME))
        own_folder = folder / "secondary"
        own_folder.mkdir()
        followed = _Followed((NAME,), line_address, primary.tsig)
        secondary = start_bind_secondary(own_folder, followed, listen)
        servers = (Endpoint(*primary.primary), Endpoint(*listen))
        zone = replace(zone_at(primary.primary, primary.tsig, NAME), servers=servers)
        try:
            yield Followed(zone, primary, line)
        finally:
            line.resume()
            secondary.stop()
            line.kill()
