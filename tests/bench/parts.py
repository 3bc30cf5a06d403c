"""The parts that calls are made of, asked as often as they answer: Redis and the DNS server.

Measured as calls are: by as many connections, from as many processes. Called by `calls`.
"""

import asyncio
import time
from dataclasses import dataclass

import dns.message
import dns.rdatatype

from tests.bench.forking import forked_pool
from tests.lab.bind import BindPair
from tests.lab.ports import LOOPBACK

_LIMIT_SECONDS = 10.0


@dataclass(frozen=True)
class Part:
    """A server and a message; `is_dns`: over a connection of its own each, as the gateway does."""

    kind: str
    address: tuple[str, int]
    message: bytes
    is_dns: bool


def redis_ping(port: int) -> Part:
    """The least that Redis can be asked."""
    return Part("Redis PING", (LOOPBACK, port), b"PING\r\n", is_dns=False)


def dns_query(bind: BindPair, hostname: str) -> Part:
    """What the gateway asks to see a name: a signed ANY query over TCP."""
    question = dns.message.make_query(hostname, dns.rdatatype.ANY)
    question.use_tsig(bind.tsig.key())
    message = question.to_wire()
    framed = len(message).to_bytes(2, "big") + message
    return Part("BIND query, signed", bind.primary, framed, is_dns=True)


def ask(part: Part, seconds: float, processes: int, connections: int) -> list[float]:
    """How long each answer took, in seconds."""
    with forked_pool(processes) as pool:
        arguments = [(part, seconds, connections // processes)] * processes
        return [each for some in pool.starmap(_ask, arguments) for each in some]


def _ask(part: Part, seconds: float, connections: int) -> list[float]:
    return asyncio.run(_ask_all(part, seconds, connections))


async def _ask_all(part: Part, seconds: float, connections: int) -> list[float]:
    took: list[float] = []
    end = time.monotonic() + seconds
    one = _query if part.is_dns else _ping
    async with asyncio.timeout(seconds + _LIMIT_SECONDS):
        await asyncio.gather(*(one(part, end, took) for _ in range(connections)))
    return took


async def _ping(part: Part, end: float, took: list[float]) -> None:
    reader, writer = await asyncio.open_connection(*part.address)
    while (began := time.monotonic()) < end:
        writer.write(part.message)
        await reader.readuntil(b"\r\n")
        took.append(time.monotonic() - began)
    writer.close()


async def _query(part: Part, end: float, took: list[float]) -> None:
    while (began := time.monotonic()) < end:
        reader, writer = await asyncio.open_connection(*part.address)
        writer.write(part.message)
        size = int.from_bytes(await reader.readexactly(2), "big")
        await reader.readexactly(size)
        writer.close()
        took.append(time.monotonic() - began)
