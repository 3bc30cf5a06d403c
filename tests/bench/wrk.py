"""Load by wrk, of the Debian package of that name: C, so it leaves the cores to what it calls.

Responsible for its script, its options and what it says. Without wrk the bench's own callers do the
same (`bursts`). Must not: know what is called. Called by `bursts`.
"""

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import commands
from tests.lab.ports import LOOPBACK
from tests.lab.process import LabFault

_SCRIPT = Path(__file__).with_name("wrk.lua")
_LATE_SECONDS = 30.0
_SHORTEST_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Seen:
    """What wrk has seen; `failed` are answers that were not right, and broken connections."""

    per_second: float
    p50_ms: float
    p99_ms: float
    failed: int
    right: int


def is_there() -> bool:
    """Whether wrk is installed."""
    return shutil.which("wrk") is not None


def notes() -> list[str]:
    """What is to be said of a load that is not wrk's."""
    return [] if is_there() else ["wrk is not installed: the bench's own callers"]


def run(
    ports: Sequence[int], requests: Sequence[bytes], proof: bytes, seconds: float, connections: int
) -> Seen:
    """Send the requests round and round; one thread for each port. `seconds` are rounded.

    Raises: LabFault when wrk fails, or nothing is answered.
    """
    with tempfile.TemporaryDirectory(prefix="bench-wrk-") as folder:
        # Framed by their lengths: a request is bytes, which no line would hold.
        framed = b"".join(b"%d\n%b" % (len(request), request) for request in requests)
        file = Path(folder) / "requests"
        file.write_bytes(framed)
        whole = max(_SHORTEST_SECONDS, round(seconds))
        command = ["wrk", "--threads", str(len(ports)), "--connections", str(connections)]
        command += ["--duration", f"{whole}s", "--timeout", "10s", "--script", str(_SCRIPT)]
        command += [f"http://{LOOPBACK}:{ports[0]}", str(file), proof.decode()]
        command += [f"{LOOPBACK}:{port}" for port in ports]
        ended = commands.run(command, limit_seconds=whole + _LATE_SECONDS)
    told = json.loads(ended.stdout.splitlines()[-1])
    if not told["answered"]:
        raise LabFault("no call was answered")
    rate = told["answered"] / (told["micros"] / 1e6)
    return Seen(rate, told["p50"] / 1000, told["p99"] / 1000, told["failed"], told["right"])
