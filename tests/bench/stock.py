"""Which holdings a bench has: names and values by number, so that nobody has to keep them. Pure.

Called by `stocking`, which makes them, and by `lanes`, which call for them.
"""

import ipaddress
from dataclasses import dataclass

from tests.lab.bind import ZONES

APP_ID = "bench"
TTL = 300
ALLOWED = ("10.0.0.0/8", "172.16.0.0/12")
"""The first prefix is what is stocked, the second what records are replaced with."""

_FIRST_STOCKED = int(ipaddress.IPv4Address("10.0.0.0"))
_FIRST_OTHER = int(ipaddress.IPv4Address("172.16.0.0"))
_OTHERS = 1 << 20

MOST_HOLDINGS = 1_000_000
_HOLDINGS_EACH = 1_000
_FEWEST_CLIENTS = 4


@dataclass(frozen=True, slots=True)
class Stock:
    """`holdings` hostnames, each with a record and a certificate, spread evenly over clients."""

    holdings: int

    @property
    def clients(self) -> int:
        """How many clients there are: one for a thousand hostnames, and a few at the least."""
        return min(self.holdings, max(_FEWEST_CLIENTS, self.holdings // _HOLDINGS_EACH))

    def client_of(self, number: int) -> int:
        """The number of the client that holds this hostname."""
        return number % self.clients

    def hostname(self, number: int) -> str:
        """The hostname of this number."""
        return f"h{number}.{suffix(self.client_of(number))}"


def client_id(client: int) -> str:
    """The id of the client of this number."""
    return f"bench-{client}"


def zone_of(client: int) -> str:
    """The zone of a client's hostnames; the zones take turns."""
    return ZONES[client % len(ZONES)]


def suffix(client: int) -> str:
    """What a client's hostnames end with."""
    return f"c{client}.{zone_of(client)}"


def address(number: int) -> str:
    """The address that a hostname is stocked with."""
    return str(ipaddress.IPv4Address(_FIRST_STOCKED + number))


def other_address(number: int) -> str:
    """An address that no hostname is stocked with; numbers count round."""
    return str(ipaddress.IPv4Address(_FIRST_OTHER + number % _OTHERS))
