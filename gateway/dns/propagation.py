"""Have all servers of a zone got a challenge? Asked as the CA will ask: unsigned, each by itself.

Responsible for one look at all servers at once, each bounded, none waiting for another. Must not
poll: when to look again is the caller's business. Called by `certificates`.
"""

import asyncio
from collections.abc import Callable
from enum import Enum

import dns.flags
import dns.message
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway.dns.challenges import ChallengeTarget
from gateway.dns.errors import DnsFault, NoRoute, ReplyTruncated
from gateway.dns.exchange import Exchange, Over
from gateway.dns.names import to_name
from gateway.dns.nameservers import NameServer, name_servers
from gateway.dns.questions import make_query
from gateway.dns.records import TXT
from gateway.dns.replies import Peer
from gateway.dns.zones import Endpoint, Zone

SERVER_SECONDS = 1.0
NAME_SERVERS_KEPT_SECONDS = 60.0


class _Sight(Enum):
    SEEN = "the value is there"
    MISSING = "no answer, or one without the value"
    NO_ROUTE = "this machine can't ask there"


class Propagation:
    """Looks; remembers a zone's servers for a minute. `clock` gives seconds that never go back."""

    def __init__(self, exchange: Exchange, clock: Callable[[], float]) -> None:
        self._exchange = exchange
        self._clock = clock
        self._kept: dict[Zone, tuple[float, tuple[NameServer, ...]]] = {}

    async def missing_servers(
        self, target: ChallengeTarget, value: str, deadline: float
    ) -> tuple[str, ...]:
        """The servers (`host:port`) that don't answer the value with authority yet; () is done.

        A server with several addresses is there when all of them answer that this machine has a
        route to. `deadline` is a loop time.
        Raises: DnsFault when the zone's servers can't be found out.
        """
        servers = await self._servers(target.zone, deadline)
        sights = await asyncio.gather(
            *(self._look_at(server, target, value, deadline) for server in servers)
        )
        return tuple(label for labels in sights for label in labels)

    async def _servers(self, zone: Zone, deadline: float) -> tuple[NameServer, ...]:
        now = self._clock()
        until, servers = self._kept.get(zone, (now, ()))
        if now >= until:
            servers = await name_servers(self._exchange, zone, deadline)
            self._kept[zone] = (now + NAME_SERVERS_KEPT_SECONDS, servers)
        return servers

    async def _look_at(
        self, server: NameServer, target: ChallengeTarget, value: str, deadline: float
    ) -> tuple[str, ...]:
        sights = await asyncio.gather(
            *(self._ask(address, target, value, deadline) for address in server.addresses)
        )
        if all(sight is _Sight.NO_ROUTE for sight in sights):
            return (server.label,)
        return tuple(
            str(address)
            for address, sight in zip(server.addresses, sights, strict=True)
            if sight is _Sight.MISSING
        )

    async def _ask(
        self, address: Endpoint, target: ChallengeTarget, value: str, deadline: float
    ) -> _Sight:
        peer = Peer(address, target.zone.name)
        query = make_query(to_name(target.name), TXT)
        until = min(deadline, asyncio.get_running_loop().time() + SERVER_SECONDS)
        try:
            try:
                reply = await self._exchange.ask(peer, query, over=Over.UDP, deadline=until)
            except ReplyTruncated:
                reply = await self._exchange.ask(peer, query, over=Over.TCP, deadline=until)
        except NoRoute:
            return _Sight.NO_ROUTE
        except DnsFault:
            return _Sight.MISSING
        return _Sight.SEEN if _has_value(reply, target, value) else _Sight.MISSING


def _has_value(reply: dns.message.Message, target: ChallengeTarget, value: str) -> bool:
    if reply.rcode() != Rcode.NOERROR or not reply.flags & dns.flags.AA:
        return False
    name, wanted = to_name(target.name), value.encode("ascii")
    return any(
        b"".join(rdata.strings) == wanted
        for rrset in reply.answer
        if rrset.rdtype == RdataType.TXT and rrset.name == name
        for rdata in rrset
    )
