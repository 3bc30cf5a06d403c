"""One run of the agent as `gateway agent --once` makes it, and a look at what it left on disk.

Responsible for: a machine's files below one folder, and the agent's own lock and rounds on them,
with a server that has a certificate for it. Must not: know where a run is killed or refused;
`disk_calls` does. Called by: the walks over the agent's files.

What the agent leaves to threads is done in place here: else the order of its calls, by which the
walks count, would differ from run to run.
"""

import asyncio
import gc
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.agent.clocks import HOUR_MS, Clocks
from gateway.agent.config import AgentSettings, load_agent_settings
from gateway.agent.disk import Disk
from gateway.agent.lineage import FileAccess, Lineage
from gateway.agent.lock import agent_lock
from gateway.agent.memory import Memories
from gateway.agent.once import keep_once
from tests.faults.disk_calls import Point, passing

HOSTNAME = "relay.cluster-a.example.com"

LATER_MS = 2 * HOUR_MS
"""So long after a run the next one asks the gateway, though nothing is due."""

_ACCESS = FileAccess(combined=True)
_LIMIT_SECONDS = 30.0


class Files:
    """The agent's files below one folder; `url` is that of its gateway."""

    def __init__(self, root: Path, url: str) -> None:
        self.root = root
        self.url = url
        self.lineage = Lineage(root / "certificates", HOSTNAME, _ACCESS)
        self._memories = Memories(root / "state")

    def run(self, now_ms: int) -> None:
        """Bring everything up to date, at a time that stands still. All must go well."""
        settings, clocks = self._settings(), Clocks(now_ms=lambda: now_ms, jitter=lambda: 0.0)
        complaints: list[str] = []
        with agent_lock(settings.state_dir, settings.certificates_dir), _in_place():
            work = keep_once(settings, clocks, _LIMIT_SECONDS, lambda _: None, complaints.append)
            code = asyncio.run(work)
        assert (code, complaints) == (0, [])

    def _settings(self) -> AgentSettings:
        # It notes for which version it ran.
        hook = f'readlink "$RENEWED_LINEAGE" >> {self.root}/notes'
        config, token = self.root / "agent.toml", self.root / "token"
        token.touch(0o600)
        token.write_text("gwc_token")
        config.write_text(
            f'state_dir = "{self.root}/state"\ncertificates_dir = "{self.root}/certificates"\n'
            f'[gateway]\nurl = "{self.url}"\ntoken_file = "{token}"\n'
            f'[[ownership]]\napp_id = "relay"\nhostname = "{HOSTNAME}"\n'
            f"[ownership.certificate]\ncombined = true\ndeploy_hook = {json.dumps(hook)}\n"
        )
        return load_agent_settings(config, os.environ)

    def copy_to(self, root: Path) -> "Files":
        """The same files, links as links, below another folder."""
        shutil.copytree(self.root, root, symlinks=True)
        return Files(root, self.url)

    def remove(self) -> None:
        shutil.rmtree(self.root)

    @property
    def deployed(self) -> str | None:
        """The version that is remembered as deployed."""
        return self._memories.read(HOSTNAME).memory.deployed_version

    @property
    def hook_runs(self) -> list[str]:
        """The versions that the hook ran for, in order."""
        notes = self.root / "notes"
        return [Path(line).name for line in notes.read_text().split()] if notes.exists() else []

    @property
    def versions(self) -> list[str]:
        """All that is in the archive."""
        archive = self.root / "certificates" / "archive" / HOSTNAME
        return sorted(each.name for each in archive.iterdir()) if archive.exists() else []

    @property
    def unfinished(self) -> list[str]:
        """Every name of something that is being made."""
        return [str(each) for each in self.root.rglob("*") if each.name.startswith(".new-")]

    @property
    def open_keys(self) -> list[str]:
        """Every file with a key that somebody else might read."""
        keys = [*self.root.rglob("privkey.pem"), *self.root.rglob("combined.pem")]
        return [str(each) for each in keys if each.stat().st_mode & 0o077]


def run_to(root: Path, url: str, now_ms: int, point: Point) -> None:
    """A run that is killed at a point; for a process of its own, which need not load the tests."""
    # A fork's collector would otherwise copy all that was loaded before it, to find no garbage.
    gc.freeze()
    with passing(killed_at=point):
        Files(root, url).run(now_ms)


@contextmanager
def _in_place() -> Iterator[None]:
    async def run(disk: Disk, work: Callable[..., object], *arguments: object) -> object:
        del disk
        return work(*arguments)

    before = Disk.run
    setattr(Disk, "run", run)  # noqa: B010 (a method that is assigned to is a fault to mypy)
    try:
        yield
    finally:
        setattr(Disk, "run", before)  # noqa: B010
