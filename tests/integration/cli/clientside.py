"""`gateway client` as a relay would run it: a client, its token in a file, its hostname.

Used by the tests of `gateway client`, against the session's gateway.
"""

import json
import secrets
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.service.calling import Ownership, World
from tests.lab import forks
from tests.lab.lab import Lab

PATH = "/usr/bin:/usr/sbin:/bin"
LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Relay:
    """A client and the variables that its administrator has set."""

    world: World
    ownership: Ownership
    token_file: Path

    @property
    def hostname(self) -> str:
        return self.ownership.hostname

    @property
    def token(self) -> str:
        return self.token_file.read_text().strip()

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PATH": PATH,
            "GATEWAY_URL": self.world.url,
            "GATEWAY_TOKEN_FILE": str(self.token_file),
            "GATEWAY_APP_ID": self.ownership.app_id,
        }

    def run(self, *arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; no output of any has the token."""
        typed = ["client", *map(str, arguments)]
        result = forks.run_command(typed, {**self.environ, **environ}, LIMIT_SECONDS)
        assert self.token not in result.stdout + result.stderr
        return result

    def done(self, *arguments: str | Path) -> str:
        """What a command prints that does what it was asked for, and complains of nothing."""
        result = self.run(*arguments)
        assert (result.returncode, result.stderr) == (0, ""), result
        return result.stdout

    def asked(self, exit_code: int, *arguments: str | Path, **environ: str) -> dict[str, Any]:
        """The JSON of a command that ends with this code."""
        result = self.run(*arguments, "--json", **environ)
        assert (result.returncode, result.stderr) == (exit_code, ""), result
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer

    def failed(self, exit_code: int, *arguments: str | Path, **environ: str) -> str:
        """What a command says on standard error that ends with this code; it prints nothing."""
        result = self.run(*arguments, **environ)
        assert (result.returncode, result.stdout) == (exit_code, ""), result
        return result.stderr


def new_relay(world: World, folder: Path, **changes: object) -> Relay:
    """A new client with a new hostname; `changes` are to its policy."""
    ownership = world.ownership(**changes)
    assert ownership.caller.token is not None
    token_file = folder / f"token-{secrets.token_hex(4)}"
    token_file.touch(mode=0o600)
    token_file.write_text(f"{ownership.caller.token}\n")
    return Relay(world, ownership, token_file)


@contextmanager
def issuing_at_rest(lab: Lab) -> Iterator[Callable[[], None]]:
    """No challenge gets to the secondary within the block, so no issuance gets ahead.

    Answers what lets them go on before the end of the block.
    """
    secondary = lab.bind.secondary_process
    secondary.pause()
    try:
        yield secondary.resume
    finally:
        secondary.resume()
