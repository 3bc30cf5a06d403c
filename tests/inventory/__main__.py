"""Write a bill of materials for each lock file, then ask what is known against the versions.

Ends with 1 when a vulnerability is known, or when the lock files cannot be read. What nobody could
be asked about is said, and is no failure: not every place reaches the database of advisories.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from tests.inventory.materials import LOCKS, write_materials

TIMEOUT_SECONDS = 10
FOLDER = Path("build/sbom")


def audit(lock: str) -> dict[str, Any]:
    """What pip-audit says of a lock file."""
    command = ["-r", lock, "--disable-pip", "--require-hashes", "--format", "json"]
    options = ["--progress-spinner", "off", "--timeout", str(TIMEOUT_SECONDS)]
    ran = subprocess.run(
        [sys.executable, "-m", "pip_audit", *command, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    if not ran.stdout.startswith("{"):
        raise SystemExit(f"audit: pip-audit could not read {lock}: {ran.stderr.strip()}")
    said: dict[str, Any] = json.loads(ran.stdout)
    return said


def say(sentence: str) -> None:
    """Print one line of what was found."""
    click.echo(f"audit: {sentence}")


def main() -> int:
    """Print a line for each lock file and for each vulnerability."""
    known = 0
    for lock in LOCKS:
        path = write_materials(Path(lock), FOLDER)
        found = audit(lock)["dependencies"]
        skipped = [each for each in found if "skip_reason" in each]
        wrong = [each for each in found if each.get("vulns")]
        known += len(wrong)
        for each in wrong:
            for one in each["vulns"]:
                fixed = ", ".join(one["fix_versions"]) or "no version yet"
                say(f"{each['name']} {each['version']}: {one['id']}, fixed in {fixed}")
        asked = len(found) - len(skipped)
        say(f"{lock}: {len(found)} packages, listed in {path}; advisories read for {asked}")
    return 1 if known else 0


sys.exit(main())
