"""How long commands take to start: how much longer than Python itself, in seconds.

Responsible for the client's side in the base install (`.venv-client`, as a client's machine has
it), and for the server's `--help` in its own. A call of the client is a real one, answered by a
gateway nearby. Called by `rows`.
"""

import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.commands import run
from tests.bench.comparing import alone, alternate, at_most
from tests.bench.gateways import serving
from tests.bench.paces import Pace
from tests.bench.stock import Stock
from tests.bench.stocking import provision_clients
from tests.lab.lab import LabOptions, running_lab
from tests.lab.process import LabFault

_ROOT = Path(__file__).parents[2]
_LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class _Command:
    """What is started in an environment, and how much longer than nothing it may take."""

    work: str
    python: Path
    arguments: Sequence[str]
    most_seconds: float

    @property
    def words(self) -> list[str]:
        return [str(self.python), *self.arguments]

    @property
    def nothing(self) -> list[str]:
        return [str(self.python), "-c", "pass"]


def measure(pace: Pace) -> dict[str, Any]:
    """All rounds, of `pace.size` starts each."""
    server = Path(sys.executable)
    client = _ROOT / ".venv-client" / "bin" / "python"
    if not client.exists():
        raise LabFault(f"{client} is missing: run scripts/setup")
    with running_lab(LabOptions(gateways=0)) as lab, serving(lab.config) as (gateway,):
        (token,) = provision_clients(gateway.url, lab.config.admin_token, Stock(1))
        environ = {**os.environ, "GATEWAY_URL": gateway.base_url, "GATEWAY_TOKEN": token}
        # With it every start would compile what it imports.
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        context = [_console(client), "client", "context"]
        commands = (
            _Command("import gateway.contract", client, ["-c", "import gateway.contract"], 0.15),
            _Command("gateway --help", server, [_console(server), "--help"], 0.3),
            _Command("gateway client context, a call", client, context, 0.4),
        )
        rows = [_row(pace, command, environ) for command in commands]
    return {"rows": rows, "notes": [], "faults": []}


def _row(pace: Pace, command: _Command, environ: Mapping[str, str]) -> dict[str, Any]:
    # Once for the files to be in memory and compiled.
    _seconds(command.words, environ)
    pairs = alternate(
        pace.rounds,
        _median(pace, command.words, environ),
        _median(pace, command.nothing, environ),
    )
    more = [seconds - nothing for seconds, nothing in pairs]
    return alone(
        f"{command.work}, longer than python -c pass", "s", more, at_most(command.most_seconds)
    )


def _median(pace: Pace, command: list[str], environ: Mapping[str, str]) -> Callable[[], float]:
    return lambda: statistics.median(_seconds(command, environ) for _ in range(pace.size))


def _seconds(command: Sequence[str], environ: Mapping[str, str]) -> float:
    return run(command, environ=environ, limit_seconds=_LIMIT_SECONDS).seconds


def _console(python: Path) -> str:
    return str(python.with_name("gateway"))
