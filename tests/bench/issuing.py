"""Many certificates at once, by one gateway and two, beside a bare script on `acme` and lego.

Responsible for new hostnames by the thousand, asked for at once and again whenever the gateway
says; for the script in as many processes as there are gateways, four threads each; and for lego,
eight at a time. All at the same BIND and Pebble. Every certificate is looked at. Called by `rows`.
"""

import itertools
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench import bodies, other_clients
from tests.bench.asking import ask_for_all
from tests.bench.comparing import alternate, at_least, compared
from tests.bench.gateways import look_at_primary_alone, serving
from tests.bench.other_clients import Lego
from tests.bench.paces import Pace, tell
from tests.bench.spending import Spending
from tests.bench.stock import Stock, suffix, zone_of
from tests.bench.stocking import provision_clients
from tests.lab.gateway import GatewayProcess
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.process import LabFault

CONNECTIONS = 64
THREADS = 4
LEGO_AT_ONCE = 8
_LEGO_SHARE = 10
"""lego gets a tenth of the hostnames: it is that slow, and its rate is what is compared."""

_LONGEST_PAUSE_SECONDS = 0.25
_LIMIT_SECONDS = 900.0
_CLIENTS = 10_000
"""A stock of so many has ten clients."""

_ROOT = Path(__file__).parents[2]

_turns = itertools.count()
"""Every run has hostnames of its own."""


@dataclass
class _Bench:
    """Both sides, with as many processes of the script as there are gateways."""

    lab: Lab
    gateways: Sequence[GatewayProcess]
    tokens: tuple[str, ...]
    wrong: list[str] = field(default_factory=list)
    put_off: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def work(self, count: int) -> str:
        """What is measured, in words."""
        processes = len(self.gateways)
        return f"{count:,} issuances, {processes} process{'es' * (processes > 1)}"

    def product(self, count: int) -> float:
        """How many certificates a second the gateways issue; the calls take turns at them."""
        turn, clients = next(_turns), len(self.tokens)
        requests = {}
        for number in range(count):
            hostname = f"many{turn}-{number}.{suffix(number % clients)}"
            requests[hostname] = bodies.get_hostname(self.tokens, number % clients, hostname)
        ports = [gateway.port for gateway in self.gateways]
        issued = ask_for_all(
            ports,
            requests,
            min(CONNECTIONS, count),
            longest_pause=_LONGEST_PAUSE_SECONDS,
            limit_seconds=_LIMIT_SECONDS,
        )
        self.wrong += issued.wrong
        self.put_off += issued.put_off
        self.refused += issued.refused
        return count / issued.elapsed

    def script(self, count: int) -> float:
        """The same by the script, once it has its accounts."""
        hostnames, processes = _others(count), len(self.gateways)
        with ExitStack() as stack:
            running = [
                stack.enter_context(self._script(hostnames[number::processes]))
                for number in range(processes)
            ]
            told = [_outcome(process) for process in running]
        issued = sum(each["issued"] for each in told)
        if issued != count:
            raise LabFault(f"the script issued {issued} of {count} certificates")
        elapsed = max(each["ended"] for each in told) - min(each["began"] for each in told)
        return float(count / elapsed)

    def lego(self, lego: Lego, count: int) -> float:
        """The same by lego."""
        return count / lego.issue_all(_others(count), LEGO_AT_ONCE)

    @contextmanager
    def _script(self, hostnames: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
        tsig = self.lab.bind.tsig
        told = {
            "directory": self.lab.pebble.directory_url,
            "ca_file": str(self.lab.pebble.ca_file),
            "zone": zone_of(0),
            "primary": self.lab.bind.primary,
            "tsig": (tsig.name, tsig.secret_base64, tsig.algorithm),
            "threads": THREADS,
            "hostnames": hostnames,
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.reference_issue"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
            # Its own group: ^C at the terminal reaches the bench only, which ends it.
            process_group=0,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(told))
        process.stdin.close()
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def measure(pace: Pace) -> dict[str, Any]:
    """All rounds, of `pace.size` hostnames each."""
    rows, notes, wrong, spending = [], [], [], Spending()
    with running_lab(LabOptions(gateways=0)) as lab:
        look_at_primary_alone(lab)
        tokens: tuple[str, ...] = ()
        for processes in (1, 2):
            # Every gateway that runs takes part in the work, whichever is called.
            with serving(lab.config, processes) as gateways:
                tokens = tokens or provision_clients(
                    gateways[0].url, lab.config.admin_token, Stock(_CLIENTS)
                )
                bench = _Bench(lab, gateways, tokens)
                bench.product(1)
                rows.append(_beside_script(bench, pace, spending))
                if processes == 2 and pace.is_smoke:
                    notes.append("lego takes seconds: left out")
                elif processes == 2 and not other_clients.is_there("lego"):
                    notes.append("lego is not installed: left out")
                elif processes == 2:
                    rows.append(_beside_lego(bench, pace))
                wrong += bench.wrong
                if bench.put_off:
                    notes.append(f"{processes} processes: {bench.put_off} calls were put off")
                for reason, count in bench.refused.items():
                    notes.append(f"{processes} processes: {count} calls were refused, {reason}")
    faults = [f"{len(wrong)} certificates are wrong: {wrong[0]}"] if wrong else []
    return {"rows": rows, "spent": spending.report(), "notes": notes, "faults": faults}


def _beside_script(bench: _Bench, pace: Pace, spending: Spending) -> dict[str, Any]:
    count, work = pace.size, bench.work(pace.size)
    tell(f"{work}, and a script")

    def product() -> float:
        with spending.on(work) as spent:
            rate = bench.product(count)
            spent.count += count
        return rate

    pairs = alternate(pace.rounds, product, lambda: bench.script(count))
    against = f"a script on acme, {len(bench.gateways)} x {THREADS} threads"
    return compared(work, "names/s", against, pairs, at_least(1.0))


def _beside_lego(bench: _Bench, pace: Pace) -> dict[str, Any]:
    tell(f"{bench.work(pace.size)}, and lego, {LEGO_AT_ONCE} at a time")
    lego = Lego(bench.lab)
    lego.issue(f"first.{zone_of(0)}")
    count = max(1, pace.size // _LEGO_SHARE)
    pairs = alternate(
        pace.rounds, lambda: bench.product(pace.size), lambda: bench.lego(lego, count)
    )
    against = f"lego by xargs -P {LEGO_AT_ONCE}, {count} names"
    return compared(bench.work(pace.size), "names/s", against, pairs, at_least(25))


def _others(count: int) -> list[str]:
    turn = next(_turns)
    return [f"other{turn}-{number}.{zone_of(0)}" for number in range(count)]


def _outcome(process: subprocess.Popen[str]) -> dict[str, Any]:
    try:
        code = process.wait(_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        raise LabFault(f"the script is not done in {_LIMIT_SECONDS:g} s") from None
    assert process.stdout is not None
    with process.stdout:
        text = process.stdout.read()
    if code:
        raise LabFault(f"the script failed with exit status {code}")
    told: dict[str, Any] = json.loads(text)
    return told
