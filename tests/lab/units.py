"""Judges systemd units, by systemd itself.

Responsible for: units of the examples in a folder of their own, and what `systemd-analyze` says.
Must not: install or start one.
Called by: the tests of the examples' units.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.lab.process import find_program

_PROGRAM = "/opt/gateway/bin/gateway"
_LIMIT_SECONDS = 60.0


def write_units(folder: Path, files: Iterable[Path]) -> None:
    """Copy units, with a program that is there: systemd looks for it."""
    program = Path(sys.executable).with_name("gateway")
    for file in files:
        (folder / file.name).write_text(file.read_text().replace(_PROGRAM, str(program)))


def analyze(*arguments: str) -> str:
    """What `systemd-analyze` says, which must find no fault."""
    program = find_program("systemd-analyze", "systemd")
    done = subprocess.run(
        [program, *arguments], check=False, capture_output=True, text=True, timeout=_LIMIT_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def exposure(unit: Path) -> float:
    """How exposed a service is, out of 10; systemd calls up to 4 "OK"."""
    told = analyze("security", "--offline=true", "--no-pager", str(unit))
    level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", told)
    assert level is not None
    return float(level[1])
