"""Programs that a bench runs to their end, as a reference or to make the load.

Responsible for an end in time, and for faults in words. Called by `starts`, `nsupdate`,
`other_clients`, `wrk`.
"""

import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.lab.process import LabFault

_SHOWN = 500
"""Characters of what a program that failed has said, at the most, of either kind."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How long a program took, and what it has said."""

    seconds: float
    stdout: str
    stderr: str


def run(
    command: Sequence[str],
    *,
    limit_seconds: float,
    environ: Mapping[str, str] | None = None,
    given: str | None = None,
) -> Ended:
    """Run a program to its end, with `given` on its standard input.

    Raises: LabFault when it fails, or takes longer than it may.
    """
    began = time.monotonic()
    try:
        ended = subprocess.run(
            command,
            env=environ,
            input=given,
            capture_output=True,
            text=True,
            timeout=limit_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabFault(f"{command[0]} is not done in {limit_seconds:g} s") from None
    seconds = time.monotonic() - began
    if ended.returncode:
        said = f"{ended.stdout[-_SHOWN:]}{ended.stderr[-_SHOWN:]}"
        raise LabFault(f"{command[0]} failed with exit status {ended.returncode}: {said}")
    return Ended(seconds, ended.stdout, ended.stderr)
