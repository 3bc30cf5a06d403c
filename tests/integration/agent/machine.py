"""A machine with an agent: its configuration, its files, and the agent run in several ways.

Responsible for: an `agent.toml` as an operator writes it, runs of the command in processes of their
own, and runs in this process where a test needs another clock or shorter pauses. Used by the tests
of this folder.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gateway.agent.clocks import Clocks, Pace
from gateway.agent.config import AgentSettings, load_agent_settings
from gateway.agent.once import keep_once
from gateway.agent.service import serve
from tests.integration.service.calling import Ownership
from tests.lab.forks import Command, run_command
from tests.lab.liar import Answer, response
from tests.lab.process import read_until

LIMIT_SECONDS = 30.0
ADDRESS = "198.51.100.85"

QUICK = Pace(
    first_pause_ms=50,
    first_hook_pause_ms=50,
    look_ms=50,
    call_seconds=0.3,
    hook_grace_seconds=0.1,
)
"""As an agent that a test watches goes on."""


@dataclass(frozen=True)
class Ran:
    """What a run of `--once` came to."""

    code: int
    said: tuple[str, ...]
    complained: tuple[str, ...]

    @property
    def complaint(self) -> str:
        return "\n".join(self.complained)


class Machine:
    """One hostname's machine; `url` is the gateway that its configuration names."""

    def __init__(self, folder: Path, ownership: Ownership, url: str) -> None:
        self.folder = folder
        self.ownership = ownership
        self.hostname = ownership.hostname
        self.config = folder / "agent.toml"
        self.state = folder / "state"
        self.live = self.state / "certificates" / "live" / self.hostname
        self.archive = self.state / "certificates" / "archive" / self.hostname
        self.memory_file = self.state / "state" / f"{self.hostname}.json"
        self.token_file = folder / "token"
        self.hook_log = folder / "hook.log"
        self.url = url
        self.give_token(ownership.caller.token or "")

    def give_token(self, token: str) -> None:
        self.token_file.touch(0o600)
        self.token_file.write_text(token)

    def configure(
        self,
        *,
        record: Mapping[str, Any] | None = None,
        certificate: Mapping[str, Any] | None = None,
        **top: Any,
    ) -> None:
        """Write `agent.toml` with these tables, and at the top what else is given."""
        values = {"state_dir": str(self.state), **top}
        gateway = {"url": self.url, "token_file": str(self.token_file)}
        owner = {"app_id": self.ownership.app_id, "hostname": self.hostname}
        parts = [
            _table("", values),
            _table("[gateway]", gateway),
            _table("[[ownership]]", owner),
        ]
        if record is not None:
            parts.append(_table("[ownership.record]", record))
        if certificate is not None:
            parts.append(_table("[ownership.certificate]", certificate))
        self.config.write_text("\n".join(parts))

    def configure_certificate(self, script: str | None = None) -> None:
        """The certificate alone, with a hook that is this script, a line in the log else."""
        logs = f'echo "$RENEWED_DOMAINS $RENEWED_LINEAGE" >> {self.hook_log}'
        self.configure(certificate={"deploy_hook": logs if script is None else script})

    @property
    def settings(self) -> AgentSettings:
        return load_agent_settings(self.config, os.environ)

    def once(self, *options: str) -> Ran:
        """`gateway agent --once` in a process of its own."""
        return self.run("--once", *options)

    def run(self, *options: str) -> Ran:
        """`gateway agent` with these options and arguments, to its end."""
        command = ["agent", "--config", str(self.config), *options]
        ended = run_command(command, os.environ, LIMIT_SECONDS)
        said, complained = (tuple(text.splitlines()) for text in (ended.stdout, ended.stderr))
        return Ran(ended.returncode, said, complained)

    @contextlib.contextmanager
    def started(self, *options: str, **environ: str) -> Iterator["Agent"]:
        """`gateway agent` in a process of its own, which goes on until the block ends."""
        command = ["agent", "--config", str(self.config), *options]
        agent = Agent(Command(command, {**os.environ, **environ}))
        try:
            yield agent
        finally:
            agent.end()

    async def once_here(self, clocks: Clocks | None = None, timeout_seconds: float = 20.0) -> Ran:
        """`--once` in this process, by these clocks."""
        said: list[str] = []
        complained: list[str] = []
        settings = self.settings
        code = await keep_once(
            settings, clocks or Clocks(), timeout_seconds, said.append, complained.append
        )
        return Ran(code, tuple(said), tuple(complained))

    @contextlib.asynccontextmanager
    async def running_here(self, clocks: Clocks | None = None) -> AsyncIterator[None]:
        """The agent that stays, in this process, for as long as the block takes."""
        quick = replace(clocks or Clocks(), pace=QUICK)
        running = asyncio.create_task(serve(self.settings, {}, quick, _held))
        try:
            yield
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.wait({running})

    def status(self) -> dict[str, Any]:
        """The one hostname's part of `gateway agent status --json`."""
        shown = json.loads("\n".join(self.run("status", "--json").said))
        ownership: dict[str, Any] = shown["ownerships"][0]
        return ownership

    def remembered(self) -> dict[str, Any]:
        """What the agent has written down; nothing before it has."""
        try:
            memory: dict[str, Any] = json.loads(self.memory_file.read_text())
        except FileNotFoundError:
            return {}
        return memory

    def forget(self) -> None:
        """Lose what the agent remembers, so that it asks the gateway at its next start."""
        self.memory_file.unlink(missing_ok=True)

    def served(self) -> tuple[str, str]:
        """The chain and the key that a server would read now; empty before there are any."""
        try:
            return (self.live / "chain.pem").read_text(), (self.live / "privkey.pem").read_text()
        except FileNotFoundError:
            return "", ""

    def certificates(self) -> dict[str, str]:
        """Every name below the certificates' folder, with what a link leads to or a file holds."""
        return {
            str(path): str(path.readlink()) if path.is_symlink() else path.read_text()
            for path in sorted((self.state / "certificates").rglob("*"))
            if (path.is_symlink() or path.is_file()) and path.suffix != ".lock"
        }

    def hooks_run(self) -> list[str]:
        """The lines that the hook has written."""
        return self.hook_log.read_text().splitlines() if self.hook_log.exists() else []

    async def until_served(self, certificate: Mapping[str, Any]) -> None:
        """Wait until exactly this certificate is on disk."""
        wanted = certificate["chainPem"], certificate["privateKeyPem"]
        await until(lambda: self.served() == wanted)


class Agent:
    """An agent in a process of its own."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._ended: subprocess.CompletedProcess[str] | None = None
        self.pid = command.pid

    def tell(self, number: signal.Signals) -> None:
        self._command.send_signal(number)

    def end(self) -> subprocess.CompletedProcess[str]:
        """Tell it to stop; answers how it ended and what it wrote. May be repeated."""
        if self._ended is None:
            self._command.terminate()
            self._ended = self._command.ended(LIMIT_SECONDS)
        return self._ended


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds.

    Raises: TimeoutError.
    """

    async def read() -> bool:
        return bool(condition())

    await read_until(read, bool, LIMIT_SECONDS)


class MovedClock:
    """A clock of the agent that is wrong, or is moved while the agent runs; pauses are true."""

    def __init__(self, ahead_ms: int = 0) -> None:
        self.ahead_ms = ahead_ms

    @property
    def clocks(self) -> Clocks:
        return Clocks(now_ms=lambda: time.time_ns() // 1_000_000 + self.ahead_ms)


def _held() -> None:
    """No test that runs the agent here moves its folders; the lock is not even taken."""


def managed(hostname: str) -> Answer:
    """What a gateway answers that has published the address."""
    return response(
        {
            "status": "managed-created",
            "hostname": hostname,
            "retryAfterMs": None,
            "message": "Done.",
            "record": {"type": "A", "value": ADDRESS, "ttl": 60},
        }
    )


def _table(title: str, values: Mapping[str, Any]) -> str:
    # JSON's texts, numbers, booleans and lists are TOML's as well.
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join([title, *lines, ""])
