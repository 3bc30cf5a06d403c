"""`docs/examples/cloudly`, installed as npm would install it and run as a process.

Responsible for: the example's folder with its packages, one run of it, and the files that it keeps.
Must not: judge what a run did; only that nothing it printed is a secret.
Called by: the tests of the example, at a real gateway and at one that lies.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.lab.process import find_program

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "examples" / "cloudly"
NPM_FOLDER = ROOT / "tests" / "npm"
ADDRESS = "198.51.100.85"
LIMIT_SECONDS = 60


@dataclass
class Relay:
    """The example for one hostname, with a state folder of its own."""

    script: Path
    folder: Path
    hostname: str
    environ: dict[str, str]

    def run(self, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """The example, once; everything that it must not print is looked for."""
        node = find_program("node", "nodejs")
        name = ["--relay", self.hostname.split(".")[0], "--hostname", self.hostname]
        done = subprocess.run(
            [node, self.script, *name, "--address", ADDRESS, "--state", self.folder, *options],
            env={"PATH": os.environ["PATH"], **self.environ, **environ},
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
        )
        printed = done.stdout + done.stderr
        assert "gwa_" not in printed.replace("begins with gwa_", "")
        assert "gwc_" not in printed
        assert "PRIVATE KEY" not in printed
        return done

    @property
    def token_file(self) -> Path:
        return self.folder / "tokens" / self.hostname.split(".")[0]

    @property
    def current(self) -> Path:
        return self.folder / "certificates" / self.hostname / "current"

    def files(self) -> dict[str, tuple[int, int]]:
        """Every file, folder and link of the state, with what changes when it is written."""
        return {
            str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns)
            for path in self.folder.rglob("*")
        }


def installed_for(hostname: str, folder: Path, url: str, admin_token_file: Path) -> Relay:
    """The example in a folder of its own, for a gateway at the URL."""
    installed = folder / "cloudly"
    shutil.copytree(EXAMPLE, installed)
    (installed / "node_modules").symlink_to(NPM_FOLDER / "node_modules")
    environ = {
        "GATEWAY_URL": url.removesuffix("/typedrequest"),
        "OPERATOR_TOKEN_FILE": str(admin_token_file),
    }
    return Relay(installed / "relay.mjs", folder / "state", hostname, environ)
