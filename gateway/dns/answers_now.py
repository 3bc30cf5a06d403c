"""What each server of a zone answers for a hostname at this moment, for a person to compare.

Responsible for asking all at once: every name server of the zone by each of its addresses, unsigned
as the world and `propagation` ask, and every configured primary with the zone's key, as the gateway
asks. One that does not answer is a sentence in its place and holds up nobody. Values are text as in
a zone file: quoted, and every byte that is not printable ASCII escaped, whoever wrote it.

Must not decide what follows, nor change anything. Called by the operator's page.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar

import dns.name
import dns.rcode
from dns.rcode import Rcode

from gateway.contract import DnsRecord
from gateway.contract.names import Hostname
from gateway.dns.errors import DnsFault, NoRoute, ReplyTruncated
from gateway.dns.exchange import Exchange, Over
from gateway.dns.marker import Markers
from gateway.dns.names import to_name
from gateway.dns.nameservers import NameServer, name_servers
from gateway.dns.questions import ask_primary, make_query
from gateway.dns.reading import Reply
from gateway.dns.records import AAAA, CNAME, TXT, A, RRset, address_value, txt_text
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.zones import Endpoint, Zone, Zones

LIMIT_SECONDS: Final = 5.0
SERVER_SECONDS: Final = 2.0
MOST_SERVERS: Final = 13
MOST_ADDRESSES: Final = 4
"""Of one server."""

AT_ONCE: Final = 16
"""Addresses that are asked at a time, each with a question for every type of `_ASKED`."""

MOST_VALUES: Final = 20
MOST_CHARACTERS: Final = 1_024
"""Of one value; what is longer is cut, and says so."""

NO_TIME: Final = "No time was left to ask it."

_ASKED: Final = (A, AAAA, TXT)
_TOLD: Final = (A, AAAA, CNAME, TXT)


class Role(Enum):
    """Why a server is asked, which says how: a primary signed, a name server as by anybody."""

    NAME_SERVER = "name server"
    PRIMARY = "primary"


@dataclass(frozen=True, slots=True)
class ValueSeen:
    """A record's data as in a zone file. `is_own_key`: a marker that names a key of the keyring.

    Whose marker it is, and whether it proves anything, is not looked at.
    """

    text: str
    is_marker: bool = False
    is_own_key: bool = False


@dataclass(frozen=True, slots=True)
class RRsetSeen:
    """The records of one type at the hostname; `more` of them are left out. TTL in seconds."""

    type: str
    ttl: int
    values: tuple[ValueSeen, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What one server answered at one address (`host:port`; None: its name has none).

    `rcode` is that of its answers, None where there was none; `fault` why there was none, or to
    which question, or what else is wrong, in words. `agrees`: whether it serves the address that
    Redis has as published, and no other of its type, with authority; None where none is published,
    or it has not told. `is_silent`: it did not, though it could be asked.
    """

    label: str
    role: Role
    address: str | None
    rcode: str | None = None
    fault: str | None = None
    rrsets: tuple[RRsetSeen, ...] = ()
    agrees: bool | None = None
    is_silent: bool = False

    @property
    def is_faulty(self) -> bool:
        """Whether it has answered, and its answers tell nothing, or not all: `fault` says why."""
        return self.rcode is not None and self.fault is not None


@dataclass(frozen=True, slots=True)
class ZoneAnswers:
    """Every server's answer, the primaries' first. `zone` is None where no configured one holds it.

    `fault`: why the name servers are not known; `more` of them, or of their addresses, were not
    asked.
    """

    zone: str | None
    servers: tuple[ServerAnswer, ...] = ()
    fault: str | None = None
    more: int = 0


@dataclass(frozen=True, slots=True)
class _Sought:
    """What every server is asked about. `published`: what Redis says is published there."""

    zone: Zone
    name: dns.name.Name
    published: DnsRecord | None
    deadline: float


_Told = TypeVar("_Told")
_Ask = Callable[[Request, float], Awaitable[Reply]]
"""Asks one server one question, until a loop time. Raises: DnsFault."""


class AnswersNow:
    """Asks servers; remembers nothing. One serves all visitors at once."""

    def __init__(self, zones: Zones, exchange: Exchange, markers: Markers) -> None:
        self._zones = zones
        self._exchange = exchange
        self._markers = markers
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def of(
        self,
        hostname: Hostname,
        published: DnsRecord | None,
        limit_seconds: float = LIMIT_SECONDS,
    ) -> ZoneAnswers:
        """What each server answers now, within the limit; may be repeated, and never raises.

        `published` is the record that Redis says is published at the hostname.
        """
        zone = self._zones.holding(hostname)
        if zone is None:
            return ZoneAnswers(None)
        deadline = asyncio.get_running_loop().time() + limit_seconds
        sought = _Sought(zone, to_name(hostname), published, deadline)
        of_primaries, (of_servers, fault, more) = await asyncio.gather(
            asyncio.gather(*(self._at_primary(sought, at) for at in zone.at_each_primary())),
            self._at_servers(sought),
        )
        return ZoneAnswers(zone.name, (*of_primaries, *of_servers), fault, more)

    async def _at_primary(self, sought: _Sought, at: Zone) -> ServerAnswer:
        async def ask(query: Request, until: float) -> Reply:
            return await ask_primary(self._exchange, at, query, until)

        label = str(at.primary)
        return await self._answer(sought, label, Role.PRIMARY, at.primary, ask)

    async def _at_servers(self, sought: _Sought) -> tuple[list[ServerAnswer], str | None, int]:
        servers = await self._servers(sought)
        if isinstance(servers, DnsFault):
            return [], servers.detail, 0
        asked = [(each, each.addresses[:MOST_ADDRESSES]) for each in servers[:MOST_SERVERS]]
        of_each = await asyncio.gather(
            *(self._at_server(sought, server, addresses) for server, addresses in asked)
        )
        left_out = len(servers) - len(asked)
        left_out += sum(len(server.addresses) - len(addresses) for server, addresses in asked)
        return [answer for answers in of_each for answer in answers], None, left_out

    async def _servers(self, sought: _Sought) -> tuple[NameServer, ...] | DnsFault:
        """As the first primary tells that does: one that hangs leaves time to ask the servers."""
        until = min(sought.deadline, asyncio.get_running_loop().time() + SERVER_SECONDS)
        told = await asyncio.gather(
            *(
                _or_fault(name_servers, self._exchange, at, until)
                for at in sought.zone.at_each_primary()
            )
        )
        return next((each for each in told if not isinstance(each, DnsFault)), told[0])

    async def _at_server(
        self, sought: _Sought, server: NameServer, addresses: Sequence[Endpoint]
    ) -> list[ServerAnswer]:
        if not addresses:
            fault = "Its name has no address."
            return [ServerAnswer(server.label, Role.NAME_SERVER, None, fault=fault, is_silent=True)]
        return await asyncio.gather(
            *(self._at_address(sought, server.label, address) for address in addresses)
        )

    async def _at_address(self, sought: _Sought, label: str, address: Endpoint) -> ServerAnswer:
        peer = Peer(address, sought.zone.name)

        async def ask(query: Request, until: float) -> Reply:
            try:
                return await self._exchange.ask(peer, query, over=Over.UDP, deadline=until)
            except ReplyTruncated:
                return await self._exchange.ask(peer, query, over=Over.TCP, deadline=until)

        return await self._answer(sought, label, Role.NAME_SERVER, address, ask)

    async def _answer(
        self, sought: _Sought, label: str, role: Role, address: Endpoint, ask: _Ask
    ) -> ServerAnswer:
        """What one server says to all questions at once, when it is its turn."""
        told: list[Reply | DnsFault] = []
        try:
            async with asyncio.timeout_at(sought.deadline), self._turns:
                until = min(sought.deadline, asyncio.get_running_loop().time() + SERVER_SECONDS)
                queries = (make_query(sought.name, rdtype) for rdtype in _ASKED)
                told = await asyncio.gather(*(_or_fault(ask, each, until) for each in queries))
        except TimeoutError:
            return ServerAnswer(label, role, str(address), fault=NO_TIME, is_silent=True)
        replies = [each for each in told if not isinstance(each, DnsFault)]
        faults = [each for each in told if isinstance(each, DnsFault)]
        fault = _wrong(replies, sought.zone)
        if faults:
            fault = _unanswered_words(told) if replies else faults[0].detail
        return ServerAnswer(
            label,
            role,
            str(address),
            _rcode(replies),
            fault,
            tuple(self._seen(rrset) for rrset in _rrsets(sought.name, replies)),
            _agrees(sought, replies, faults),
            is_silent=not replies and not _has_no_route(faults),
        )

    def _seen(self, rrset: RRset) -> RRsetSeen:
        values = []
        for rdata in rrset.rdatas[:MOST_VALUES]:
            text = txt_text(rdata) or ""
            is_marker = Markers.is_marker(text)
            is_own_key = is_marker and self._markers.knows_key_of(text)
            values.append(ValueSeen(_cut(rdata.to_text()), is_marker, is_own_key))
        more = len(rrset.rdatas) - len(values)
        return RRsetSeen(rrset.rdtype.name, rrset.ttl, tuple(values), more)


async def _or_fault(ask: Callable[..., Awaitable[_Told]], *asked: Any) -> _Told | DnsFault:
    try:
        return await ask(*asked)
    except DnsFault as fault:
        return fault


def _rcode(replies: Sequence[Reply]) -> str | None:
    """The one that tells most: of several answers, the first that is an error."""
    rcodes = [reply.rcode for reply in replies]
    telling = [each for each in rcodes if each not in (Rcode.NOERROR, Rcode.NXDOMAIN)]
    return dns.rcode.to_text((telling or rcodes)[0]) if rcodes else None


def _unanswered_words(told: Sequence[Reply | DnsFault]) -> str:
    """What was asked in vain of a server that has answered the rest."""
    asked = zip(_ASKED, told, strict=True)
    vain = {rdtype.name: each.detail for rdtype, each in asked if isinstance(each, DnsFault)}
    return f"It answers the other questions, and not that for {' and '.join(vain)}: " + " ".join(
        dict.fromkeys(vain.values())
    )


def _wrong(replies: Sequence[Reply], zone: Zone) -> str | None:
    rcode = _rcode(replies)
    if rcode not in ("NOERROR", "NXDOMAIN"):
        return f"It answers {rcode}: it tells nobody, or not this machine, what is there."
    if not all(reply.is_authoritative for reply in replies):
        return (
            f"It answers without authority: it does not serve the zone {zone.name}, or the hostname"
            " is delegated away from it."
        )
    return None


def _rrsets(name: dns.name.Name, replies: Iterable[Reply]) -> list[RRset]:
    """What lies at the name itself, each type once; what an alias leads to is left out."""
    found = {
        rrset.rdtype: rrset
        for reply in replies
        for at, rrset in reply.answer
        if at == name and rrset.rdtype in _TOLD
    }
    return [found[rdtype] for rdtype in _TOLD if rdtype in found]


def _agrees(sought: _Sought, replies: Sequence[Reply], faults: Sequence[DnsFault]) -> bool | None:
    published = sought.published
    if published is None or _has_no_route(faults):
        return None
    believed = (reply for reply in replies if reply.is_authoritative)
    is_served = any(
        rrset.rdtype.name == published.type
        and [address_value(rdata) for rdata in rrset.rdatas] == [published.value]
        for rrset in _rrsets(sought.name, believed)
    )
    # A question without an answer may be the one for just this type.
    return None if faults and not is_served else is_served


def _has_no_route(faults: Sequence[DnsFault]) -> bool:
    return any(isinstance(fault, NoRoute) for fault in faults)


def _cut(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]} (cut: {len(text)} characters)"
