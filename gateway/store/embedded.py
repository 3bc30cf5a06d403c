"""The private Redis of a gateway that was given no other: `redis.url = "embedded"`.

Responsible for one `redis-server` per state directory: started when needed, on a Unix socket that
only its user can reach, without a TCP port, losing nothing that it acknowledged (append-only file,
fsync on every write). Restarted when it dies. Must not: know a key, or hold the connections that
the gateway works with; `store.connection` opens those at `url`. Called by `gateway.wiring` and by
the commands of `gateway.cli`.

Many processes, one server. Everybody who needs the server (`gateway serve`, a worker beside it, a
command on the side) uses this class; two locks keep them apart, both released by the kernel when
their holder dies, however it dies:

- `owner.lock`: whoever holds it starts the server, restarts it and shuts it down in the end. When
  an owner leaves, the next one to miss the server takes over.
- `server.lock`: inherited by `redis-server` itself. As long as one lives on this folder, answering
  or not, no second one is started on the same files.

A server outlives a gateway that is killed, and the next gateway adopts it. The alternative, a
server that dies with its parent (PR_SET_PDEATHSIG), would lose nothing either, but it would take
the database away from the other processes for as long as the restart takes, its signal follows the
parent's *thread*, and setting it runs Python between fork and exec, which is unsafe beside
threads. The price is that an orphan stays behind when no gateway ever comes back: idle, on a socket
in a folder that only its user can open; `redis.pid` beside it has its process id.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import math
import os
import shutil
from enum import Enum
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM: Final = "redis-server"
START_LIMIT_SECONDS: Final = 20.0
SILENCE_LIMIT_SECONDS: Final = 3.0
"""How long a command waits for a server that takes its connections and answers none."""

STOP_SECONDS: Final = 10.0

# `sun_path` has 108 bytes with the terminating zero (unix(7)).
_MAX_SOCKET_PATH_BYTES: Final = 107
_ANSWER_LIMIT_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.02
_STEADY_SECONDS: Final = 5.0  # a server that lived this long is restarted without delay
_SHORTEST_RESTART_DELAY_SECONDS: Final = 0.1
_LONGEST_RESTART_DELAY_SECONDS: Final = 5.0
_MAX_LOG_TAIL_BYTES: Final = 4096
_SILENCE: Final = "no answer"

# What can be set while it runs, so that an adopted server is like a new one.
_DURABLE: Final = {
    "appendonly": "yes",
    "appendfsync": "always",
    "save": "",
    "maxmemory-policy": "noeviction",
}

_log = logging.getLogger(__name__)


class EmbeddedRedisFault(Exception):
    """The private Redis cannot be had; the text is one sentence for the operator."""


class StateDirWrong(EmbeddedRedisFault):
    """`state_dir` is none for this user or this system: the same start would come to the same."""


class _Answer(Enum):
    READY = "ready"
    LOADING = "loading"
    SILENCE = "silence"
    NONE = "none"


class EmbeddedRedis:
    """The Redis of one state directory, shared by all processes that use this directory.

    `start` or `connect_or_start` first, `stop` at the end, each once; then connect to `url`.
    """

    def __init__(self, state_dir: Path) -> None:
        """`state_dir` is created when it is missing, with everything in `<state_dir>/redis`."""
        self.folder = state_dir.absolute() / "redis"
        self.socket_path = self.folder / "redis.sock"
        self.log_path = self.folder / "redis.log"
        self._owner_lock: int | None = None
        self._child: asyncio.subprocess.Process | None = None
        self._supervisor: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where to connect: `unix://` and the absolute path, percent-encoded."""
        return f"unix://{quote(str(self.socket_path))}"

    @property
    def is_owner(self) -> bool:
        """Whether this process looks after the server."""
        return self._owner_lock is not None

    async def start(self) -> None:
        """Find or start the server, and keep it alive until `stop`: for long-lived processes.

        Raises EmbeddedRedisFault.
        """
        await self._first_obtain()
        self._supervisor = asyncio.create_task(self._supervise(), name="embedded-redis")

    async def connect_or_start(self) -> None:
        """Use the server that runs, or start one until `stop`: for commands that end soon.

        Raises EmbeddedRedisFault.
        """
        if await self._ask() is not _Answer.READY:
            await self._first_obtain(SILENCE_LIMIT_SECONDS)

    async def stop(self, within_seconds: float = STOP_SECONDS) -> None:
        """Shut the server down unless another process looks after it. May be repeated.

        One that was started here and has not ended within that time is killed.
        """
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait({self._supervisor})
            self._supervisor = None
            # The owner may have been killed: then the last one to leave puts out the light.
            self._take_ownership()
        if self._owner_lock is not None:
            await self._shut_down(within_seconds)
        self._release_ownership()

    async def _first_obtain(self, silence_seconds: float = math.inf) -> None:
        self._prepare_folder()
        try:
            await self._obtain(silence_seconds)
        except BaseException:
            if self._child is not None:
                await self._shut_down(STOP_SECONDS)
            self._release_ownership()
            raise

    def _prepare_folder(self) -> None:
        length = len(os.fsencode(self.socket_path))
        if length > _MAX_SOCKET_PATH_BYTES:
            raise StateDirWrong(
                f"state_dir is too long: the socket {self.socket_path} would have {length} bytes,"
                f" and the system allows {_MAX_SOCKET_PATH_BYTES}"
            )
        try:
            self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            owner_uid = self.folder.stat().st_uid
            if owner_uid == os.geteuid():
                self.folder.chmod(0o700)
        except OSError as error:
            raise EmbeddedRedisFault(
                f"state_dir cannot be used: {error.strerror}: {self.folder}"
            ) from error
        if owner_uid != os.geteuid():
            # Above all root must not: the service could not write to what root's server leaves.
            raise StateDirWrong(
                f"only the owner of {self.folder} (user id {owner_uid}) can start its redis-server:"
                " run this as that user, or while the gateway runs"
            )

    async def _obtain(self, silence_seconds: float = math.inf) -> None:
        """Return once a server answers: another's, a left-over one, or one started here."""
        loop = asyncio.get_running_loop()
        end = loop.time() + START_LIMIT_SECONDS
        silence_end = loop.time() + silence_seconds
        while True:
            started_here = self._child is not None
            self._take_ownership()
            answer = await self._ask()
            if answer is _Answer.READY:
                if self.is_owner and not started_here:
                    await self._make_durable()
                return
            if answer is not _Answer.SILENCE:
                silence_end = loop.time() + silence_seconds
            if answer is _Answer.LOADING:  # however long its file takes it
                end = loop.time() + START_LIMIT_SECONDS
            elif loop.time() > silence_end:
                raise EmbeddedRedisFault(
                    f"the redis-server on {self.socket_path} takes connections and answers none: if"
                    f" it hangs, kill the process in {self.folder / 'redis.pid'}, and a new one is"
                    " started"
                )
            elif loop.time() > end:
                raise EmbeddedRedisFault(f"redis-server does not answer; see {self.log_path}")
            elif self.is_owner:
                await self._start_unless_alive()
            await asyncio.sleep(_POLL_SECONDS)

    def _take_ownership(self) -> None:
        if self._owner_lock is None:
            self._owner_lock = _try_lock(self.folder / "owner.lock")

    def _release_ownership(self) -> None:
        if self._owner_lock is not None:
            os.close(self._owner_lock)
            self._owner_lock = None

    async def _ask(self) -> _Answer:
        said = await self._say("PING")
        if said == "+PONG":
            return _Answer.READY
        if said == _SILENCE:
            return _Answer.SILENCE
        return _Answer.LOADING if said.startswith("-LOADING") else _Answer.NONE

    async def _say(self, command: str, within_seconds: float = math.inf) -> str:
        """Send an inline command; the first line of the answer, nothing when nobody is there.

        By hand, since redis-py 8.1 on Python 3.11 swallows cancellations (it writes under
        `asyncio.wait_for`) and leaves connections open when a server dies in the handshake.
        """
        try:
            async with asyncio.timeout(min(within_seconds, _ANSWER_LIMIT_SECONDS)):
                reader, writer = await asyncio.open_unix_connection(self.socket_path)
                try:
                    writer.write(f"{command}\r\n".encode())
                    line = await reader.readline()
                finally:
                    writer.close()
        except TimeoutError:
            return _SILENCE
        except OSError:  # nobody there, or a reset
            return ""
        return line.decode(errors="replace").strip()

    async def _make_durable(self) -> None:
        for name, value in _DURABLE.items():
            said = await self._say(f'CONFIG SET {name} "{value}"')
            if said != "+OK":
                raise EmbeddedRedisFault(f"the running redis-server takes no {name}: {said}")

    async def _start_unless_alive(self) -> None:
        if self._child is not None:
            if self._child.returncode is not None:
                exit_code, self._child = self._child.returncode, None
                raise EmbeddedRedisFault(
                    f"redis-server ended at its start (exit code {exit_code}): {self._last_words()}"
                )
            return
        server_lock = _try_lock(self.folder / "server.lock")
        if server_lock is None:
            return  # one lives that does not answer (yet): two on the same files would spoil them
        try:
            await self._spawn(server_lock)
        finally:
            os.close(server_lock)  # the server keeps its own copy, and so the lock

    async def _spawn(self, server_lock: int) -> None:
        program = shutil.which(PROGRAM)
        if program is None:
            raise EmbeddedRedisFault(
                "redis-server is missing: install the Debian package redis-server, or let redis.url"
                " name a Redis that runs already"
            )
        try:
            with self.log_path.open("ab") as log:  # for faults before it opens the log by itself
                starting = asyncio.create_task(
                    asyncio.create_subprocess_exec(
                        program,
                        *self._arguments(),
                        stdin=asyncio.subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        env={},  # ours may hold secrets
                        pass_fds=(server_lock,),
                        start_new_session=True,  # ^C is for the gateway, which stops the server
                    )
                )
                try:
                    await asyncio.shield(starting)
                finally:
                    # Whoever is told to stop meanwhile has a server to shut down.
                    self._child = await starting
        except OSError as error:
            raise EmbeddedRedisFault(f"redis-server cannot be started: {error}") from error

    def _arguments(self) -> list[str]:
        options = {
            **_DURABLE,
            "port": "0",
            "unixsocket": str(self.socket_path),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "logfile": str(self.log_path),
            "pidfile": str(self.folder / "redis.pid"),
            "daemonize": "no",
        }
        return [word for name, value in options.items() for word in (f"--{name}", value)]

    async def _supervise(self) -> None:
        loop = asyncio.get_running_loop()
        delay_seconds = 0.0
        while True:
            since = loop.time()
            await self._wait_for_end()
            if loop.time() - since > _STEADY_SECONDS:
                delay_seconds = 0.0
            await asyncio.sleep(delay_seconds)
            delay_seconds = min(
                max(2 * delay_seconds, _SHORTEST_RESTART_DELAY_SECONDS),
                _LONGEST_RESTART_DELAY_SECONDS,
            )
            try:
                await self._obtain()
            except EmbeddedRedisFault as fault:
                _log.error("the embedded Redis is down: %s", fault)

    async def _wait_for_end(self) -> None:
        """Return when the server is gone, whoever started it."""
        if self._child is not None:
            exit_code = await self._child.wait()
            self._child = None
            _log.error("the embedded Redis ended (exit code %s): starting it again", exit_code)
            return
        # Somebody else's child: a connection that stays silent ends when the server does.
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_unix_connection(self.socket_path)
            try:
                await reader.read()
            finally:
                writer.close()

    async def _shut_down(self, within_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + within_seconds
        while not self._is_gone():
            left_seconds = end - loop.time()
            if left_seconds <= 0:
                _log.error("the embedded Redis does not end; see %s", self.log_path)
                if self._child is not None:
                    self._child.kill()  # what it acknowledged is on the disk
                break
            # It may be starting, and not listen yet, or go while it answers: ask until it's gone.
            await self._say("SHUTDOWN", left_seconds)
            await asyncio.sleep(_POLL_SECONDS)
        if self._child is not None:
            await self._child.wait()
            self._child = None

    def _is_gone(self) -> bool:
        server_lock = _try_lock(self.folder / "server.lock")
        if server_lock is None:
            return False
        os.close(server_lock)
        return True

    def _last_words(self) -> str:
        with self.log_path.open("rb") as log:
            log.seek(-min(_MAX_LOG_TAIL_BYTES, self.log_path.stat().st_size), os.SEEK_END)
            lines = log.read().decode(errors="replace").splitlines()
        return f"{lines[-1] if lines else 'it said nothing'} ({self.log_path})"


def _try_lock(path: Path) -> int | None:
    """Lock a file without waiting: its descriptor, or None when somebody else holds the lock.

    No program started from here inherits the descriptor, and so the lock, unless it is told to.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise EmbeddedRedisFault(f"state_dir cannot be used: {error.strerror}: {path}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        os.close(descriptor)
        raise EmbeddedRedisFault(f"state_dir takes no locks: {error.strerror}: {path}") from error
    return descriptor
