"""Many callers at once for `test_joining`, and exchanges that note what they are asked to send."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import dns.message
import dns.opcode

from gateway.contract import DnsRecord
from gateway.dns.exchange import Exchange, Limits, Over
from gateway.dns.outcome import Outcome, OutcomeKind
from gateway.dns.publisher import Publisher
from gateway.dns.reading import Reply
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.update import Update
from gateway.dns.zones import Endpoint, Zone, Zones
from tests.integration.dns.conftest import (
    MARKERS,
    V4,
    Caller,
    owner_of,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.servers import (
    framed,
    opcode_of,
    tcp_exchange,
    tcp_server,
    udp_exchange,
    udp_server,
)
from tests.integration.dns.test_races import FOREIGN

NAMES = 40
CREATED, CONFLICT = OutcomeKind.CREATED, OutcomeKind.CONFLICT
FAILED, UNAVAILABLE = OutcomeKind.FAILED, OutcomeKind.UNAVAILABLE


class Noting(Exchange):
    """Notes which names each update with changes has, and each query."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self.updates: list[frozenset[str]] = []
        self.queries: list[str] = []
        self.has_begun = asyncio.Event()

    async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        if isinstance(request, Update) and request.changes:
            names = [change.name.to_text(omit_final_dot=True) for change in request.changes]
            # An address and its marker, to add or to remove or both: the same of each name.
            assert len({names.count(name) for name in names}) == 1
            self.updates.append(frozenset(names))
            self.has_begun.set()
        if not request.is_update:
            self.queries.append(request.name.to_text(omit_final_dot=True))
        return await super().ask(peer, request, over=over, deadline=deadline)

    @property
    def joined(self) -> list[frozenset[str]]:
        return [names for names in self.updates if len(names) > 1]


class Taking(Noting):
    """Somebody else takes the names in `taken` right before the first update is sent."""

    def __init__(self, hand: Hand, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self._hand = hand
        self.taken: list[str] = []

    async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        if isinstance(request, Update) and request.changes and not self.updates:
            self._hand.add(*(f"{name} {FOREIGN}" for name in self.taken))
        return await super().ask(peer, request, over=over, deadline=deadline)


def callers(exchange: Exchange, zone: Zone, stem: str, count: int = NAMES) -> list[Caller]:
    publisher = Publisher(Zones([zone]), MARKERS, exchange)
    hostnames = [f"{stem}-{n}.{zone.name}" for n in range(count)]
    return [Caller(publisher, owner_of(hostname)) for hostname in hostnames]


@asynccontextmanager
async def forgetful_line(
    server: tuple[str, int], is_lost: Callable[[int], bool]
) -> AsyncIterator[Endpoint]:
    """A line to a real server that loses the answers to some updates, counted from 1."""
    updates = 0

    def loses(wire: bytes) -> bool:
        nonlocal updates
        updates += opcode_of(wire) == dns.opcode.UPDATE
        return opcode_of(wire) == dns.opcode.UPDATE and is_lost(updates)

    async def serve(wire: bytes, answer: Callable[[bytes], None]) -> None:
        is_one_lost, reply = loses(wire), await udp_exchange(server, wire)
        if not is_one_lost:
            answer(reply)

    async def serve_tcp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        message = await framed(reader)
        is_one_lost, reply = loses(message[2:]), await tcp_exchange(server, message)
        if not is_one_lost:
            writer.write(reply)
            await writer.drain()

    async with udp_server(serve) as endpoint, tcp_server(serve_tcp, endpoint.port):
        yield endpoint


async def publish_all(some: Sequence[Caller], record: DnsRecord = V4) -> list[Outcome]:
    return await asyncio.gather(*(each.publish(record) for each in some))


def kinds(outcomes: Sequence[Outcome]) -> set[OutcomeKind]:
    return {outcome.kind for outcome in outcomes}
