"""What a DNS server answers is counted by zone and outcome, and no server makes up outcomes."""

import asyncio
from collections.abc import Callable

import dns.message
import pytest
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway import measures
from gateway.dns.errors import NoReply, Unreachable
from gateway.dns.exchange import Exchange, Limits, Over
from gateway.dns.names import to_name
from gateway.dns.questions import make_query
from gateway.dns.reading import Reply
from gateway.dns.replies import Peer
from gateway.dns.zones import Endpoint
from tests.integration.dns.servers import refusal, udp_server
from tests.lab.ports import LOOPBACK, free_port

SOON = Limits(udp_seconds=0.1, connect_seconds=0.1, tcp_seconds=0.1)


def counted(zone: str, outcome: str) -> float:
    labels = {"zone": zone, "kind": "query", "outcome": outcome}
    return measures.REGISTRY.get_sample_value("gateway_dns_exchanges_total", labels) or 0


def timed(zone: str) -> float:
    labels = {"zone": zone, "kind": "query"}
    return measures.REGISTRY.get_sample_value("gateway_dns_exchange_seconds_count", labels) or 0


async def ask(endpoint: Endpoint, zone: str, over: Over = Over.UDP) -> Reply:
    query = make_query(to_name(zone), RdataType.SOA)
    deadline = asyncio.get_running_loop().time() + 5
    return await Exchange(SOON).ask(Peer(endpoint, zone), query, over=over, deadline=deadline)


@pytest.mark.parametrize(
    ("rcode", "outcome"), [(3, "NXDOMAIN"), (5, "REFUSED"), (12, "OTHER"), (15, "OTHER")]
)
async def test_rcode_is_counted_by_its_name_and_without_one_as_other(
    fresh_label: str, rcode: int, outcome: str
) -> None:
    async def serve(wire: bytes, answer: Callable[[bytes], None]) -> None:
        answer(refusal(dns.message.from_wire(wire), Rcode.make(rcode)).to_wire())

    async with udp_server(serve) as endpoint:
        await ask(endpoint, fresh_label)
    assert counted(fresh_label, outcome) == 1
    assert timed(fresh_label) == 1


async def test_refused_connection_is_counted_as_unreachable(fresh_label: str) -> None:
    with pytest.raises(Unreachable):
        await ask(Endpoint(LOOPBACK, free_port()), fresh_label, Over.TCP)
    assert counted(fresh_label, "Unreachable") == 1


async def test_silence_is_counted_as_no_reply(fresh_label: str) -> None:
    async def say_nothing(_: bytes, __: Callable[[bytes], None]) -> None:
        return

    async with udp_server(say_nothing) as endpoint:
        with pytest.raises(NoReply):
            await ask(endpoint, fresh_label)
    assert counted(fresh_label, "NoReply") == 1
    assert timed(fresh_label) == 1
