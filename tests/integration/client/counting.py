"""A relay in front of a real gateway that counts the connections made to it, and their bytes.

Used by the tests of this folder. Changes nothing of what goes through.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.lab.ports import LOOPBACK

_CHUNK_BYTES = 65_536


@dataclass
class Counted:
    """The relay's address, and how many connections were made and bytes sent to it so far."""

    url: str
    connections: int = 0
    sent_bytes: int = 0


@asynccontextmanager
async def counted_connections(gateway_port: int) -> AsyncIterator[Counted]:
    """Relay to the gateway at this port of the loopback within the block."""
    counted = Counted("")
    running: set[asyncio.Task[None]] = set()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        counted.connections += 1
        try:
            gateway_reader, gateway_writer = await asyncio.open_connection(LOOPBACK, gateway_port)
        except ConnectionError:  # the gateway is down
            writer.close()
            return
        await asyncio.gather(
            _pump(reader, gateway_writer, count), _pump(gateway_reader, writer, lambda _: None)
        )

    def count(more: int) -> None:
        counted.sent_bytes += more

    server = await asyncio.start_server(relay, LOOPBACK, 0)
    counted.url = f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
    try:
        yield counted
    finally:
        server.close()
        # The clients have closed their connections by now, which ends each of these.
        await asyncio.gather(*running)


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tell: Callable[[int], None]
) -> None:
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
            tell(len(chunk))
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
