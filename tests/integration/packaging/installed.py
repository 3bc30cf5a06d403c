"""The two installs that `scripts/setup` makes, and what each of them holds.

Responsible for: running programs in the base install (`.venv-client`) or in the one with the
server, and for reading what is installed there.
Must not: install or change anything.
Called by: the tests of this folder.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
LIMIT_SECONDS = 60.0

# As distributions and as modules are named.
SERVER_DISTRIBUTIONS = frozenset(
    {"acme", "dnspython", "hiredis", "httptools", "jinja2", "josepy", "markupsafe", "pyopenssl"}
    | {"publicsuffixlist", "pydantic-settings", "python-dotenv", "redis", "requests", "starlette"}
    | {"urllib3", "uvicorn", "uvloop"}
)
SERVER_MODULES = frozenset(
    {"OpenSSL", "acme", "dns", "dotenv", "hiredis", "httptools", "jinja2", "josepy", "markupsafe"}
    | {"publicsuffixlist", "pydantic_settings", "redis", "requests", "starlette", "urllib3"}
    | {"uvicorn", "uvloop"}
)

_LISTING = """
import importlib.metadata, json
print(json.dumps([
    [each.metadata["Name"], each.version, each.requires or []]
    for each in importlib.metadata.distributions()
]))
"""


@dataclass(frozen=True)
class Distribution:
    version: str
    requires: tuple[Requirement, ...]


@dataclass(frozen=True)
class Installed:
    """A virtual environment."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin/python"

    @property
    def environ(self) -> dict[str, str]:
        """What a shell has in which this install comes first; nothing of the tests' own."""
        return {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "LANG": "C.UTF-8"}

    def run(
        self, *arguments: str | Path, environ: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of this install, from a folder that is not the tree."""
        program, *rest = arguments
        return subprocess.run(
            [self.folder / "bin" / program, *rest],
            env={**self.environ, **(environ or {})},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )

    def distributions(self) -> dict[str, Distribution]:
        """Everything that is installed, by its canonical name."""
        listing = self.run("python", "-c", _LISTING)
        assert listing.returncode == 0, listing.stderr
        return {
            canonicalize_name(name): Distribution(version, tuple(map(Requirement, requires)))
            for name, version, requires in json.loads(listing.stdout)
        }


BASE = Installed(ROOT / ".venv-client")
WITH_SERVER = Installed(Path(sys.prefix))


def applying(requires: tuple[Requirement, ...], extras: frozenset[str]) -> list[Requirement]:
    """Those that a machine like this one needs, with these extras."""
    return [
        each
        for each in requires
        if each.marker is None
        or any(each.marker.evaluate({"extra": extra}) for extra in extras | {""})
    ]
