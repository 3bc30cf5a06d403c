"""One certificate, from the first question to the answer that has it, beside lego and certbot.

Responsible for new hostnames one after the other at a gateway that is warm, and for the same work
by whichever of the two is installed; the median of a round's hostnames counts, since each of them
may meet a nonce that Pebble refuses. Called by `rows`.
"""

import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.bench import bodies, other_clients
from tests.bench.asking import ask_for_all
from tests.bench.comparing import alone, alternate, at_most, compared
from tests.bench.gateways import look_at_primary_alone, serving
from tests.bench.other_clients import Certbot, Lego
from tests.bench.paces import Pace, tell
from tests.bench.stock import Stock, suffix, zone_of
from tests.bench.stocking import provision_clients
from tests.lab.lab import LabOptions, running_lab

_POLL_SECONDS = 0.02
_LIMIT_SECONDS = 60.0
_WORK = "one issuance"


@dataclass
class _Product:
    """A gateway's side: new hostnames of its first client."""

    port: int
    tokens: tuple[str, ...]
    numbers: Iterator[int]
    wrong: int = 0

    def issue(self) -> float:
        """How many seconds the next hostname takes."""
        hostname = f"one{next(self.numbers)}.{suffix(0)}"
        requests = {hostname: bodies.get_hostname(self.tokens, 0, hostname)}
        issued = ask_for_all(
            (self.port,),
            requests,
            1,
            longest_pause=_POLL_SECONDS,
            limit_seconds=_LIMIT_SECONDS,
        )
        self.wrong += len(issued.wrong)
        return issued.elapsed


def measure(pace: Pace) -> dict[str, Any]:
    """All rounds, of `pace.size` hostnames each."""
    rows, notes = [], []
    with ExitStack() as stack:
        lab = stack.enter_context(running_lab(LabOptions(gateways=0)))
        look_at_primary_alone(lab)
        (gateway,) = stack.enter_context(serving(lab.config))
        tokens = provision_clients(gateway.url, lab.config.admin_token, Stock(1))
        numbers = count()
        product = _Product(gateway.port, tokens, numbers)
        product.issue()
        for program, bound, make in (("lego", 0.2, Lego), ("certbot", 0.04, Certbot)):
            if pace.is_smoke or not other_clients.is_there(program):
                why = "takes seconds" if pace.is_smoke else "is not installed"
                notes.append(f"{program} {why}: left out")
                continue
            tell(f"beside {program}")
            theirs = _other(make(lab), numbers)
            pairs = alternate(pace.rounds, _median(pace, product.issue), _median(pace, theirs))
            rows.append(compared(_WORK, "s", program, pairs, at_most(bound)))
        if not rows:
            run = _median(pace, product.issue)
            rows.append(alone(_WORK, "s", [run() for _ in range(pace.rounds)]))
    wrong = [f"{product.wrong} certificates are not for their hostnames and keys"]
    return {"rows": rows, "notes": notes, "faults": wrong if product.wrong else []}


def _other(client: Lego | Certbot, numbers: Iterator[int]) -> Callable[[], float]:
    def issue() -> float:
        return client.issue(f"other{next(numbers)}.{zone_of(0)}")

    # Its account is made by the first one, which is not counted.
    issue()
    return issue


def _median(pace: Pace, issue: Callable[[], float]) -> Callable[[], float]:
    return lambda: statistics.median(issue() for _ in range(pace.size))
