"""Have all servers of a zone got a challenge? Asked as the CA will ask: unsigned, each by itself.

Responsible for one look at all servers at once, each bounded, none waiting for another, and for
telling those that lag from those that are silent. The line between them is what the CA's resolver
makes of them. An answer with authority that lacks the value is believed, and the validation fails:
such a server lags. What a resolver passes over for the zone's next server is silence: no route, a
refused port, no answer in time, one that can't be read, SERVFAIL, REFUSED, an answer without
authority; and a server whose name has no address.

Must not poll, nor say how long anybody is waited for: that is the caller's business. Called by
`certificates`.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from dns.rcode import Rcode

from gateway.dns.challenges import ChallengeTarget
from gateway.dns.errors import DnsFault, NoRoute, OutOfFiles, ReplyTruncated
from gateway.dns.exchange import Exchange, Over
from gateway.dns.names import to_name
from gateway.dns.nameservers import NameServer, name_servers
from gateway.dns.questions import make_query
from gateway.dns.reading import Reply
from gateway.dns.records import TXT, txt_strings
from gateway.dns.replies import Peer
from gateway.dns.zones import Endpoint, Zone

SERVER_SECONDS = 1.0
NAME_SERVERS_KEPT_SECONDS = 60.0
UNRESOLVED_KEPT_SECONDS = 5.0
"""The same when one of them has no address: the resolver may only have been slow."""

_TELLING = frozenset({Rcode.NOERROR, Rcode.NXDOMAIN})
"""Answers that say what is at the name; any other says that the server can't."""


@dataclass(frozen=True, slots=True)
class Look:
    """What each server answered (`host:port`): the value, one without it, nothing to go by."""

    seen: tuple[str, ...] = ()
    lagging: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


class _Sight(Enum):
    SEEN = "the value is there"
    LAGGING = "an answer with authority, without the value"
    SILENT = "nothing that a resolver would believe"
    NO_ROUTE = "this machine can't ask there"


class Propagation:
    """Looks; remembers a zone's servers for a while. `clock` gives seconds that never go back."""

    def __init__(self, exchange: Exchange, clock: Callable[[], float]) -> None:
        self._exchange = exchange
        self._clock = clock
        self._kept: dict[Zone, tuple[float, tuple[NameServer, ...]]] = {}

    async def look(self, target: ChallengeTarget, value: str, deadline: float) -> Look:
        """Ask every server of the zone once; may be repeated.

        A server with several addresses is there when all of them answer that this machine has a
        route to. `deadline` is a loop time.
        Raises: DnsFault when the zone's servers can't be found out.
        """
        servers = await self._servers(target.zone, deadline)
        sights = await asyncio.gather(
            *(self._look_at(server, target, value, deadline) for server in servers)
        )
        return _as_look([each for of_one in sights for each in of_one])

    async def _servers(self, zone: Zone, deadline: float) -> tuple[NameServer, ...]:
        now = self._clock()
        until, servers = self._kept.get(zone, (now, ()))
        if now >= until:
            servers = await name_servers(self._exchange, zone, deadline)
            is_whole = all(server.addresses for server in servers)
            kept_seconds = NAME_SERVERS_KEPT_SECONDS if is_whole else UNRESOLVED_KEPT_SECONDS
            self._kept[zone] = (now + kept_seconds, servers)
        return servers

    async def _look_at(
        self, server: NameServer, target: ChallengeTarget, value: str, deadline: float
    ) -> list[tuple[str, _Sight]]:
        sights = await asyncio.gather(
            *(self._ask(address, target, value, deadline) for address in server.addresses)
        )
        if all(sight is _Sight.NO_ROUTE for sight in sights):
            return [(server.label, _Sight.SILENT)]
        return [
            (str(address), sight)
            for address, sight in zip(server.addresses, sights, strict=True)
            if sight is not _Sight.NO_ROUTE
        ]

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
        except OutOfFiles:
            raise  # it was never asked
        except NoRoute:
            return _Sight.NO_ROUTE
        except DnsFault:
            return _Sight.SILENT
        if reply.rcode not in _TELLING or not reply.is_authoritative:
            return _Sight.SILENT
        return _Sight.SEEN if _has_value(reply, target, value) else _Sight.LAGGING


def _as_look(sights: Sequence[tuple[str, _Sight]]) -> Look:
    return Look(
        *(
            tuple(label for label, sight in sights if sight is wanted)
            for wanted in (_Sight.SEEN, _Sight.LAGGING, _Sight.SILENT)
        )
    )


def _has_value(reply: Reply, target: ChallengeTarget, value: str) -> bool:
    name, wanted = to_name(target.name), value.encode("ascii")
    return any(
        b"".join(txt_strings(rdata)) == wanted
        for at, rrset in reply.answer
        if rrset.rdtype == TXT and at == name
        for rdata in rrset.rdatas
    )
