"""Makes a DNS server answer at a second loopback address: every message is passed on unchanged.

Responsible for: UDP and TCP from `--listen` to `--to`, both directions.
Must not: read the messages; import anything of the project (it is started by its path).
Called by: `tests.lab.bind`, as a program of its own.

BIND listens on addresses of the machine's interfaces only. The whole of 127.0.0.0/8 may be used on
Linux, but just 127.0.0.1 is an interface's address, and only root could add another.
"""

import argparse
import asyncio
import contextlib
from typing import cast

_REPLY_LIMIT_SECONDS = 10.0
_CHUNK_BYTES = 65536

Address = tuple[str, int]


class _Upstream(asyncio.DatagramProtocol):
    """Waits for the one answer to one datagram."""

    def __init__(self, reply: asyncio.Future[bytes]) -> None:
        self._reply = reply

    def datagram_received(self, data: bytes, addr: Address) -> None:
        del addr  # the socket is connected: only one peer can send
        if not self._reply.done():
            self._reply.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self._reply.done():
            self._reply.set_exception(exc)


class _Listener(asyncio.DatagramProtocol):
    """Passes each datagram on and sends the answer back to whoever asked."""

    def __init__(self, target: Address) -> None:
        self._target = target
        self._transport: asyncio.DatagramTransport | None = None
        self._running: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Python 3.11's own datagram transport is no subclass of the public type.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        task = asyncio.ensure_future(self._pass_on(data, addr))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _pass_on(self, data: bytes, asker: Address) -> None:
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[bytes] = loop.create_future()
        upstream, _ = await loop.create_datagram_endpoint(
            lambda: _Upstream(reply), remote_addr=self._target
        )
        try:
            upstream.sendto(data)
            answer = await asyncio.wait_for(reply, _REPLY_LIMIT_SECONDS)
        except OSError:  # a server that is down or silent stays so for the asker (a timeout too)
            return
        finally:
            upstream.close()
        assert self._transport is not None
        self._transport.sendto(answer, asker)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def _relay_stream(
    target: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        upstream_reader, upstream_writer = await asyncio.open_connection(*target)
    except OSError:
        writer.close()
        return
    await asyncio.gather(_pump(reader, upstream_writer), _pump(upstream_reader, writer))
    for side in (writer, upstream_writer):
        with contextlib.suppress(ConnectionError):
            await side.wait_closed()


async def _serve(listen: Address, target: Address) -> None:
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: _Listener(target), local_addr=listen)
    server = await asyncio.start_server(lambda r, w: _relay_stream(target, r, w), *listen)
    async with server:
        await server.serve_forever()


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return host, int(port)


def main() -> None:
    """Run until a signal ends the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", type=_address, required=True)
    parser.add_argument("--to", type=_address, required=True)
    options = parser.parse_args()
    asyncio.run(_serve(options.listen, options.to))


if __name__ == "__main__":
    main()
