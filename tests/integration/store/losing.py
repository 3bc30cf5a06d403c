"""A Redis whose answers are lost on their way, when a test says so.

For tests of what is sent once more.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tests.lab.redis import RedisProcess


class Losing:
    """The way to a Redis that carries out what it is sent, and whose answers to it are lost.

    Where `words` were sent the connection ends instead, three times: for a command, for its second
    try, and once more.
    """

    def __init__(self, server: RedisProcess, words: bytes) -> None:
        self.url = ""
        self.is_over = asyncio.Event()
        self._server = server
        self._words = words
        self._left = 3

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, to_server = await asyncio.open_connection("127.0.0.1", self._server.port)
        asked = bytearray()

        async def pass_on() -> None:
            while data := await reader.read(1 << 16):
                asked.extend(data)
                to_server.write(data)
            to_server.close()

        passing = asyncio.create_task(pass_on())
        with contextlib.closing(writer), contextlib.closing(to_server):
            while answer := await upstream.read(1 << 16):
                if self._left and self._words in asked:
                    self._left -= 1
                    break
                asked.clear()
                writer.write(answer)
        passing.cancel()
        if self._left == 0:
            self.is_over.set()


@contextlib.asynccontextmanager
async def losing_answers(server: RedisProcess, words: bytes = b"EVAL") -> AsyncIterator[Losing]:
    losing = Losing(server, words)
    listening = await asyncio.start_server(losing.serve, "127.0.0.1", 0)
    async with listening:
        losing.url = f"redis://127.0.0.1:{listening.sockets[0].getsockname()[1]}/0"
        yield losing
