"""What every DNS server of the lab has in common, whichever program it is.

Responsible for the view that tests and the gateway's configuration need: address, zones and keys.
Must not: start anything; `bind`, `knot` and `powerdns` do.
Called by: `tests.lab.gateway`, the tests that run against several kinds of servers.
"""

from typing import Protocol

from tests.lab.bind import Tsig


class DnsServer(Protocol):
    """A running primary.

    `tsig` is the gateway's key: it may update, query and transfer every zone; `hand` belongs to
    another person, who may update and query too. `nameserver_port` is the port of every server
    named in the zones' NS RRsets.
    """

    @property
    def zones(self) -> tuple[str, ...]: ...

    @property
    def primary(self) -> tuple[str, int]: ...

    @property
    def nameserver_port(self) -> int: ...

    @property
    def tsig(self) -> Tsig: ...

    @property
    def hand(self) -> Tsig: ...
