"""The private Redis of a gateway, and of another one that is killed. Used by the tests here."""

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from redis.asyncio import Redis

from gateway.store.embedded import EmbeddedRedis
from tests.lab.process import read_until

LIMIT_SECONDS = 20.0
SHORT_LIMIT_SECONDS = 0.3

# A gateway that is killed: starts the server, says so, and waits for its end.
OTHER_GATEWAY = textwrap.dedent("""
    import asyncio, sys
    from pathlib import Path
    from gateway.store.embedded import EmbeddedRedis

    async def main():
        await EmbeddedRedis(Path(sys.argv[1])).start()
        print("started", flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())
""")

Embed = Callable[[], EmbeddedRedis]


def client_of(embedded: EmbeddedRedis) -> Redis:
    return Redis.from_url(embedded.url, decode_responses=True, protocol=2)


def pid_of(state_dir: Path) -> int:
    return int((state_dir / "redis" / "redis.pid").read_text())


@contextmanager
def other_gateway(state_dir: Path) -> Iterator[None]:
    """Another process that has started the server; it is killed at the end."""
    command = [sys.executable, "-c", OTHER_GATEWAY, str(state_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"started\n"
            yield
        finally:
            process.kill()


def kill_other_gateway(state_dir: Path) -> int:
    """Leave a server behind; returns its process id."""
    with other_gateway(state_dir):
        pass
    return pid_of(state_dir)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be reaped does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


async def until_restarted(state_dir: Path, embedded: EmbeddedRedis, old_pid: int) -> None:
    async def restarted() -> bool:
        try:
            reader, writer = await asyncio.open_unix_connection(embedded.socket_path)
        except OSError:
            return False
        try:
            writer.write(b"PING\r\n")
            return await reader.readline() == b"+PONG\r\n" and pid_of(state_dir) != old_pid
        except OSError:
            return False
        finally:
            writer.close()

    await read_until(restarted, bool, LIMIT_SECONDS)
